"""Work until somebody says stop.

Law: sources are read beside each other and beside the refresh, so none waits for another that is slow or down, and
subscribers are delivered to in the same way. Views take turns, so none waits until another that is far behind has
caught up; with several workers, as many turns at once, of views that have nothing to do with each other. What has begun
is finished; nothing begins after the stop. Whatever a kill leaves is recovered by whoever works next, so a stop is a
courtesy and not a need. Several processes may do this at once: what another is at is left to it.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from types import FrameType
from typing import Any, Protocol

from rollview.capture.plan import Group
from rollview.core.raised import unexpected_error
from rollview.errors import Busy, RollviewError
from rollview.results import Captured, Delivered, Refreshed

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_SOURCES_AT_ONCE = 8
_SUBSCRIBERS_AT_ONCE = 4
_TICK = 0.2

Event = Captured | Refreshed | Delivered | RollviewError

ViewGroup = tuple[str, ...]
"""Views that are published together; mostly one."""


class DueWork(Protocol):
    """Whoever knows what is due, and does it."""

    def due_sources(self) -> Sequence[Group]: ...
    def due_views(self, besides: Collection[str] = ()) -> Sequence[ViewGroup]:
        """``besides``: views that have their turn already, about which nothing has to be looked up."""
        ...

    def due_subscribers(self) -> Sequence[str]: ...
    def held_by(self, names: ViewGroup) -> frozenset[str]:
        """The views that a turn of these has to itself."""
        ...

    def capture(self, names: Group) -> Captured: ...
    def refresh(self, names: ViewGroup) -> Refreshed: ...
    def deliver(self, name: str) -> Delivered: ...


@dataclass(slots=True)
class _Work:
    """What is under way. Pools of their own keep slow sources and subscribers from holding up the views, and the other
    way round."""

    crew: DueWork
    capturing: ThreadPoolExecutor
    refreshing: ThreadPoolExecutor
    delivering: ThreadPoolExecutor
    parallel: int
    sources: dict[Group, Future[Captured]] = field(default_factory=dict)
    views: dict[ViewGroup, Future[Refreshed]] = field(default_factory=dict)
    subscribers: dict[str, Future[Delivered]] = field(default_factory=dict)

    def begin(self) -> None:
        for group in self.crew.due_sources():
            if group not in self.sources:
                self.sources[group] = self.capturing.submit(self.crew.capture, group)
        for group in self.crew.due_views({name for taken in self.views for name in taken}):
            if self._is_apart(group):
                self.views[group] = self.refreshing.submit(self.crew.refresh, group)
        for name in self.crew.due_subscribers():
            if name not in self.subscribers:
                self.subscribers[name] = self.delivering.submit(self.crew.deliver, name)

    def _is_apart(self, group: ViewGroup) -> bool:
        """Whether it need not wait for those that have their turn: one worker keeps the order by itself."""
        if self.parallel == 1:
            return True
        held = (self.crew.held_by(other) for other in self.views)
        return self.crew.held_by(group).isdisjoint(name for names in held for name in names)

    def is_idle(self) -> bool:
        return not (self.sources or self.views or self.subscribers)

    def finished(self, seconds: float) -> Iterator[Event]:
        """What ends within so many seconds."""
        kinds: tuple[dict[Any, Future[Any]], ...] = (self.sources, self.views, self.subscribers)
        done = wait([future for kind in kinds for future in kind.values()], seconds, FIRST_COMPLETED).done
        for kind in kinds:
            for names in [names for names, future in kind.items() if future in done]:
                yield from _outcome(kind.pop(names))


def work(crew: DueWork, stop: threading.Event, parallel: int = 1) -> Iterator[Event]:
    """What was done, as it is done, until ``stop`` is set and all that had begun has ended. ``parallel``: so many views
    have their turn at once."""
    with (
        ThreadPoolExecutor(_SOURCES_AT_ONCE, "rollview-capture") as capturing,
        ThreadPoolExecutor(parallel, "rollview-refresh") as refreshing,
        ThreadPoolExecutor(_SUBSCRIBERS_AT_ONCE, "rollview-deliver") as delivering,
    ):
        under_way = _Work(crew, capturing, refreshing, delivering, parallel)
        while not (stop.is_set() and under_way.is_idle()):
            if not stop.is_set():
                try:
                    under_way.begin()
                except Exception as error:
                    yield unexpected_error(error)
                    stop.wait(1.0)
            yield from under_way.finished(_TICK)
            if under_way.is_idle():
                stop.wait(_TICK)


def _outcome(ended: Future[Any]) -> Iterator[Event]:
    try:
        yield ended.result()
    # Another process is at it.
    except Busy:
        return
    except Exception as error:
        yield unexpected_error(error)


def paced(interval: float, stop: threading.Event, rounds: int) -> Iterator[int]:
    """The numbers of the rounds, each ``interval`` seconds after the last began, or at once if that took longer."""
    for number in count(1):
        if stop.is_set() or number > rounds:
            return
        began = time.monotonic()
        yield number
        if number < rounds:
            stop.wait(max(0.0, interval - (time.monotonic() - began)))


@contextmanager
def stopping() -> Iterator[threading.Event]:
    """An event that SIGTERM and SIGINT set while the block runs."""
    stop = threading.Event()

    def ask(_signal: int, _frame: FrameType | None) -> None:
        stop.set()

    before = {number: signal.signal(number, ask) for number in _SIGNALS}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
