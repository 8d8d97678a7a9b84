"""Running tests against mutants: a pytest plugin that takes the place of the loop over the tests.

Law: a fork has the code of exactly one function changed, and nothing remembered from before the change.
"""

from __future__ import annotations

import functools
import gc
import os
import resource
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from tests.mutants.operators import Mutant
from tests.mutants.reached import MARK, Function, reached

_PATIENCE = 4, 30
"""A change after which a test never ends is stopped, and so caught: so many times what the tests take, and seconds."""
_PASSED, _FAILED = 0, 1


@dataclass(frozen=True, slots=True)
class Answer:
    """``caught_by``: the number of the test that failed, 0 if none did; ``tests``: how many reach the function."""

    mutant: Mutant
    caught_by: int
    tests: int


@dataclass(slots=True)
class Tried:
    """``runs`` and ``catches``: how often it was run on a mutant, and how often it failed as it should."""

    item: pytest.Item
    seconds: float
    reaches: frozenset[Function]
    runs: int = 0
    catches: int = 0

    @property
    def promise(self) -> float:
        """Mutants caught in a second, as far as is known."""
        return (self.catches + 0.1) / (self.runs + 1) / (self.seconds + 0.001)


class Trials:
    """Forks share what session fixtures hold; what only one may use at a time, as a Spark session, asks for one job."""

    def __init__(self, mutants: list[Mutant], jobs: int, tell: Callable[[Answer, int, int], None]) -> None:
        self.answers: list[Answer] = []
        self._mutants, self._jobs, self._tell = mutants, jobs, tell
        self._running: dict[int, tuple[Mutant, list[Tried]]] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        tried = [_try(item) for item in session.items]
        capture = session.config.pluginmanager.getplugin("capturemanager")
        with capture.global_and_fixture_disabled():
            print(f"{len(tried)} tests pass without a change, in {sum(one.seconds for one in tried):.0f} s", flush=True)
            for mutant in self._mutants:
                self._begin(mutant, tried)
            while self._running:
                self._end_one()
        return True

    def _begin(self, mutant: Mutant, tried: list[Tried]) -> None:
        if len(self._running) == self._jobs:
            self._end_one()
        asked = (str(mutant.path), mutant.function)
        tests = sorted((one for one in tried if asked in one.reaches), key=lambda one: -one.promise)
        process = os.fork()
        if process == 0:
            os._exit(_verdict(mutant, tests))
        self._running[process] = (mutant, tests)

    def _end_one(self) -> None:
        process, status, _ = os.wait3(0)
        mutant, tests = self._running.pop(process)
        code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else _FAILED
        for one in tests[: code or None]:
            one.runs += 1
        if code and tests:
            tests[code - 1].catches += 1
        self.answers.append(Answer(mutant, code, len(tests)))
        self._tell(self.answers[-1], len(self.answers), len(self._mutants))


def _try(item: pytest.Item) -> Tried:
    """On the source as it is, where it must pass."""
    reached.clear()
    began = time.process_time()
    if not _passes(item):
        raise pytest.UsageError(f"{item.nodeid} fails without any change")
    return Tried(item, time.process_time() - began, frozenset(reached))


def _passes(item: pytest.Item) -> bool:
    # The session comes next, so what its fixtures hold lives on.
    reports = runtestprotocol(item, nextitem=item.session, log=False)  # type: ignore[arg-type]
    return all(report.outcome != "failed" for report in reports)


def _verdict(mutant: Mutant, tests: list[Tried]) -> int:
    """In a fork: the number of the first test that fails, up to 255; 0 if none does."""
    times, more = _PATIENCE
    seconds = int(times * sum(one.seconds for one in tests) + more)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    try:
        _change(mutant)
        failed = (number for number, one in enumerate(tests, 1) if not _passes(one.item))
        return min(255, next(failed, _PASSED))
    except BaseException:
        return _FAILED


def _change(mutant: Mutant) -> None:
    code = next(code for code in _codes(mutant) if code.co_qualname == mutant.function)
    things = gc.get_objects()
    for thing in things:
        if isinstance(thing, FunctionType) and _is_of(thing.__code__, mutant):
            thing.__code__ = code
    for thing in things:
        if isinstance(thing, functools._lru_cache_wrapper) and thing.__module__.startswith("rollview"):
            thing.cache_clear()


def _is_of(code: CodeType, mutant: Mutant) -> bool:
    return code.co_filename == str(mutant.path) and code.co_qualname == mutant.function and MARK in code.co_names


def _codes(mutant: Mutant) -> Iterator[CodeType]:
    waiting: list[Any] = [compile(mutant.source(), str(mutant.path), "exec")]
    while waiting:
        code = waiting.pop()
        yield code
        waiting.extend(const for const in code.co_consts if isinstance(const, CodeType))
