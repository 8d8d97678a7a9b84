"""Running tests against mutants: a pytest plugin that takes the place of the loop over the tests.

Law: the code of exactly one function is changed, in a fork, and nothing is remembered from before the change. Tests
that do not pass in a fork even without a change, for what they use has threads of its own, are run here, one mutant
after the other, and the change is taken back.
"""

from __future__ import annotations

import functools
import gc
import os
import resource
import signal
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
    """``runs`` and ``catches``: how often it was run on a mutant, and how often it failed as it should.

    ``forks``: whether it passes in a fork.
    """

    item: pytest.Item
    seconds: float
    reaches: frozenset[Function]
    forks: bool = False
    runs: int = 0
    catches: int = 0

    @property
    def promise(self) -> float:
        """Mutants caught in a second, as far as is known."""
        return (self.catches + 0.1) / (self.runs + 1) / (self.seconds + 0.001)


class Trials:
    def __init__(self, mutants: list[Mutant], jobs: int, tell: Callable[[Answer, int, int], None]) -> None:
        self.answers: list[Answer] = []
        self._mutants, self._jobs, self._tell = mutants, jobs, tell
        self._running: dict[int, tuple[Mutant, list[Tried]]] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        tried = [_try(item) for item in session.items]
        capture = session.config.pluginmanager.getplugin("capturemanager")
        with capture.global_and_fixture_disabled():
            _try_in_a_fork(tried)
            forks, seconds = sum(one.forks for one in tried), sum(one.seconds for one in tried)
            print(f"{len(tried)} tests pass without a change in {seconds:.0f} s, {forks} of them in forks", flush=True)
            for mutant in self._mutants:
                self._begin(mutant, tried)
            while self._running:
                self._end_one()
        return True

    def _begin(self, mutant: Mutant, tried: list[Tried]) -> None:
        if len(self._running) == self._jobs:
            self._end_one()
        asked = (str(mutant.path), mutant.function)
        reaching = (one for one in tried if asked in one.reaches)
        tests = sorted(reaching, key=lambda one: (not one.forks, -one.promise))
        process = os.fork()
        if process == 0:
            os._exit(_verdict_in_fork(mutant, [one for one in tests if one.forks]))
        self._running[process] = (mutant, tests)

    def _end_one(self) -> None:
        process, status, _ = os.wait3(0)
        mutant, tests = self._running.pop(process)
        code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else _FAILED
        if code == _PASSED:
            code = _verdict_here(mutant, tests)
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


def _try_in_a_fork(tried: list[Tried]) -> None:
    """Without a change: else a fork that can do nothing would be taken for one that catches everything."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        _be_silent()
        for one in tried:
            os.write(writing, b"1" if _passes(one.item) else b"0")
        os._exit(_PASSED)
    os.close(writing)
    with os.fdopen(reading, "rb") as told:
        for one, passed in zip(tried, told.read().decode(), strict=False):
            one.forks = passed == "1"
    os.waitpid(process, 0)


def _passes(item: pytest.Item) -> bool:
    # The session comes next, so what its fixtures hold lives on.
    reports = runtestprotocol(item, nextitem=item.session, log=False)  # type: ignore[arg-type]
    return all(report.outcome != "failed" for report in reports)


def _verdict_in_fork(mutant: Mutant, tests: list[Tried]) -> int:
    """The number of the first test that fails, up to 255; 0 if none does."""
    seconds = _patience(tests)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    _be_silent()
    try:
        _change(mutant)
        return _first_that_fails(tests)
    except BaseException:
        return _FAILED


def _verdict_here(mutant: Mutant, tests: list[Tried]) -> int:
    """The same, without those that were run in a fork."""
    here = [one for one in tests if not one.forks]
    if not here:
        return _PASSED
    before = _change(mutant)
    signal.signal(signal.SIGALRM, _stop)
    signal.alarm(_patience(here))
    try:
        failed = _first_that_fails(here)
    except _NeverEndsError:
        failed = _FAILED
    finally:
        signal.alarm(0)
        for function, code in before:
            function.__code__ = code
        _forget()
    return failed and min(255, failed + len(tests) - len(here))


class _NeverEndsError(Exception):
    pass


def _stop(*_: object) -> None:
    raise _NeverEndsError


def _first_that_fails(tests: list[Tried]) -> int:
    return min(255, next((number for number, one in enumerate(tests, 1) if not _passes(one.item)), _PASSED))


def _patience(tests: list[Tried]) -> int:
    times, more = _PATIENCE
    return int(times * sum(one.seconds for one in tests) + more)


def _be_silent() -> None:
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)


def _change(mutant: Mutant) -> list[tuple[FunctionType, CodeType]]:
    """Returns what was changed, as it was."""
    code = next(code for code in _codes(mutant) if code.co_qualname == mutant.function)
    functions = [thing for thing in gc.get_objects() if isinstance(thing, FunctionType)]
    changed = [(function, function.__code__) for function in functions if _is_of(function.__code__, mutant)]
    for function, _ in changed:
        function.__code__ = code
    _forget()
    return changed


def _forget() -> None:
    for thing in gc.get_objects():
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
