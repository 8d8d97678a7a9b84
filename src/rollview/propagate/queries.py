"""A step of a view that is kept by propagation queries over tables as they are: Propagate and RollingPropagate.

Law (Salem et al., *How To Roll a Join*): a query joins changes of some tables, which are captured, with rows of the
others, which are asked for. It is executed at the newest csn that is captured when its sources are held: an answer is
brought there by what it saw, and no marker is written. A row of the result has the smallest csn of its changes. Sources
are held for one query at a time, so they go on between two; what a query saw too much is compensated by others. Nothing
counts before the whole interval is complete, so a process that ends begins again at the mark.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import pyarrow as pa

from rollview.algebra.natural_join import NaturalJoin
from rollview.catalog import OpenQueries, Relation
from rollview.compensate.pacing import IntervalWidth, TooManyRowsError, propagate_to, roll_to
from rollview.compensate.rolling import NO_CHANGES, Rolling
from rollview.compensate.timed import Part, PropagationQuery, TimedDelta, timed_partial, timed_result
from rollview.consistency.bags import Row, counted
from rollview.consistency.join_view import NOTHING_YET, Partial, join, keys_of
from rollview.core.faults import reach
from rollview.core.interval import Csn, Interval
from rollview.core.names import COUNT, CSN
from rollview.core.phases import phase
from rollview.errors import Retryable
from rollview.propagate.asked import check_names
from rollview.propagate.compensated import ToldDelta, typed_changes
from rollview.propagate.plan import PropagateStep
from rollview.relations.algorithm import ROLLING, KeptView, algorithm_of, join_of, max_rows
from rollview.relations.joined import JoinedQueries, JoinedQuery
from rollview.relations.open_queries import find_join, recorded, resumed
from rollview.relations.reader import Reader
from rollview.types.keys import Key


class HeldTables(Protocol):
    """Sources that are held for one query."""

    def hold(self, relations: Iterable[Relation]) -> Csn:
        """Nobody captures them from now on; the newest csn that is captured of all."""

    def changed(self, relation: Relation, interval: Interval) -> pa.Table:
        """Captured changes, with ``_count`` and ``_csn``."""

    def rows(self, relation: Relation, equal: tuple[str, ...], keys: frozenset[Key], at: Csn) -> pa.Table:
        """Rows at a csn whose ``equal`` columns have one of the keys."""

    def release(self, problem: str | None = None) -> None: ...


@phase("ask the sources")
def queried_delta(reader: Reader, step: PropagateStep, sources: HeldTables) -> ToldDelta:
    view = reader.snapshot.get(step.view)
    assert view.definition is not None
    properties = view.definition.properties
    joined = join_of(reader.snapshot, KeptView(view.name, reader.plan(view.name), properties))
    check_names(reader, step.view)
    tables = {one.relation: reader.snapshot.get(one.relation) for one in joined.tables.values()}
    run = QueryRun(joined, tables, sources)
    places, most = len(joined.view.occurrences), max_rows(properties)
    if algorithm_of(properties) == ROLLING:
        rolling = Rolling(places, run.execute, begin=step.interval.after)
        roll_to(run, rolling, step.interval.through, [IntervalWidth(most) for _ in range(places)])
    else:
        propagate_to(run, places, step.interval, IntervalWidth(most))
    rows = _rows(joined, run, step.interval.through)
    return ToldDelta(typed_changes(view.schema, rows), step.interval.through, joined=run.joined())


@phase("ask the sources")
def rolled_delta(
    reader: Reader, step: PropagateStep, sources: HeldTables, seen: Csn
) -> tuple[ToldDelta, Mapping[str, OpenQueries]]:
    """The step of a view that goes table by table: its table's changes, by queries that see the csn ``seen``, and those
    that may have to be compensated later. What lies beyond the mark is not complete."""
    view = reader.snapshot.get(step.view)
    joined = find_join(reader.snapshot, reader.plan(view.name))
    if joined is None:
        raise Retryable(f"View '{view.name}' cannot go on by queries on tables as they are.")
    check_names(reader, step.view)
    tables = {one.relation: reader.snapshot.get(one.relation) for one in joined.tables.values()}
    properties = {} if view.definition is None else view.definition.properties
    run = QueryRun(joined, tables, sources, seen)
    rolling = resumed(reader.snapshot, view, joined, run.execute)
    moving = None if step.box is None else step.box.table
    for place, one in enumerate(joined.view.occurrences):
        table = joined.tables[one.name].relation
        if table == moving:
            width = IntervalWidth(max_rows(properties))
            while rolling.forward[place] < step.places[table]:
                width.attempt(run, rolling.forward[place], step.places[table], partial(rolling.step, place))
        else:
            # Nothing changed as far as it goes.
            rolling.forward[place] = max(rolling.forward[place], step.places[table])
    rolling.prune()
    changes = typed_changes(view.schema, _rows(joined, run, None))
    told = ToldDelta(changes, max(rolling.mark, step.interval.after), joined=run.joined())
    return told, recorded(joined, rolling)


def _rows(joined: NaturalJoin, run: QueryRun, through: Csn | None) -> list[tuple[Any, ...]]:
    place = [joined.view.shown.index(name) for name in joined.outputs]
    return [
        (*(row[i] for i in place), count, csn)
        for (csn, row), count in run.delta.items()
        if through is None or csn <= through
    ]


@dataclass(slots=True)
class QueryRun:
    """Queries over the tables of one view. ``at``: what they see, if not the newest csn that is captured. ``delta``:
    what those that are kept have given; ``kept``: themselves, but for those that have no changes."""

    join: NaturalJoin
    tables: Mapping[str, Relation]
    sources: HeldTables
    at: Csn | None = None
    delta: dict[tuple[int, Row], int] = field(default_factory=dict)
    executed: int = 0
    kept: list[JoinedQuery] = field(default_factory=list)
    _tried: list[JoinedQuery] = field(default_factory=list)
    _given: list[TimedDelta] = field(default_factory=list)
    _most: int | None = None
    _rows: int = 0
    _largest: int = 0

    def begin(self, most: int | None) -> None:
        self._given, self._tried, self._most, self._largest = [], [], most, 0

    def keep(self) -> int:
        sums = [*self.delta.items(), *(item for given in self._given for item in given.items())]
        self.delta = counted(sums)  # type: ignore[assignment]
        self.kept += self._tried
        return self._largest

    def joined(self) -> JoinedQueries:
        """What was joined with what."""
        tables = [(one.name, self.join.tables[one.name].relation) for one in self.join.view.occurrences]
        several = Counter(table for _, table in tables)
        names = (table if several[table] == 1 else f"{table} {name}" for name, table in tables)
        return JoinedQueries(tuple(names), tuple(self.kept))

    def execute(self, query: PropagationQuery) -> int:
        newest = self.sources.hold(self.tables.values())
        at = newest if self.at is None else min(newest, self.at)
        try:
            self.executed, self._rows = self.executed + 1, 0
            whole = self._joined(query, at)
            reach("ask.answered")
        finally:
            self.sources.release()
        if whole is None:
            return NO_CHANGES
        self._count(len(whole.rows))
        self._tried.append(JoinedQuery(query.sign, tuple(at if part is None else part for part in query.parts)))
        self._given.append(timed_result(self.join.view, whole, query.sign) if whole.rows else {})
        return at

    def _joined(self, query: PropagationQuery, at: Csn) -> Partial | None:
        """None if one of the changes is empty; a join that is empty before all tables are in it says so too."""
        changes = {place: self._changes(place, part) for place, part in enumerate(query.parts) if part is not None}
        if not all(one.rows for one in changes.values()):
            return None
        whole = NOTHING_YET
        for place in _order(self.join, query.parts):
            whole = join(whole, changes[place] if place in changes else self._asked(whole, place, at))
            if not whole.rows:
                break
        return whole

    def _changes(self, place: int, part: Interval) -> Partial:
        one = self.join.view.occurrences[place]
        table = self.join.tables[one.name]
        rows = self.sources.changed(self.tables[table.relation], part).to_pylist()
        self._count(len(rows))
        kept = (row for row in rows if table.selects(row))
        return timed_partial(one, ((tuple(row[c] for c in table.columns), row[CSN], row[COUNT]) for row in kept))

    def _asked(self, whole: Partial, place: int, at: Csn) -> Partial:
        one = self.join.view.occurrences[place]
        table = self.join.tables[one.name]
        equal = tuple(name for name in one.columns if name in whole.columns)
        keys = frozenset(keys_of(whole, equal).rows)
        rows = self.sources.rows(self.tables[table.relation], table.own(one, equal), keys, at).to_pylist()
        self._count(len(rows))
        kept = (row for row in rows if table.selects(row))
        return self.join.view.partial(
            one.name, counted((tuple(row[c] for c in table.columns), row[COUNT]) for row in kept)
        )

    def _count(self, rows: int) -> None:
        self._rows += rows
        self._largest = max(self._largest, self._rows)
        if self._most is not None and self._rows > self._most:
            raise TooManyRowsError


def _order(joined: NaturalJoin, parts: tuple[Part, ...]) -> Iterator[int]:
    """Changes first, and next whatever joins with what is known; a table itself only by columns that are known."""
    left = sorted(range(len(parts)), key=lambda place: parts[place] is None)
    known: set[str] = set()
    while left:
        place = next((one for one in left if known.intersection(_columns(joined, one))), left[0])
        yield place
        left.remove(place)
        known.update(_columns(joined, place))


def _columns(joined: NaturalJoin, place: int) -> Collection[str]:
    return joined.view.occurrences[place].columns
