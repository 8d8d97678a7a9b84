"""Propagate and RollingPropagate up to a csn, in intervals whose queries stay small.

Law: an interval whose queries had more rows than they may is given up and halved, unless it is of one csn; one whose
queries had less than half of that is doubled next time. Until an interval is kept, nothing of it counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from rollview.compensate.maintainer import Requirement
from rollview.compensate.rolling import Rolling, propagate
from rollview.compensate.timed import PropagationQuery
from rollview.consistency.levels import Level
from rollview.core.interval import Interval

MOST_ROWS = 100_000


class TooManyRowsError(Exception):
    """A query has more rows than it may."""


class Queries(Protocol):
    """Executes queries on tables as they are."""

    def begin(self, most: int | None) -> None:
        """Of the next queries each may have so many rows; None: any number."""

    def execute(self, query: PropagationQuery) -> int:
        """The csn that it saw, or ``NO_CHANGES``. What it gave counts once it is kept."""

    def keep(self) -> int:
        """What came since ``begin`` counts; the rows of the largest query of it."""


@dataclass(slots=True)
class IntervalWidth:
    """How many csns the next interval takes."""

    most: int
    csns: int = 64

    def attempt(self, queries: Queries, begin: int, limit: int, step: Callable[[int], None]) -> int:
        """Take a step from ``begin`` on; where it ends."""
        while True:
            end = min(begin + self.csns, limit)
            queries.begin(None if end - begin <= 1 else self.most)
            try:
                step(end)
            except TooManyRowsError:
                self.csns = max(1, (end - begin) // 2)
                continue
            if queries.keep() * 2 <= self.most:
                self.csns *= 2
            return end


def propagate_to(queries: Queries, tables: int, interval: Interval, width: IntervalWidth) -> None:
    """The view's delta over an interval, in steps of all tables together."""
    at = interval.after
    while at < interval.through:

        def step(end: int, begin: int = at) -> None:
            propagate(queries.execute, tables, Interval(begin, end))

        at = width.attempt(queries, at, interval.through, step)


def roll_to(queries: Queries, rolling: Rolling, goal: int, widths: Sequence[IntervalWidth]) -> None:
    """Each table in intervals of its own, until the view's delta is complete up to ``goal``.

    Tables that have come there go on as far as queries saw: what those saw beyond the goal has to be compensated.
    """
    while rolling.mark < goal:
        place = rolling.next_table
        begin = rolling.forward[place]
        limit = goal if begin < goal else rolling.latest
        widths[place].attempt(queries, begin, limit, lambda end: rolling.step(rolling.next_table, end))


@dataclass(frozen=True, slots=True)
class PropagationQueries:
    """What keeping a view by such queries promises and needs."""

    promises: Level = Level.COMPLETE
    needs: frozenset[Requirement] = frozenset((Requirement.SEEN_SETS, Requirement.WHOLE_OLD_ROWS))
