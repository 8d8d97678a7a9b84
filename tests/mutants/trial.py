"""Running tests against mutants: a pytest plugin that takes the place of the loop over the tests.

Law: a mutant is caught if a test fails on it that passes without it, in the same surroundings: in a fork, or here, one
mutant after the other, for tests that use something with threads of its own. A test that never ends has failed.
"""

from __future__ import annotations

import os
import resource
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate

import pytest
from _pytest.runner import runtestprotocol

from tests.mutants.change import change, forget, functions
from tests.mutants.kept import Answer
from tests.mutants.operators import Mutant
from tests.mutants.reached import Function, reached

_PATIENCE = 4, 60
"""How long a change may make the tests: so many times what they take without it, and seconds."""
ENOUGH = 20
"""Seconds of tests that a mutant must live through."""
_PASSED, _LAST, _NEVER_ENDS, _NOT_CHANGED = 0, 253, 254, 255
"""What a fork says: the number of the first test that failed, up to ``_LAST``, or one of the others."""


@dataclass(slots=True)
class Tried:
    """``runs`` and ``catches``: how often it was run on a mutant, and how often it failed as it should.

    ``forks``: whether it passes in a fork, as far as is known.
    """

    item: pytest.Item
    seconds: float
    reaches: frozenset[Function]
    forks: bool | None = None
    runs: int = 0
    catches: int = 0

    @property
    def promise(self) -> float:
        """Mutants caught in a second, as far as is known."""
        return (self.catches + 0.1) / (self.runs + 1) / (self.seconds + 0.001)


class Trials:
    """``jobs``: forks side by side; 0 if the tests are all run here. ``promising``: the test to begin with."""

    def __init__(
        self, mutants: list[Mutant], jobs: int, promising: Callable[[Mutant], str], tell: Callable[[Answer], None]
    ) -> None:
        self._mutants, self._jobs, self._promising, self._tell = mutants, jobs, promising, tell
        self._tried: list[Tried] = []
        self._running: dict[int, tuple[Mutant, list[Tried]]] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._tried = [_try(item, forks=None if self._jobs else False) for item in session.items]
        capture = session.config.pluginmanager.getplugin("capturemanager")
        with capture.global_and_fixture_disabled():
            seconds = sum(one.seconds for one in self._tried)
            print(f"{len(self._tried)} tests pass without a change in {seconds:.0f} s", flush=True)
            functions.cache_clear()
            functions()
            for mutant in self._mutants:
                self._begin(mutant)
            while self._running:
                self._end_one()
        return True

    def _begin(self, mutant: Mutant) -> None:
        while self._jobs and len(self._running) >= self._jobs:
            self._end_one()
        tests = self._tests_for(mutant)
        in_fork = [one for one in tests if one.forks is not False]
        process = os.fork() if in_fork else -1
        if process == 0:
            os._exit(_said_in_fork(mutant, in_fork))
        elif in_fork:
            self._running[process] = (mutant, tests)
        else:
            self._tell(Answer(mutant, _caught_here(mutant, tests), len(tests)))

    def _tests_for(self, mutant: Mutant) -> list[Tried]:
        """The most promising that reach it, as long as they take together, but for the last."""
        asked, first = (str(mutant.path), mutant.function), self._promising(mutant)
        reaching = [one for one in self._tried if asked in one.reaches]
        reaching.sort(key=lambda one: (one.item.nodeid != first, -one.promise))
        sums = accumulate((one.seconds for one in reaching), initial=0.0)
        enough = [one for one, before in zip(reaching, sums, strict=False) if before < ENOUGH]
        return sorted(enough, key=lambda one: one.forks is False)

    def _end_one(self) -> None:
        process, status, _ = os.wait3(0)
        if process not in self._running:
            return
        mutant, tests = self._running.pop(process)
        said = os.WEXITSTATUS(status) if os.WIFEXITED(status) else _NEVER_ENDS
        assert said != _NOT_CHANGED, f"this cannot be tried: {mutant}"
        if 0 < said <= _LAST and not _passes_in_a_fork(tests[said - 1]):
            self._begin(mutant)
            return
        caught_by = _noted(tests, said) if said else _caught_here(mutant, tests)
        self._tell(Answer(mutant, caught_by, len(tests)))


def _noted(tests: list[Tried], failed: int) -> str:
    """The name of the first that failed; all before it passed."""
    if failed == _NEVER_ENDS:
        return "the time limit"
    for one in tests[:failed]:
        one.runs += 1
    tests[failed - 1].catches += 1
    return str(tests[failed - 1].item.nodeid)


def _try(item: pytest.Item, forks: bool | None) -> Tried:
    """On the source as it is, where it must pass."""
    # What is not forked waits for others.
    clock = time.process_time if forks is None else time.perf_counter
    forget()
    reached.clear()
    began = clock()
    if not _passes(item):
        raise pytest.UsageError(f"{item.nodeid} fails without any change")
    return Tried(item, clock() - began, frozenset(reached), forks)


def _passes_in_a_fork(one: Tried) -> bool:
    """Without a change: else a test that can do nothing in a fork would be taken for one that catches everything."""
    if one.forks is None:
        process = os.fork()
        if process == 0:
            _be_silent()
            os._exit(0 if _passes(one.item) else 1)
        one.forks = os.waitpid(process, 0)[1] == 0
    return one.forks


def _passes(item: pytest.Item) -> bool:
    # The session comes next, so what its fixtures hold lives on.
    reports = runtestprotocol(item, nextitem=item.session, log=False)  # type: ignore[arg-type]
    return all(report.outcome != "failed" for report in reports)


def _said_in_fork(mutant: Mutant, tests: list[Tried]) -> int:
    _be_silent()
    try:
        change(mutant)
    except BaseException:
        return _NOT_CHANGED
    seconds = _patience(tests)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    try:
        return min(_LAST, _first_that_fails(tests))
    except BaseException:
        return _LAST


def _caught_here(mutant: Mutant, tests: list[Tried]) -> str:
    """By those that were not run in a fork."""
    here = [one for one in tests if one.forks is False]
    if not here:
        return ""
    take_back = change(mutant)
    signal.signal(signal.SIGALRM, _stop)
    signal.alarm(_patience(here))
    try:
        failed = _first_that_fails(here)
    except TimeoutError:
        failed = _NEVER_ENDS
    finally:
        signal.alarm(0)
        take_back()
    return _noted(here, failed) if failed else ""


def _stop(*_: object) -> None:
    raise TimeoutError


def _first_that_fails(tests: list[Tried]) -> int:
    """Its number; 0 if all pass."""
    return next((number for number, one in enumerate(tests, 1) if not _passes(one.item)), _PASSED)


def _patience(tests: list[Tried]) -> int:
    times, more = _PATIENCE
    return int(times * sum(one.seconds for one in tests) + more)


def _be_silent() -> None:
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
