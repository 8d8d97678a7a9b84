"""The changes of a view over random (a, b], through definitions that follow each other.

Every csn has the definition that the product has for it. Between two definitions the changes are those of the product's
own propagation query; where one begins they are the difference; and what came before is carried on by the columns that
the definition goes on from. Columns of a synchronized view keep their names, so by these the law is checked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from random import Random
from typing import Any

from rollview.algebra.resolve import Known
from rollview.algebra.view import Mode, ViewPlan
from rollview.core.schema import Column, Schema
from tests.property.duck import Duck, View
from tests.property.histories import Change

Bag = Counter[tuple[Any, ...]]
"""Signed, where it is one of changes."""
State = Mapping[int, Sequence[Mapping[str, Any]]]
"""Rows of all tables by the tables' ids, values by the columns' names in files."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table as a definition sees it; ``columns``: with their names in files."""

    name: str
    id: int
    columns: tuple[tuple[str, str], ...]

    @property
    def known(self) -> Known:
        return Known(self.name, Schema(tuple(Column(name, "int") for name, _ in self.columns)))

    def rows(self, state: State) -> Bag:
        return Counter(tuple(row.get(stored) for _, stored in self.columns) for row in state.get(self.id, ()))


@dataclass(frozen=True, slots=True)
class Reading:
    """A view's definition at a csn; ``version``: which one it is; ``origin``: the old column of each."""

    version: tuple[int, ...]
    text: str
    tables: tuple[Table, ...]
    columns: tuple[str, ...]
    origin: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Changes:
    """``rows``: of the view at every csn, by the definition that it has there."""

    readings: Sequence[Reading]
    rows: Sequence[Bag]
    told: Sequence[Bag]

    def over(self, after: int, through: int) -> Bag:
        """In the columns of the interval's end."""
        since = next((t for t in range(through, after, -1) if self._begins(t)), None)
        if since is None:
            return _sum(self.told[after + 1 : through + 1])
        bridge = Counter(self.rows[since])
        bridge.subtract(self._carried(self.rows[since - 1], since))
        return _sum([self._carried(self.over(after, since - 1), since), bridge, *self.told[since + 1 : through + 1]])

    def check(self, after: int, through: int) -> None:
        before, names = self.readings[after].columns, self.readings[through].columns
        places = [before.index(name) for name in names]
        expected = Counter(self.rows[through])
        expected.subtract(self.over(after, through))
        mapped: Bag = Counter()
        for row, count in self.rows[after].items():
            mapped[tuple(row[place] for place in places)] += count
        assert _net(expected) == _net(mapped), f"({after}, {through}] of {self.readings[through].text}"

    def _begins(self, at: int) -> bool:
        return self.readings[at].version != self.readings[at - 1].version

    def _carried(self, rows: Mapping[tuple[Any, ...], int], at: int) -> Bag:
        before, origin = self.readings[at - 1].columns, dict(self.readings[at].origin)
        places = [before.index(origin[name]) if name in origin else None for name in self.readings[at].columns]
        carried: Bag = Counter()
        for row, count in rows.items():
            carried[tuple(None if place is None else row[place] for place in places)] += count
        return carried


def changes(random: Random, readings: Sequence[Reading], rows: Sequence[Bag], states: Sequence[State]) -> Changes:
    told: list[Bag] = []
    for _, group in groupby(
        range(len(readings)), lambda t: (readings[t].version, readings[t].text, readings[t].tables)
    ):
        csns = list(group)
        first = csns[0]
        is_new = first == 0 or readings[first].version != readings[first - 1].version
        told += [
            Counter() if is_new else _less(rows[first], rows[first - 1]),
            *_propagated(random, readings, rows, states, csns),
        ]
    return Changes(readings, rows, told)


def _propagated(
    random: Random,
    readings: Sequence[Reading],
    rows: Sequence[Bag],
    states: Sequence[State],
    csns: Sequence[int],
) -> Iterator[Bag]:
    """The changes at each csn but the first; of a view that is recomputed whole they are the difference."""
    first, last = csns[0], csns[-1]
    if first == last:
        return
    reading = readings[first]
    plan = _plan(reading.text, reading.columns, tuple(table.known for table in reading.tables))
    if plan.mode is Mode.WHOLE:
        yield from (_less(rows[t], rows[t - 1]) for t in csns[1:])
        return
    duck = Duck(tuple(table.known for table in reading.tables))
    for t in csns:
        duck.commit(
            t, {table.name: _moved(table, None if t == first else states[t - 1], states[t]) for table in reading.tables}
        )
    view = View(duck, "v", plan, first)
    while view.high_water_mark < last:
        view.propagate(min(last, view.high_water_mark + random.randint(1, 5)))
    for t in csns[1:]:
        bag: Bag = Counter()
        for row, count, csn in view.deltas:
            if csn == t:
                bag[row] += count
        yield bag
    duck.db.close()


@lru_cache(maxsize=4096)
def _plan(text: str, columns: tuple[str, ...], known: tuple[Known, ...]) -> ViewPlan:
    return Duck(known).compile("v", text, columns)


def _moved(table: Table, before: State | None, now: State) -> list[Change]:
    return list(_less(table.rows(now), Counter() if before is None else table.rows(before)).items())


def _less(now: Bag, before: Bag) -> Bag:
    difference = Counter(now)
    difference.subtract(before)
    return _net(difference)


def _sum(bags: Sequence[Bag]) -> Bag:
    total: Bag = Counter()
    for bag in bags:
        total.update(bag)
    return _net(total)


def _net(bag: Bag) -> Bag:
    return Counter({row: count for row, count in bag.items() if count})
