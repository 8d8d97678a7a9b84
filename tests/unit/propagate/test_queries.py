"""Propagation queries over tables that move on while they are executed: the delta is the view's at every csn."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from tests.unit.propagate.test_conversation import COLUMNS, QUERY, Named, joined

from rollview.algebra.natural_join import NaturalJoin
from rollview.compensate.pacing import IntervalWidth, propagate_to, roll_to
from rollview.compensate.rolling import Rolling
from rollview.compensate.timed import rolled
from rollview.consistency.bags import Bag, counted
from rollview.core.interval import Interval
from rollview.core.names import COUNT, CSN
from rollview.propagate.queries import QueryRun

Row = tuple[Any, ...]


@dataclass
class Moving:
    """Tables with all their changes, of which those up to ``now`` are captured; each query finds it further on."""

    chance: Random
    changes: dict[str, list[tuple[int, Row, int]]]
    now: int
    last: int
    asked: int = 0
    held: bool = False
    given: list[int] = field(default_factory=list)

    def hold(self, relations: Iterable[Any]) -> int:
        assert not self.held
        self.held, self.now = True, min(self.last, self.now + self.chance.randint(0, 1))
        return self.now

    def release(self, problem: str | None = None) -> None:
        self.held = False

    def changed(self, relation: Any, interval: Interval) -> pa.Table:
        assert self.held
        assert interval.through <= self.now, "what has no csn yet is not captured"
        some = [(csn, row, n) for csn, row, n in self.changes[relation.name] if csn in interval]
        names = COLUMNS[relation.name]
        return pa.Table.from_pylist([dict(zip(names, row, strict=True)) | {COUNT: n, CSN: csn} for csn, row, n in some])

    def rows(self, relation: Any, equal: tuple[str, ...], keys: frozenset[Row], at: int) -> pa.Table:
        assert self.held
        assert at == self.now
        self.asked += 1
        names = COLUMNS[relation.name]
        told = [(dict(zip(names, row, strict=True)), n) for row, n in self.state(relation.name, at).items()]
        found = [row | {COUNT: n} for row, n in told if tuple(row[name] for name in equal) in keys]
        self.given.append(len(found))
        return pa.Table.from_pylist(found)

    def state(self, table: str, at: int) -> Bag:
        return counted((row, n) for csn, row, n in self.changes[table] if csn <= at)


def moving(seed: int, csns: int, now: int) -> Moving:
    chance = Random(seed)
    changes: dict[str, list[tuple[int, Row, int]]] = {name: [] for name in COLUMNS}
    there: dict[str, list[Row]] = {name: [] for name in COLUMNS}
    for csn in range(csns + 1):
        for name in COLUMNS if csn == 0 else chance.sample(sorted(COLUMNS), 2):
            for _ in range(2):
                if there[name] and chance.random() < 0.4:
                    row, n = there[name].pop(chance.randrange(len(there[name]))), -1
                else:
                    row, n = (chance.randrange(3), chance.choice([None, 0, 1, 2])), 1
                    there[name].append(row)
                changes[name].append((csn, row, n))
    return Moving(chance, changes, now, csns)


def view_at(join: NaturalJoin, tables: Moving, csn: int) -> Bag:
    found = {}
    for one in join.view.occurrences:
        table = join.tables[one.name]
        rows = tables.state(table.relation, csn).items()
        told = ((dict(zip(COLUMNS[table.relation], row, strict=True)), n) for row, n in rows)
        found[one.table] = counted((tuple(row[c] for c in table.columns), n) for row, n in told if table.selects(row))
    return join.view.evaluate(found)


FOUR = (
    "SELECT a.id, b.id AS bid, c.id AS cid, e.d FROM a JOIN b ON a.b = b.id JOIN c ON b.c = c.id JOIN c e ON c.d = e.id"
)
"""One of them read twice: from three tables on, RollingPropagate needs more than is printed."""


@pytest.mark.parametrize("rolls", [False, True])
@pytest.mark.parametrize(("places", "query"), [(3, QUERY), (4, FOUR)])
def test_the_delta_is_the_views_at_every_csn(rolls: bool, places: int, query: str) -> None:
    begin, goal = 2, 6
    for seed in range(5 if places == 3 else 2):
        tables, join = moving(seed, 14, goal), joined({"a": "x", "b": "y", "c": "y"}, query)
        run = QueryRun(join, {name: Named(name, "x") for name in COLUMNS}, tables)  # type: ignore[arg-type, type-var]
        if rolls:
            widths = [IntervalWidth(12, csns=2) for _ in range(places)]
            roll_to(run, Rolling(places, run.execute, begin=begin), goal, widths)
        else:
            propagate_to(run, places, Interval(begin, goal), IntervalWidth(12, csns=2))
        assert not tables.held
        assert tables.asked
        assert all(csn > begin for csn, _ in run.delta)
        first = view_at(join, tables, begin)
        for csn in range(begin, goal + 1):
            assert rolled(first, run.delta, csn) == view_at(join, tables, csn), (seed, csn)


def test_without_changes_nothing_is_asked() -> None:
    tables, join = moving(1, 8, 8), joined({"a": "x", "b": "y", "c": "y"})
    tables.changes = {name: [one for one in some if one[0] == 0] for name, some in tables.changes.items()}
    run = QueryRun(join, {name: Named(name, "x") for name in COLUMNS}, tables)  # type: ignore[arg-type, type-var]
    propagate_to(run, 3, Interval(0, 8), IntervalWidth(100))
    assert (run.delta, tables.asked, run.executed) == ({}, 0, 3)
