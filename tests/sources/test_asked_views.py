"""The algorithms on real databases: views of tables that nobody copies, judged by the same judge as in the lab."""

from __future__ import annotations

import os
import sqlite3
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from rollview.capture.recorded_source import open_recorded
from rollview.compensate.algorithms import ALGORITHMS
from rollview.compensate.courier import Courier
from rollview.compensate.maintainer import Answered, AskFor, Heard, Publish, Reported, Seen
from rollview.consistency.bags import EMPTY, bag, counted
from rollview.consistency.history import History, HistoryUnit, PublishedVersion, Update
from rollview.consistency.join_view import JoinView, Occurrence, Partial, join, keys_of
from rollview.consistency.judge import judge
from rollview.sources import SourceSettings, TableSettings
from rollview.sources.asking import Ask
from rollview.sources.protocol import UnitOfWork
from rollview.warehouse import Warehouse
from tests.servers.postgres import PostgresServer
from tests.sources.harness import tuples
from tests.sources.postgres_harness import PostgresHarness

Execute = Callable[[str], object]
COMMITS = 12
SEEDS = int(os.environ.get("ROLLVIEW_ASKED_VIEWS", "2"))


class LiveView:
    """A view that reads its sources' logs and asks them; nothing of their tables is kept."""

    def __init__(self, view: JoinView, sources: dict[str, Any], positions: dict[str, str], name: str) -> None:
        self.view, self.sources, self.positions = view, sources, positions
        self.maintainer = Courier(ALGORITHMS[name](view))
        nothing = dict.fromkeys(sources, 0)
        self.state: Any = self.maintainer.begin(EMPTY, nothing)
        self.versions = [PublishedVersion(EMPTY, nothing)]
        self.units: dict[str, list[tuple[UnitOfWork, str]]] = {source: [] for source in sources}
        self.told: list[HistoryUnit] = []
        self.asks: deque[AskFor] = deque()

    def read(self, source: str) -> None:
        batch = self.sources[source].read(self.positions[source], 1000)
        after = self.positions[source]
        for unit in batch.units:
            self.units[source].append((unit, after))
            after = unit.position
            updates = tuple(_updates(unit))
            self.told.append(HistoryUnit(source, updates))
            self._hear(Reported(source, len(self.units[source]), updates))
        self.positions[source] = batch.position

    def answer(self) -> None:
        """The oldest ask, all of it in one snapshot; then the log is read as far as that snapshot saw."""
        ask = self.asks.popleft()
        wishes = [self._ask(*one) for one in zip(ask.partials, ask.wanted, strict=True)]
        found = self.sources[ask.source].ask([wish for wish, _ in wishes])
        self.read(ask.source)
        saw = [found.seen.saw(unit, after) for unit, after in self.units[ask.source]]
        if None in saw:
            # A part of a unit was seen: what is asked now sees it all.
            self.asks.appendleft(ask)
            return
        through = max((number for number, one in enumerate(saw, start=1) if one), default=0)
        seen = Seen(through, frozenset(number for number, one in enumerate(saw[:through], start=1) if not one))
        pairs = zip(ask.partials, wishes, found.rows, strict=True)
        partials = tuple(join(old, self.view.partial(name, bag(rows))) for old, (_, name), rows in pairs)
        self._hear(Answered(ask.source, ask.ask, partials, seen))

    def _ask(self, partial: Partial, wanted: tuple[str, ...]) -> tuple[Ask, str]:
        (name,) = wanted
        one = self.view.named[name]
        equal = tuple(column for column in one.columns if column in partial.columns)
        return Ask(one.table, one.columns, equal, frozenset(keys_of(partial, equal).rows)), name

    def _hear(self, event: Heard) -> None:
        self.state, said = self.maintainer.on(self.state, event)
        for one in said:
            if isinstance(one, Publish):
                self.versions.append(PublishedVersion(one.rows, one.through))
            else:
                self.asks.append(one)

    def history(self) -> History:
        return History(self.view, {}, tuple(self.told), tuple(self.versions))


def _updates(unit: UnitOfWork) -> Iterator[Update]:
    """Its net effect, deletes first: a unit of SQLite may be several transactions, and tells no order within."""
    for table, changes in unit.changes.items():
        counts = [(row, -1) for row in _rows(changes.before)] + [(row, 1) for row in _rows(changes.after)]
        net = sorted(counted(counts).items(), key=lambda item: item[1])
        yield from (Update(table, row, count) for row, count in net)


def _rows(some: Any) -> Iterator[Any]:
    return tuples(some) if isinstance(some, pa.Table) else iter(some)


def _view() -> JoinView:
    columns = {"r1": ("k1", "v1", "v2"), "r2": ("k2", "v2", "v3")}
    occurrences = tuple(Occurrence(t, names, (names[0],), f"s_{t}", t) for t, names in columns.items())
    return JoinView(occurrences, ("k1", "k2", "v1"))


def _create(table: str, execute: Execute) -> None:
    one, two, three = _view().named[table].columns
    execute(f"CREATE TABLE {table} ({one} INTEGER PRIMARY KEY, {two} INTEGER, {three} INTEGER)")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def databases(
    request: pytest.FixtureRequest, tmp_path: Path, empty_warehouse: Warehouse
) -> Iterator[tuple[dict[str, Execute], dict[str, Any], dict[str, str]]]:
    """The first table is in SQLite, the second in SQLite or PostgreSQL."""
    execute: dict[str, Execute] = {}
    settings: dict[str, SourceSettings] = {}
    opened: list[Any] = []
    for table in ("r1", "r2"):
        tables = (TableSettings(table, table),)
        if table == "r1" or request.param == "sqlite":
            path = tmp_path / f"{table}.db"
            connection = sqlite3.connect(path, isolation_level=None)
            opened.append(connection)
            execute[table] = connection.execute
            settings[table] = SourceSettings("sqlite", str(path), tables)
        else:
            server: PostgresServer = request.getfixturevalue("postgres_server")
            bank = PostgresHarness(server)
            opened.append(bank)
            execute[table] = _encoded(bank.connection)
            settings[table] = SourceSettings("postgres", bank.url, tables)
        _create(table, execute[table])
        if settings[table].kind == "postgres":
            execute[table](f"ALTER TABLE {table} REPLICA IDENTITY FULL")
        empty_warehouse.add_source(f"s_{table}", settings[table])
    catalog = empty_warehouse.catalog
    records = {f"s_{table}": catalog.source(f"s_{table}") for table in settings}
    sources = {name: open_recorded(catalog, record) for name, record in records.items()}
    yield execute, sources, {name: record.position for name, record in records.items()}
    for one in (*sources.values(), *opened):
        closing(one).__exit__(None, None, None)


def _encoded(connection: psycopg.Connection[Any]) -> Execute:
    return lambda text: connection.execute(text.encode())


def _commit(random: Random, table: str, keys: set[int], execute: Execute) -> None:
    key = random.randrange(3)
    names = _view().named[table].columns
    if key in keys and random.random() < 0.5:
        keys.remove(key)
        execute(f"DELETE FROM {table} WHERE {names[0]} = {key}")
    elif key in keys:
        execute(f"UPDATE {table} SET {names[1]} = {random.randrange(2)} WHERE {names[0]} = {key}")
    else:
        keys.add(key)
        execute(f"INSERT INTO {table} VALUES ({key}, {random.randrange(2)}, {random.randrange(2)})")


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("name", ["t-strobe", "c-tstrobe", "sweep"])
def test_a_view_of_tables_that_are_not_copied_keeps_its_level(
    name: str, seed: int, databases: tuple[dict[str, Execute], dict[str, Any], dict[str, str]]
) -> None:
    execute, sources, positions = databases
    live = LiveView(_view(), sources, dict(positions), name)
    random, present = Random(seed), {"r1": set[int](), "r2": set[int]()}
    commits = 0
    while commits < COMMITS or live.asks:
        choices = ["read"] * 3 + ["commit"] * 3 * (commits < COMMITS) + ["answer"] * bool(live.asks)
        choice = random.choice(choices)
        if choice == "commit":
            commits += 1
            table = random.choice(["r1", "r2"])
            _commit(random, table, present[table], execute[table])
        elif choice == "answer":
            live.answer()
        else:
            live.read(random.choice(list(sources)))
    for source in sources:
        live.read(source)
    while live.asks:
        live.answer()
    told = live.history()
    assert told.units
    assert judge(told, believe=False).level >= live.maintainer.promises
    assert judge(told).level >= live.maintainer.promises
    assert len(told.versions) > 1
