"""Tables with their changes in time, and propagation queries over them: Salem et al., *How To Roll a Join*, section 2.

Law: a propagation query has the view's form; each table in it is itself, as the query sees it, or its changes over an
interval. A result row's count is the product of its rows' counts; its csn is the minimum of theirs, and rows of tables
themselves have none. Where old states can be read, nothing is compensated and the maximum is right instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from rollview.consistency.bags import Bag, Row, counted
from rollview.consistency.join_view import NOTHING_YET, JoinView, Occurrence, Partial, join
from rollview.core.interval import Interval

_CSN = "csn of"
TimedDelta = Mapping[tuple[int, Row], int]
Part = Interval | None
"""Changes over an interval; None is the table itself."""


@dataclass(frozen=True, slots=True)
class PropagationQuery:
    sign: int
    parts: tuple[Part, ...]

    @property
    def asks_tables(self) -> bool:
        return None in self.parts

    @property
    def is_forward(self) -> bool:
        """It has changes of one table; with more it is a compensation."""
        return sum(part is not None for part in self.parts) == 1


@dataclass(frozen=True, slots=True)
class TimedChange:
    table: str
    csn: int
    row: Row
    count: int


@dataclass(frozen=True)
class TimedTables:
    """``changes`` from csn 0 on: what was there at first has csn 0."""

    view: JoinView
    changes: tuple[TimedChange, ...]

    @cached_property
    def _by_table(self) -> Mapping[str, Sequence[TimedChange]]:
        found: dict[str, list[TimedChange]] = {one.table: [] for one in self.view.occurrences}
        for change in self.changes:
            found[change.table].append(change)
        return found

    def at(self, csn: int) -> Bag:
        """The view by its definition."""
        return self.view.evaluate({table: self._state(table, csn) for table in self._by_table})

    def has_changes(self, place: int, interval: Interval) -> bool:
        return any(one.csn in interval for one in self._of(place))

    def evaluate(self, query: PropagationQuery, seen: Sequence[int]) -> TimedDelta:
        """``seen``: the csn at which each table itself is seen."""
        whole = NOTHING_YET
        for place, part in enumerate(query.parts):
            if part is None:
                one = self.view.occurrences[place]
                whole = join(whole, self.view.partial(one.name, self._state(one.table, seen[place])))
            else:
                whole = join(whole, self._changes(place, part.after, part.through))
        return timed_result(self.view, whole, query.sign)

    def evaluate_copied(self, place: int, interval: Interval, at: Sequence[int]) -> TimedDelta:
        """Changes of one table joined with the others as they were; copies keep the csn of every row."""
        whole = self._changes(place, interval.after, interval.through)
        for other in range(len(at)):
            if other != place:
                whole = join(whole, self._changes(other, -1, at[other]))
        return timed_result(self.view, whole, 1, max)

    def _changes(self, place: int, after: int, through: int) -> Partial:
        some = ((row.row, row.csn, row.count) for row in self._of(place) if after < row.csn <= through)
        return timed_partial(self.view.occurrences[place], some)

    def _of(self, place: int) -> Sequence[TimedChange]:
        return self._by_table[self.view.occurrences[place].table]

    def _state(self, table: str, csn: int) -> Bag:
        return counted((one.row, one.count) for one in self._by_table[table] if one.csn <= csn)


def timed_partial(one: Occurrence, changes: Iterable[tuple[Row, int, int]]) -> Partial:
    """Rows of a table with their csns and counts, as they join."""
    rows = counted(((*row, csn), count) for row, csn, count in changes)
    return Partial(frozenset((one.name,)), (*one.columns, f"{_CSN} {one.name}"), rows)


def timed_result(view: JoinView, whole: Partial, sign: int, choose: Callable[[Iterable[int]], int] = min) -> TimedDelta:
    """What all tables have been joined to, as the view shows it, at the csns that ``choose`` makes of the rows'."""
    times = tuple(name for name in whole.columns if name.startswith(_CSN))
    timed = JoinView(view.occurrences, (*view.shown, *times), view.where)
    width = len(view.shown)
    found = ((choose(row[width:]), row[:width], count) for row, count in timed.finish(whole).items())
    return {(csn, row): count for (csn, row), count in counted(((c, r), n * sign) for c, r, n in found).items()}


def rolled(rows: Bag, delta: TimedDelta, through: int) -> Bag:
    """The first rows and what the delta adds up to a csn."""
    return counted([*rows.items(), *((row, count) for (csn, row), count in delta.items() if csn <= through)])
