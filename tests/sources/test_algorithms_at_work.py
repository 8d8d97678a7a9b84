"""The algorithms over real databases that four write to: each reaches the level that it promises, says the judge.

What runs is what a refresh runs, without Spark: units from the ledger and the logs, asks, publications by csn.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from rollview.algebra.definition import Declared
from rollview.algebra.natural_join import NaturalJoin, natural_join
from rollview.algebra.resolve import Known
from rollview.algebra.view import outline, plan
from rollview.capture.raw_answers import RawLookup
from rollview.compensate.pacing import IntervalWidth, propagate_to, roll_to
from rollview.compensate.rolling import Rolling
from rollview.compensate.sweep import SweepMaintainer
from rollview.compensate.timed import timed_partial, timed_result
from rollview.consistency.bags import Bag, Row, counted, plus
from rollview.consistency.history import History, HistoryUnit, PublishedVersion, Update
from rollview.consistency.join_view import Partial, keys_of
from rollview.consistency.join_view import join as joined_partials
from rollview.consistency.judge import judge
from rollview.consistency.levels import Level
from rollview.core.interval import Interval
from rollview.core.names import COUNT, CSN
from rollview.propagate.conversation import Conversation
from rollview.propagate.messages import SourceMessages
from rollview.propagate.queries import QueryRun
from rollview.relations.algorithm import BY_QUERIES, QUIET, ROLLING, SWEEP, machine_of
from rollview.relations.answers import KeyRequest, RawAnswer
from rollview.relations.reader import stored_as
from rollview.store.timed import loaded_changes
from rollview.warehouse import Warehouse
from tests.sizes import times
from tests.spark.sources.shop_at_sources import (
    TABLES,
    Database,
    mariadb_shop,
    postgres_shop,
    sqlite_shop,
    transaction,
    writers,
)

READ = ("orders", "customers", "regions")
ALGORITHMS = (SWEEP, *QUIET, "c-strobe", "c-tstrobe", *BY_QUERIES)
QUERY = """
    SELECT o.id, c.id AS customer, r.id AS region, o.amount, c.name, r.title
    FROM orders o JOIN customers c ON o.customer = c.id JOIN regions r ON c.region = r.id WHERE o.amount > 2
"""
HIDDEN = QUERY.replace("o.id, c.id AS customer, r.id AS region, ", "")
"""The same without any key: rows of it may be equal."""
HISTORIES = int(os.environ.get("ROLLVIEW_ALGORITHMS", times(5, 50)))
"""Of each mixture, so four times as many in all. Each is judged by itself, and goes on where the last one ended."""
ROUNDS = 2

MIXTURES = {
    "sqlite": {"sqlite": READ},
    "postgres": {"postgres": READ},
    "mariadb": {"mariadb": READ},
    "mixed": {"postgres": ("orders",), "mariadb": ("customers",), "sqlite": ("regions",)},
}


@pytest.fixture(
    params=[
        "sqlite",
        pytest.param("mixed", marks=[pytest.mark.postgres, pytest.mark.mariadb]),
        *(pytest.param(kind, marks=getattr(pytest.mark, kind)) for kind in ("postgres", "mariadb")),
    ]
)
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Database, ...]]:
    with ExitStack() as stack:
        found: list[Database] = []
        for kind, tables in MIXTURES[request.param].items():
            if kind == "sqlite":
                found.append(stack.enter_context(sqlite_shop(tmp_path, tables)))
            else:
                make = {"postgres": postgres_shop, "mariadb": mariadb_shop}[kind]
                found.append(stack.enter_context(make(request.getfixturevalue(f"{kind}_server"), tables)))
        yield tuple(found)


class KeptView:
    """A view in this process that goes from publication to publication, like one of a warehouse."""

    def __init__(self, warehouse: Warehouse, algorithm: str, join: NaturalJoin, rows: Bag, csn: int) -> None:
        self.warehouse, self.algorithm, self.join = warehouse, algorithm, join
        self.csn, self.versions = csn, [PublishedVersion(rows, csn)]
        self.lookup = partial(RawLookup, warehouse.catalog, warehouse.root / "data")
        within = {"rollview.publish_within": "1 hour"} if algorithm in QUIET else {}
        self.properties = {"rollview.algorithm": algorithm, **within}
        self.promises = machine_of(self.properties, join).promises
        self.problems: list[str] = []
        self.further = 0
        """How often it published what was committed while it waited."""

    def refresh(self, *, due: bool) -> None:
        snapshot = self.warehouse.snapshot()
        relations = {name: snapshot.get(name) for name in READ}
        with closing(self.lookup()) as lookup:
            messages = SourceMessages(self.join, lookup, relations, self.csn, self.algorithm == "eca")
            messages.begin()
            machine = machine_of(self.properties, self.join)
            wanted = tuple(unit for unit in messages.captured if unit.csn <= snapshot.moment.csn)
            quiet = self.algorithm in QUIET
            talk = Conversation(machine, messages, wanted, quiet=quiet, due=due, goes_on=not due)
            problem = talk.run(self.versions[-1].rows)
            self.further += bool(talk.published) and max(talk.published) > wanted[-1].csn
        if problem is not None:
            self.problems.append(problem.message)
        for csn, changed in sorted(talk.published.items()):
            self.versions.append(PublishedVersion(plus(self.versions[-1].rows, changed), csn))
            self.csn = csn
        if talk.is_done:
            self.csn = max(self.csn, snapshot.moment.csn)


class QueriedView:
    """The same of a view that is kept by propagation queries; versions are made of its timed delta."""

    promises = Level.COMPLETE

    def __init__(self, warehouse: Warehouse, algorithm: str, join: NaturalJoin, rows: Bag, csn: int) -> None:
        self.warehouse, self.algorithm, self.join = warehouse, algorithm, join
        self.csn, self.versions = csn, [PublishedVersion(rows, csn)]
        self.problems: list[str] = []

    def refresh(self, *, due: bool) -> None:
        snapshot = self.warehouse.snapshot()
        relations = {name: snapshot.get(name) for name in READ}
        goal, places = snapshot.moment.csn, len(self.join.view.occurrences)
        with closing(_Busy(self.warehouse)) as lookup:
            run = QueryRun(self.join, relations, lookup)
            if self.algorithm == ROLLING:
                rolling = Rolling(places, run.execute, begin=self.csn)
                roll_to(run, rolling, goal, [IntervalWidth(400) for _ in range(places)])
            else:
                propagate_to(run, places, Interval(self.csn, goal), IntervalWidth(400))
        for csn in sorted({csn for (csn, _), count in run.delta.items() if count and csn <= goal}):
            changed = counted((row, count) for (at, row), count in run.delta.items() if at == csn)
            self.versions.append(PublishedVersion(plus(self.versions[-1].rows, changed), csn))
        self.csn = goal


class SweptView:
    """The same of a view that is kept by sweep, as a refresh keeps it: sources are held, each table that is asked for
    is brought to the csn of the last refresh, and changes that are captured carry their csns. Only the join, which is
    Spark's part, is done here."""

    promises = SweepMaintainer.promises

    def __init__(self, warehouse: Warehouse, join: NaturalJoin, rows: Bag, csn: int) -> None:
        self.warehouse, self.algorithm, self.join = warehouse, SWEEP, join
        self.csn, self.versions = csn, [PublishedVersion(rows, csn)]
        self.problems: list[str] = []

    def refresh(self, *, due: bool) -> None:
        occurrences, delta = self.join.view.occurrences, Counter[tuple[int, Row]]()
        with closing(RawLookup(self.warehouse.catalog, self.warehouse.root / "data")) as lookup:
            snapshot = self.warehouse.snapshot()
            lookup.hold(map(snapshot.get, READ))
            over = Interval(self.csn, snapshot.moment.csn)
            for place in range(len(occurrences)):
                whole, left = self._changes(lookup, place, over), {*range(len(occurrences))} - {place}
                while left and whole.rows:
                    other = next(one for one in sorted(left) if {*occurrences[one].columns} & {*whole.columns})
                    left.remove(other)
                    there = self._before(lookup, other, whole, over.after)
                    # Tables before the changed one are seen at the beginning, those behind it at the end.
                    met = plus(there.rows, self._changes(lookup, other, over).rows) if other > place else there.rows
                    whole = joined_partials(whole, replace(there, rows=met))
                if not left and whole.rows:
                    delta.update(timed_result(self.join.view, whole, 1, max))
        for csn in sorted({csn for (csn, _), count in delta.items() if count}):
            changed = counted((row, count) for (at, row), count in delta.items() if at == csn)
            self.versions.append(PublishedVersion(plus(self.versions[-1].rows, changed), csn))
        self.csn = over.through

    def _changes(self, lookup: RawLookup, place: int, over: Interval) -> Partial:
        one = self.join.view.occurrences[place]
        table = self.warehouse.snapshot().get(self.join.tables[one.name].relation)
        return self._timed(place, lookup.changed(table, over).to_pylist())

    def _before(self, lookup: RawLookup, place: int, whole: Partial, at: int) -> Partial:
        one = self.join.view.occurrences[place]
        table = self.join.tables[one.name]
        equal = tuple(name for name in one.columns if name in whole.columns)
        keys = frozenset(keys_of(whole, equal).rows)
        relation = self.warehouse.snapshot().get(table.relation)
        return self._timed(place, lookup.rows(relation, table.own(one, equal), keys, at).to_pylist())

    def _timed(self, place: int, rows: Sequence[dict[str, Any]]) -> Partial:
        one = self.join.view.occurrences[place]
        table = self.join.tables[one.name]
        kept = (row for row in rows if table.selects(row))
        return timed_partial(one, ((tuple(row[c] for c in table.columns), row.get(CSN, 0), row[COUNT]) for row in kept))


class _Busy(RawLookup):
    """Captures between queries, so that those of one step see different csns."""

    def __init__(self, warehouse: Warehouse) -> None:
        super().__init__(warehouse.catalog, warehouse.root / "data")
        self._warehouse, self._queries = warehouse, 0

    def release(self, problem: str | None = None) -> None:
        super().release(problem)
        self._queries += 1
        if self._queries % 20 == 0:
            self._warehouse.capture()


class _Meanwhile(RawLookup):
    """Somebody commits before each of the first answers of a refresh."""

    def __init__(self, warehouse: Warehouse, shop: tuple[Database, ...], chance: Random) -> None:
        super().__init__(warehouse.catalog, warehouse.root / "data")
        self._shop, self._chance, self._left = shop, chance, 5

    def answer(self, wishes: Sequence[KeyRequest], after: int) -> RawAnswer:
        if self._left:
            self._left -= 1
            transaction(self._chance.choice(self._shop), self._chance)
        return super().answer(wishes, after)


def made(
    warehouse: Warehouse, algorithm: str, join: NaturalJoin, rows: Bag, csn: int
) -> KeptView | QueriedView | SweptView:
    if algorithm == SWEEP:
        return SweptView(warehouse, join, rows, csn)
    kind = QueriedView if algorithm in BY_QUERIES else KeptView
    return kind(warehouse, algorithm, join, rows, csn)


def joined(warehouse: Warehouse, query: str = QUERY) -> NaturalJoin:
    """With its keys, shown or not."""
    snapshot = warehouse.snapshot()
    known = {name: Known(name, snapshot.get(name).schema, snapshot.get(name).constraints) for name in READ}
    made = plan(outline(Declared("v", (), None, {}, query, False), known, keeps_keys=True), {})
    sources = {name: snapshot.get(name).source or "" for name in READ}
    return natural_join(made, sources)


def selected(join: NaturalJoin, table: str, rows: list[dict[str, object]]) -> Bag:
    """Of one table what the view selects, as the judge's table of that occurrence."""
    (name,) = (name for name, one in join.tables.items() if one.relation == table)
    one = join.tables[name]
    kept = [row for row in rows if one.selects(row)]
    return counted((tuple(row[c] for c in one.columns), int(row.get(COUNT, 1))) for row in kept)  # type: ignore[call-overload]


def states(shop: tuple[Database, ...], join: NaturalJoin) -> Mapping[str, Bag]:
    found = {}
    for database in shop:
        for table in database.tables:
            rows = [dict(zip(TABLES[table], row, strict=True)) for row in database.rows(table).elements()]
            (name,) = (name for name, one in join.tables.items() if one.relation == table)
            found[name] = selected(join, table, rows)
    return found


def units(warehouse: Warehouse, join: NaturalJoin, after: int) -> list[HistoryUnit]:
    """What the ledger has, source by source and csn by csn."""
    snapshot, found = warehouse.snapshot(), dict[tuple[int, str], list[Update]]()
    for one in join.view.occurrences:
        table = snapshot.get(join.tables[one.name].relation)
        stored = stored_as(warehouse.root / "data", table)
        by_csn: dict[int, list[dict[str, object]]] = {}
        for row in loaded_changes(stored, Interval(after, snapshot.moment.csn)).to_pylist():
            by_csn.setdefault(row[CSN], []).append(row)
        for csn, rows in by_csn.items():
            net = selected(join, table.name, rows)
            found.setdefault((csn, one.source), []).extend(Update(one.name, row, n) for row, n in net.items())
    return [HistoryUnit(source, tuple(told), csn=csn) for (csn, source), told in sorted(found.items()) if told]


def test_every_algorithm_reaches_its_level(shop: tuple[Database, ...], empty_warehouse: Warehouse) -> None:
    add_sources(shop, empty_warehouse)
    for seed in range(HISTORIES):
        check_history(shop, empty_warehouse, seed)


@pytest.mark.parametrize("shop", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)], indirect=True)
def test_what_is_committed_while_it_waits_is_published(shop: tuple[Database, ...], empty_warehouse: Warehouse) -> None:
    warehouse = empty_warehouse
    add_sources(shop, warehouse)
    join, began, chance = joined(warehouse), warehouse.snapshot().moment.csn, Random(1)
    initial = states(shop, join)
    views = [KeptView(warehouse, name, join, join.view.evaluate(initial), began) for name in QUIET]
    for _ in range(times(2, 40)):
        for view in views:
            for _ in range(4):
                transaction(chance.choice(shop), chance)
            warehouse.capture()
            view.lookup = partial(_Meanwhile, warehouse, shop, chance)
            view.refresh(due=False)
    warehouse.capture()
    for view in views:
        view.lookup = partial(RawLookup, warehouse.catalog, warehouse.root / "data")
        view.refresh(due=False)
    told = units(warehouse, join, began)
    for view in views:
        assert view.problems == []
        assert view.further, view.algorithm
        verdict = judge(History(join.view, initial, tuple(told), tuple(view.versions)))
        assert verdict.level >= view.promises, (view.algorithm, verdict)


def add_sources(shop: tuple[Database, ...], warehouse: Warehouse) -> None:
    chance = Random(0)
    for _ in range(10):
        transaction(chance.choice(shop), chance)
    for number, database in enumerate(shop):
        settings = database.settings(frozenset(database.tables))
        often = replace(settings, options={"asks_per_minute": "1000000"})
        warehouse.add_source(f"s{number}", often, declared=[_declared()])


def check_history(shop: tuple[Database, ...], warehouse: Warehouse, seed: int) -> None:
    """Four write, all algorithms refresh by turns, and each is judged from where the history began."""
    join, began = joined(warehouse, HIDDEN if seed % 2 else QUERY), warehouse.snapshot().moment.csn
    initial = states(shop, join)
    names = [name for name in ALGORITHMS if name != "eca" or len(shop) == 1]
    views = [made(warehouse, name, join, join.view.evaluate(initial), began) for name in names]
    for place in range(ROUNDS):
        # Who runs queries on tables as they are runs many: once in a history is enough.
        turns = [view for view in views if place or not isinstance(view, QueriedView)]
        with writers(shop, seed * 100 + place, 6):
            for view in turns:
                warehouse.capture()
                view.refresh(due=place % 2 == 1)
    assert [done.problem for done in warehouse.capture().sources if done.problem] == []
    told = units(warehouse, join, began)
    assert told
    now = join.view.evaluate(states(shop, join))
    for view in views:
        view.refresh(due=False)
        history = History(join.view, initial, tuple(told), tuple(view.versions))
        verdict = judge(history)
        assert verdict.level >= view.promises, (seed, view.algorithm, verdict)
        assert view.versions[-1].rows == now, (seed, view.algorithm, view.problems)


def _declared() -> str:
    return f"CREATE MATERIALIZED VIEW v AS {QUERY}"
