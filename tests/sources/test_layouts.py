"""Tables whose columns change at random points, also while nobody reads: no value is ever in a wrong column.

``ROLLVIEW_DDLS=40`` is the figure that is promised.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rollview.sources import SourceSettings, TableSettings
from rollview.warehouse import Warehouse
from tests.sources.harness import Row, new_warehouse, stored
from tests.sources.mariadb_harness import MariadbHarness
from tests.sources.mysql_harness import MysqlHarness
from tests.sources.postgres_harness import PostgresHarness
from tests.sources.sqlite_harness import SqliteHarness

DDLS = int(os.environ.get("ROLLVIEW_DDLS", "10"))
IN_ONE_TABLE = 5

KINDS = [
    "sqlite",
    pytest.param("postgres", marks=pytest.mark.postgres),
    pytest.param("mariadb", marks=pytest.mark.mariadb),
    pytest.param("mysql", marks=pytest.mark.mysql),
]


class Altering:
    """A table ``wide`` whose columns change. Each value tells the column it was first written to."""

    def __init__(self, harness: Any, chance: random.Random) -> None:
        self._harness = harness
        self._chance = chance
        self._rows = self._added = 0
        self.settings = SourceSettings(
            harness.kind, harness.settings().address, (TableSettings("wide", "wide"), TableSettings("note", "note"))
        )
        self.execute("CREATE TABLE wide (id INT PRIMARY KEY, a INT, b INT, c VARCHAR(20), d VARCHAR(20), e INT)")
        if harness.kind == "postgres":
            self.execute("ALTER TABLE wide REPLICA IDENTITY FULL")

    def execute(self, text: str) -> list[Row]:
        if isinstance(self._harness, MariadbHarness):
            return list(self._harness.execute(text))
        cursor = self._harness.connection.execute(text if self._harness.kind == "sqlite" else text.encode())
        return [tuple(row) for row in cursor.fetchall()] if cursor.description else []

    def columns(self) -> list[str]:
        if self._harness.kind == "sqlite":
            return [row[1] for row in self.execute("PRAGMA table_info(wide)")]
        where = "table_schema = 'public'" if self._harness.kind == "postgres" else "table_schema = DATABASE()"
        names = f"SELECT column_name FROM information_schema.columns WHERE {where} AND table_name = 'wide'"
        return [row[0] for row in self.execute(f"{names} ORDER BY ordinal_position")]

    def rows(self, names: tuple[str, ...]) -> Counter[Row]:
        return Counter(self.execute(f"SELECT {', '.join(names)} FROM wide"))

    def work(self) -> None:
        columns = self.columns()[1:] if self.columns()[0] == "id" else [c for c in self.columns() if c != "id"]
        for _ in range(self._chance.randint(1, 3)):
            self._rows += 1
            values = ", ".join(f"'{1000 * (place + 1) + self._rows}'" for place in range(len(columns)))
            self.execute(f"INSERT INTO wide (id, {', '.join(columns)}) VALUES ({self._rows}, {values})")
        column = self._chance.choice(columns)
        self.execute(f"UPDATE wide SET {column} = '{self._chance.randint(1, 99)}' WHERE id % 3 = {self._rows % 3}")
        self.execute(f"DELETE FROM wide WHERE id % 7 = {self._chance.randint(0, 40)}")

    def alter(self) -> str:
        one, other = self._chance.sample([c for c in self.columns() if c != "id"], 2)
        self._added += 1
        statements = self._chance.choice(self._choices())(one, other, f"n{self._added}")
        for text in statements:
            self.execute(text)
        return "; ".join(statements)

    def _choices(self) -> list[Callable[[str, str, str], list[str]]]:
        alter = "ALTER TABLE wide"
        choices: list[Callable[[str, str, str], list[str]]] = [
            lambda one, other, new: [f"{alter} ADD COLUMN {new} INT DEFAULT 7"],
            lambda one, other, new: [f"{alter} RENAME COLUMN {one} TO {new}"],
            lambda one, other, new: [
                f"{alter} RENAME COLUMN {one} TO {new}",
                f"{alter} RENAME COLUMN {other} TO {one}",
                f"{alter} RENAME COLUMN {new} TO {other}",
            ],
        ]
        if self._harness.kind == "sqlite":
            return choices
        choices += [
            lambda one, other, new: [f"{alter} DROP COLUMN {one}"],
            lambda one, other, new: [f"{alter} DROP COLUMN {one}", f"{alter} ADD COLUMN {one} INT DEFAULT 8"],
        ]
        if self._harness.kind == "postgres":
            choices += [
                lambda one, other, new: [f"{alter} ALTER {one} TYPE varchar(40)"],
                lambda one, other, new: [f"{alter} ALTER {one} TYPE int USING {one}::int + 1"],
            ]
        else:
            choices += [
                lambda one, other, new: [f"{alter} MODIFY {one} VARCHAR(40) AFTER {other}"],
                lambda one, other, new: [f"{alter} CHANGE {one} {new} BIGINT FIRST, ADD INDEX ({other})"],
                lambda one, other, new: [f"{alter} ADD COLUMN {new} INT DEFAULT 9 AFTER id, DROP {one}"],
            ]
        return choices


@pytest.fixture(params=KINDS)
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Any]]:
    open_: list[Any] = []

    def make() -> Any:
        kind, folder = request.param, tmp_path / f"s{len(open_)}"
        folder.mkdir()
        if kind == "postgres":
            open_.append(PostgresHarness(request.getfixturevalue("postgres_server")))
        elif kind == "mariadb":
            open_.append(MariadbHarness(request.getfixturevalue("mariadb_server")))
        elif kind == "mysql":
            open_.append(MysqlHarness(request.getfixturevalue("mysql_server")))
        else:
            open_.append(SqliteHarness(folder))
        return open_[-1]

    yield make
    for harness in open_:
        harness.close()


def test_no_value_is_in_a_wrong_column(made: Callable[[], Any], tmp_path: Path) -> None:
    for seed in range(DDLS // IN_ONE_TABLE):
        with new_warehouse(tmp_path / f"w{seed}") as warehouse:
            _alter_one_table(warehouse, Altering(made(), random.Random(seed)), random.Random(seed))


def _alter_one_table(warehouse: Warehouse, table: Altering, chance: random.Random) -> None:
    table.work()
    warehouse.add_source("bank", table.settings)
    told: list[str] = []
    for _ in range(IN_ONE_TABLE):
        told.append(table.alter())
        table.work()
        if chance.random() < 0.6:
            _check(warehouse, table, told)
    _check(warehouse, table, told)


def _check(warehouse: Warehouse, table: Altering, told: list[str]) -> None:
    (done,) = warehouse.capture().sources
    state = warehouse.sources()[0].state
    if state == "lost_position":
        warehouse.resnapshot("bank")
    elif state == "schema_changed":
        pytest.skip(f"no column is left after {told}")
    else:
        assert done.problem is None, told
    relation = warehouse.snapshot().get("wide")
    assert stored(warehouse, "wide") == table.rows(relation.schema.names), told
    newest = relation.layouts[-1]
    assert newest.schema == relation.schema
    assert [layout.csn for layout in relation.layouts] == sorted(layout.csn for layout in relation.layouts)
