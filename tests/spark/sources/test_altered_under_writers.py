"""Columns change at a database while four writers go on: views that follow go on, and no value is in a wrong column.

``ROLLVIEW_DDLS=40`` is the figure that is promised.
"""

from __future__ import annotations

import os
import random
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from tests.sizes import times
from tests.sources.harness import stored, stored_at_each
from tests.sources.mariadb_harness import MariadbHarness
from tests.sources.postgres_harness import PostgresHarness
from tests.sources.sqlite_harness import SqliteHarness

from rollview.sources import SourceSettings, TableSettings
from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

DDLS = int(os.environ.get("ROLLVIEW_DDLS", times(6, 40)))
WRITERS, EACH = 4, 1_000_000
SERVERS: dict[str, Callable[[Any], Any]] = {"postgres": PostgresHarness, "mariadb": MariadbHarness}
VIEWS = {
    "whole": "SELECT * FROM wide WHERE id % 2 = 0",
    "sums": "SELECT id % 5 AS k, SUM(a) AS a, MAX(b) AS b FROM wide GROUP BY id % 5",
    "pairs": "SELECT x.id, x.c, y.d FROM wide x JOIN wide y ON x.id = y.id",
}


@pytest.fixture(params=["sqlite"])
def bank(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    kind = request.param
    made = SERVERS[kind](request.getfixturevalue(f"{kind}_server")) if kind in SERVERS else SqliteHarness(tmp_path)
    with closing(made):
        yield made


class AlteredTable:
    """A table ``wide``. A value is of its column's own million, or the default that tells the column. No name returns,
    so a statement that names a column by a former name fails."""

    def __init__(self, bank: Any, chance: random.Random) -> None:
        self.bank, self._chance, self._done = bank, chance, 0
        self.names = dict(enumerate(("id", "a", "b", "c", "d")))
        self.wide: set[int] = set()
        self.execute = self.connect()
        self.execute("CREATE TABLE wide (id INT PRIMARY KEY, a INT, b INT, c INT, d INT)")
        if bank.kind == "postgres":
            self.execute("ALTER TABLE wide REPLICA IDENTITY FULL")
        self.execute(f"INSERT INTO wide VALUES (0, {EACH}, {2 * EACH}, {3 * EACH}, {4 * EACH})")

    def connect(self) -> Callable[[str], Any]:
        """A connection of its own."""
        if self.bank.kind == "sqlite":
            own = sqlite3.connect(self.bank.path, isolation_level=None, check_same_thread=False, timeout=60)
            return lambda text: own.execute(text).fetchall()
        if self.bank.kind == "postgres":
            return psycopg.connect(self.bank.url, autocommit=True, cursor_factory=psycopg.ClientCursor).execute
        connection = self.bank.server.connect(self.bank.database)
        connection.autocommit(True)
        return connection.cursor().execute  # type: ignore[no-any-return]

    def alter(self) -> None:
        self._done += 1
        choices = [self._rename, self._add, self._add, self._drop]
        self._chance.choice(choices if self.bank.kind == "sqlite" else [*choices, self._widen])()

    def _rename(self) -> None:
        one = self._chance.choice([one for one in self.names if one])
        new = f"r{self._done}"
        self._alter(f"RENAME COLUMN {self.names[one]} TO {new}")
        self.names = {**self.names, one: new}

    def _add(self) -> None:
        one, name = max(self.names) + self._done, f"n{self._done}"
        self._alter(f"ADD COLUMN {name} INT DEFAULT {one * EACH}")
        self.names = {**self.names, one: name}

    def _drop(self) -> None:
        """Of columns that no view names. SQLite's are dropped by a command, which captures what it did."""
        later = [one for one in self.names if one > 4]
        if later and self.bank.kind != "sqlite":
            one = self._chance.choice(later)
            self._alter(f"DROP COLUMN {self.names[one]}")
            self.names = {other: name for other, name in self.names.items() if other != one}

    def _widen(self) -> None:
        one = self._chance.choice([one for one in self.names if one])
        how = f"MODIFY {self.names[one]}" if self.bank.kind == "mariadb" else f"ALTER {self.names[one]} TYPE"
        self._alter(f"{how} BIGINT")

    def _alter(self, text: str) -> None:
        self.execute(f"ALTER TABLE wide {text}")


class Writers:
    """Each writes its own rows, naming the columns as it knows them at that moment."""

    def __init__(self, table: AlteredTable) -> None:
        self._table, self._stop, self.rows = table, threading.Event(), [0] * WRITERS
        self.failures: list[Exception] = []
        self._threads = [threading.Thread(target=self._write, args=(one,)) for one in range(WRITERS)]

    def __enter__(self) -> Writers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _write(self, number: int) -> None:
        execute, chance = self._table.connect(), random.Random(number)
        while not self._stop.wait(0.02):
            columns = [(one, name) for one, name in self._table.names.items() if one]
            self.rows[number] += 1
            id_ = 1 + number + WRITERS * self.rows[number]
            values = ", ".join(str(one * EACH + id_) for one, _ in columns)
            changed, name = chance.choice(columns)
            for text in (
                f"INSERT INTO wide (id, {', '.join(name for _, name in columns)}) VALUES ({id_}, {values})",
                f"UPDATE wide SET {name} = {changed * EACH + id_} WHERE id = {id_ - WRITERS}",
                f"DELETE FROM wide WHERE id = {id_ - 20 * WRITERS}",
            ):
                try:
                    execute(text)
                # The column has another name by now, or is gone.
                except Exception as error:
                    self.failures += [] if "column" in str(error).lower() else [error]


def test_views_follow_while_writers_go_on(spark: SparkSession, tmp_path: Path, bank: Any) -> None:
    chance = random.Random(DDLS)
    table = AlteredTable(bank, chance)
    with Warehouse.create(tmp_path / "w") as made:
        warehouse = Warehouse.open(made.root, spark=spark)
        about = (bank.kind, bank.settings().address, (TableSettings("wide", "wide"),))
        warehouse.add_source("bank", SourceSettings(*about))
        for name, query in VIEWS.items():
            warehouse.create_view(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        with Writers(table) as writers:
            for number in range(DDLS):
                table.alter()
                if chance.random() < 0.6 or number == DDLS - 1:
                    captured(warehouse)
                if number == DDLS // 2:
                    warehouse.refresh()
        assert writers.failures == []
        captured(warehouse)
        warehouse.refresh()
        check_columns(warehouse, table)
        for name in VIEWS:
            assert warehouse.verify(name).equal, name


def captured(warehouse: Warehouse) -> None:
    (done,) = warehouse.capture().sources
    assert done.problem is None, done.problem
    assert [view.name for view in warehouse.snapshot().views() if view.state is not None] == []


def check_columns(warehouse: Warehouse, table: AlteredTable) -> None:
    relation = warehouse.snapshot().get("wide")
    assert sorted(relation.schema.names) == sorted(table.names.values())
    shown = ", ".join(relation.schema.names)
    with closing(table.bank.connection.cursor()) as cursor:
        cursor.execute(f"SELECT {shown} FROM wide")
        assert stored(warehouse, "wide") == Counter(tuple(row) for row in cursor.fetchall())
    ids = {name: one for one, name in table.names.items()}
    csns = range(1, warehouse.snapshot().moment.csn + 1)
    for csn, rows in zip(csns, stored_at_each(warehouse, "wide", csns), strict=True):
        for row in rows:
            for name, value in zip(relation.schema.names, row, strict=True):
                assert name == "id" or value is None or value // EACH == ids[name], (csn, name, row)
