"""Where the time of a piece of work goes, by name.

Law: phases are exclusive. Time inside an inner phase is the inner one's alone, so the phases of a piece of work add up
to no more than the time it took.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field


@dataclass(slots=True)
class Phases:
    seconds: dict[str, float] = field(default_factory=dict)
    _inner: list[float] = field(default_factory=lambda: [0.0])
    """For each phase that is open: the time that its inner phases took."""


_current: ContextVar[Phases | None] = ContextVar("rollview_phases", default=None)


@contextmanager
def measured(into: Phases) -> Iterator[None]:
    """Phases that are entered inside are added to ``into``."""
    token = _current.set(into)
    try:
        yield
    finally:
        _current.reset(token)


def add_phases(into: Phases, other: Phases) -> None:
    """Where another thread worked on the same piece."""
    for name, seconds in other.seconds.items():
        into.seconds[name] = into.seconds.get(name, 0.0) + seconds


@contextmanager
def phase(name: str) -> Iterator[None]:
    """Counts for the piece of work that is being measured, if any is."""
    current = _current.get()
    if current is None:
        yield
        return
    began = time.perf_counter()
    current._inner.append(0.0)
    try:
        yield
    finally:
        took, inner = time.perf_counter() - began, current._inner.pop()
        current._inner[-1] += took
        current.seconds[name] = current.seconds.get(name, 0.0) + took - inner
