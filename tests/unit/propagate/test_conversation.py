"""What a machine publishes over sources that go on while they are asked: every csn that counts is the view at that csn.

Sources are simulated, so that each answer may meet new commits, see less than was logged, or lie between two units.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from tests.sizes import times

from rollview.algebra.definition import Declared
from rollview.algebra.natural_join import NaturalJoin, natural_join
from rollview.algebra.resolve import Known
from rollview.algebra.view import outline, plan
from rollview.catalog import Relation
from rollview.consistency.bags import Bag, bag, minus, plus
from rollview.consistency.history import Update
from rollview.core.names import COUNT, CSN
from rollview.core.schema import Column, Constraints, Schema
from rollview.propagate.conversation import Conversation, no_rows
from rollview.propagate.messages import SourceMessages
from rollview.relations.algorithm import QUIET, machine_of
from rollview.relations.answers import KeyRequest, RawAnswer

COLUMNS = {"a": ("id", "b"), "b": ("id", "c"), "c": ("id", "d")}
QUERY = """SELECT a.id, b.id AS bid, c.id AS cid, c.d FROM a JOIN b ON a.b = b.id JOIN c ON b.c = c.id WHERE c.d > 0"""

Row = tuple[Any, ...]
Change = tuple[str, Row, int]


@dataclass(frozen=True)
class Named:
    """As much of a relation as is asked for here."""

    name: str
    source: str


@dataclass
class Unit:
    source: str
    changes: list[Change]
    csn: int | None = None


@dataclass
class World:
    """``units``: in the order of commits, those with csns first. ``busy``: how often somebody commits meanwhile;
    ``hidden``: how often a commit that is logged cannot be seen yet."""

    chance: Random
    sources: Mapping[str, str]
    busy: float = 0.0
    hidden: float = 0.0
    goes_on: bool = False
    rows: dict[str, dict[int, Row]] = field(default_factory=lambda: {name: {} for name in COLUMNS})
    units: list[Unit] = field(default_factory=list)
    coming: list[list[Change]] = field(default_factory=list)
    """What is committed while the next answers are read, one each."""

    def commit(self) -> None:
        source = self.chance.choice(sorted(set(self.sources.values())))
        tables = [name for name, where in self.sources.items() if where == source]
        changes: list[Change] = []
        for _ in range(self.chance.randint(1, 3)):
            table, key = self.chance.choice(tables), self.chance.randrange(3)
            old = self.rows[table].pop(key, None)
            if old is not None:
                changes.append((table, old, -1))
            if self.chance.random() < 0.7:
                self.rows[table][key] = (key, self.chance.choice([None, 0, 1, 2]))
                changes.append((table, self.rows[table][key], 1))
        self.units.append(Unit(source, changes))

    def capture(self) -> int:
        """All that is there gets csns; each source keeps its order."""
        known = [unit for unit in self.units if unit.csn is not None]
        queues = {s: [u for u in self.units if u.csn is None and u.source == s] for s in set(self.sources.values())}
        while any(queues.values()):
            known.append(queues[self.chance.choice(sorted(s for s, some in queues.items() if some))].pop(0))
            known[-1].csn = len(known)
        self.units = known
        return len(known)

    def beyond_of(self, source: str) -> list[Unit]:
        return [unit for unit in self.units if unit.csn is None and unit.source == source]

    def at(self, csn: int) -> dict[str, list[Row]]:
        return {
            name: _rows(self.units, name, lambda unit: unit.csn is not None and unit.csn <= csn) for name in COLUMNS
        }

    # as the sources tell it

    def hold(self, relations: Iterable[Relation]) -> None:
        assert {relation.name for relation in relations} == COLUMNS.keys()

    def captured(self, relation: Relation, after: int) -> pa.Table:
        units = [unit for unit in self.units if unit.csn is not None and unit.csn > after]
        told = [
            (*row, count, unit.csn) for unit in units for table, row, count in unit.changes if table == relation.name
        ]
        return _table((*COLUMNS[relation.name], COUNT, CSN), told)

    def answer(self, wishes: Sequence[KeyRequest], after: int) -> RawAnswer:
        if self.coming:
            self.units.append(Unit("x", self.coming.pop(0)))
        while self.chance.random() < self.busy:
            self.commit()
        source = str(wishes[0].relation.source)
        unseen = [unit for unit in self.units[-2:] if self.chance.random() < self.hidden]
        rows = []
        for wish in wishes:
            names = COLUMNS[wish.relation.name]
            at = [names.index(name) for name in wish.equal]
            found = _rows(self.units, wish.relation.name, lambda unit: unit not in unseen)
            rows.append(_table(names, [row for row in found if tuple(row[i] for i in at) in wish.keys]))
        missed = frozenset(unit.csn for unit in unseen if unit.csn is not None and unit.source == source)
        return RawAnswer(tuple(rows), missed, tuple(unit not in unseen for unit in self.beyond_of(source)))

    def take(self, units: Mapping[str, int]) -> int:
        known = [unit for unit in self.units if unit.csn is not None]
        for source, number in units.items():
            for unit in self.beyond_of(source)[:number]:
                known.append(unit)
                unit.csn = len(known)
        self.units = [*known, *(unit for unit in self.units if unit.csn is None)]
        return len(known)

    def beyond(self, relation: Relation, number: int) -> Iterator[pa.Table]:
        unit = self.beyond_of(str(relation.source))[number]
        told = [(*row, count) for table, row, count in unit.changes if table == relation.name]
        yield _table((*COLUMNS[relation.name], COUNT), told)


def _rows(units: Iterable[Unit], table: str, seen: Any) -> list[Row]:
    found: dict[Row, int] = {}
    for unit in units:
        for name, row, count in unit.changes:
            if name == table and seen(unit):
                found[row] = found.get(row, 0) + count
    return [row for row, count in found.items() if count > 0]


def _table(names: Sequence[str], rows: Sequence[Row]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    return pa.table({name: pa.array(list(some), pa.int64()) for name, some in zip(names, columns, strict=True)})


def joined(sources: Mapping[str, str], query: str = QUERY) -> NaturalJoin:
    known = {
        name: Known(name, Schema(tuple(Column(one, "bigint") for one in columns)), Constraints(("id",)))
        for name, columns in COLUMNS.items()
    }
    return natural_join(plan(outline(Declared("v", (), None, {}, query, False), known), {}), sources)


def shown(join: NaturalJoin, tables: Mapping[str, list[Row]]) -> Bag:
    selected = {}
    for name, one in join.tables.items():
        told = [dict(zip(COLUMNS[one.relation], row, strict=True)) for row in tables[one.relation]]
        selected[name] = bag(tuple(row[c] for c in one.columns) for row in told if one.selects(row))
    return join.view.evaluate(selected)


def refresh(world: World, join: NaturalJoin, algorithm: str, about: tuple[Bag, int], due: bool) -> Conversation:
    rows, after = about
    relations: Any = {name: Named(name, source) for name, source in world.sources.items()}
    properties = {"rollview.algorithm": algorithm}
    if algorithm in QUIET:
        properties["rollview.publish_within"] = "1 hour"
    through = max((unit.csn for unit in world.units if unit.csn is not None), default=0)
    messages = SourceMessages(join, world, relations, after, atomic=algorithm == "eca")  # type: ignore[arg-type]
    messages.begin()
    # A refresh may be asked to stop before the newest csn.
    end = through if world.chance.random() < 0.7 else world.chance.randint(after, through)
    wanted = tuple(unit for unit in messages.captured if unit.csn <= end)
    machine = machine_of(properties, join)
    shown = partial(_with_keys, join, rows)
    further = no_rows if algorithm == "eca" else shown
    quiet, goes_on = algorithm in QUIET, world.goes_on
    talk = Conversation(machine, messages, wanted, quiet=quiet, due=due, goes_on=goes_on, shown=further)
    # Only the rows that what is wanted can take away, as in a warehouse.
    talk.run(shown([update for unit in wanted for part in unit.parts for update in part.updates]))
    return talk


def _with_keys(join: NaturalJoin, rows: Bag, updates: Sequence[Update]) -> Bag:
    left = join.view.key_deletes(rows, [(update.table, update.row) for update in updates])
    return minus(rows, left)


@pytest.mark.parametrize("sources", [{"a": "x", "b": "x", "c": "x"}, {"a": "x", "b": "y", "c": "y"}])
@pytest.mark.parametrize("algorithm", [*QUIET, "c-strobe", "c-tstrobe"])
def test_what_is_published_is_the_view_at_that_csn(
    algorithm: str, sources: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if algorithm == "eca" and len(set(sources.values())) > 1:
        return
    monkeypatch.setattr("rollview.propagate.conversation._PAUSE", 0)
    join, published, hurried, further = joined(sources), 0, 0, 0
    for seed in range(times(12, 400)):
        world = World(Random(seed), sources)
        rows: Bag = {}
        after = 0
        for place in range(5):
            for _ in range(world.chance.randint(1, 4)):
                world.commit()
            newest = world.capture()
            world.busy, world.hidden = (
                (0.0, 0.0) if place == 4 else world.chance.choice([(0.0, 0.3), (0.3, 0.0), (0.3, 0.2)])
            )
            world.goes_on = bool(seed % 2)
            talk = refresh(world, join, algorithm, (rows, after), due=place % 2 == 1)
            assert talk.goes_on or not talk.published or max(talk.published) <= talk.wanted[-1].csn
            further += bool(talk.published) and max(talk.published) > talk.wanted[-1].csn
            hurried += talk.is_done and place % 2 == 1
            for csn, changed in sorted(talk.published.items()):
                rows, after, published = plus(rows, changed), csn, published + 1
                assert rows == shown(join, world.at(csn)), (seed, place, csn)
            if algorithm not in QUIET:
                assert [*talk.published] == [unit.csn for unit in talk.wanted][: len(talk.published)]
            assert newest == world.units[newest - 1].csn
    assert published > 12
    assert hurried
    assert (further > 0) == (algorithm in QUIET)


@pytest.mark.parametrize("algorithm", QUIET)
def test_commits_while_it_waits_are_heard_and_published(algorithm: str) -> None:
    """Without them it would have to begin anew: each of the first answers shows another commit."""
    sources = dict.fromkeys(COLUMNS, "x")
    join, world = joined(sources), World(Random(1), sources)
    for table, row in (("a", (0, 0)), ("b", (0, 0)), ("c", (0, 1))):
        world.rows[table][0] = row
        world.units.append(Unit("x", [(table, row, 1)]))
    newest = world.capture()
    world.coming = [
        [("b", (0, 0), -1), ("b", (0, 1), 1)],
        [("c", (1, 2), 1)],
        [("a", (0, 0), -1), ("a", (1, 0), 1)],
    ]
    stopped = refresh(
        replace(world, coming=world.coming[:1], units=[*world.units]), join, algorithm, ({}, 0), due=False
    )
    assert not stopped.published
    world.goes_on = True
    talk = refresh(world, join, algorithm, ({}, 0), due=False)
    ((csn, rows),) = talk.published.items()
    assert csn == newest + 3
    assert rows == shown(join, world.at(csn)) == {(1, 0, 1, 2): 1}


@pytest.mark.parametrize("algorithm", ["strobe", "t-strobe", "g-strobe"])
def test_a_part_of_a_global_transaction_is_never_published_for_the_whole(algorithm: str) -> None:
    """The first part only deletes, so nothing is unanswered between the two."""
    sources = {"a": "x", "b": "y", "c": "y"}
    join, world = joined(sources), World(Random(1), sources)
    for source, table, row in (("x", "a", (0, 0)), ("x", "a", (1, 1)), ("y", "b", (0, 0)), ("y", "c", (0, 1))):
        world.units.append(Unit(source, [(table, row, 1)]))
    after = world.capture()
    before = shown(join, world.at(after))
    assert before == {(0, 0, 0, 1): 1}
    world.units.append(Unit("x", [("a", (0, 0), -1), ("b", (1, 0), 1)], csn=after + 1))
    talk = refresh(world, join, algorithm, (before, after), due=False)
    ((csn, changed),) = talk.published.items()
    assert csn == after + 1
    assert plus(before, changed) == shown(join, world.at(csn)) == {(1, 1, 0, 1): 1}
