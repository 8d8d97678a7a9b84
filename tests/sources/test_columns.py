"""Only the columns that are asked for are captured; more are taken later, as of a position."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rollview.errors import NotFound
from rollview.sources import SourceSettings, TableSettings
from rollview.warehouse import Warehouse
from tests.sources.delta_harness import DeltaHarness
from tests.sources.harness import ACCOUNTS, Row, Write, account, capture, stored
from tests.sources.mariadb_harness import MariadbHarness
from tests.sources.mysql_harness import MysqlHarness
from tests.sources.postgres_harness import PostgresHarness
from tests.sources.sqlite_harness import SqliteHarness

KINDS = [
    "sqlite",
    "delta",
    *(pytest.param(kind, marks=getattr(pytest.mark, kind)) for kind in ("postgres", "mariadb", "mysql")),
]


@pytest.fixture(params=KINDS)
def bank(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    if request.param == "postgres":
        made: Any = PostgresHarness(request.getfixturevalue("postgres_server"))
    elif request.param == "mariadb":
        made = MariadbHarness(request.getfixturevalue("mariadb_server"))
    elif request.param == "mysql":
        made = MysqlHarness(request.getfixturevalue("mysql_server"))
    else:
        made = DeltaHarness(tmp_path) if request.param == "delta" else SqliteHarness(tmp_path)
    with closing(made):
        yield made


def settings(bank: Any, *columns: str) -> SourceSettings:
    whole: SourceSettings = bank.settings()
    return replace(
        whole, tables=tuple(replace(t, columns=columns if "account" in t.remote else ()) for t in whole.tables)
    )


def seen(bank: Any, *places: int) -> Counter[Row]:
    rows: Counter[Row] = Counter()
    for row, count in bank.rows("account").items():
        rows[tuple(row[place] for place in places)] += count
    return rows


def test_what_is_not_asked_for_is_not_captured(empty_warehouse: Warehouse, bank: Any) -> None:
    empty_warehouse.add_source("bank", settings(bank, "balance", "id"))
    assert empty_warehouse.snapshot().get("account").schema.names == ("id", "balance")
    assert stored(empty_warehouse, "account") == seen(bank, 0, 2)
    bank.write(Write("account", ACCOUNTS[0], account(1, "another", "10.00")), Write("note", None, ("x",)))
    bank.write(Write("account", ACCOUNTS[1], account(2, "bob", "7.00")), Write("account", ACCOUNTS[2]))
    capture(empty_warehouse)
    assert stored(empty_warehouse, "account") == seen(bank, 0, 2)
    assert stored(empty_warehouse, "note") == bank.rows("note")


def test_without_its_key_a_table_is_a_bag(empty_warehouse: Warehouse, bank: Any) -> None:
    empty_warehouse.add_source("bank", settings(bank, "owner"))
    assert empty_warehouse.snapshot().get("account").constraints.primary_key == ()
    bank.write(Write("account", None, account(4, "ann", None)), Write("account", None, account(5, "ann", "1.00")))
    capture(empty_warehouse)
    assert stored(empty_warehouse, "account")[("ann",)] == 3
    bank.write(Write("account", account(4, "ann", None)))
    capture(empty_warehouse)
    assert stored(empty_warehouse, "account") == seen(bank, 1)


def test_more_columns_are_taken_as_of_a_position(empty_warehouse: Warehouse, bank: Any) -> None:
    empty_warehouse.add_source("bank", settings(bank, "id"))
    bank.write(Write("account", ACCOUNTS[0]), Write("account", None, account(7, "new", "1.00")))
    capture(empty_warehouse)
    bank.write(Write("account", account(7, "new", "1.00"), account(7, "newer", "2.00")))
    done = empty_warehouse.resnapshot("bank", widen=True, settings=settings(bank, "id", "balance"))
    assert "has as well: balance" in done.notes[0]
    assert empty_warehouse.snapshot().get("account").schema.names == ("id", "balance")
    assert stored(empty_warehouse, "account") == seen(bank, 0, 2)
    assert stored(empty_warehouse, "account", 1) == Counter({(row[0], None): 1 for row in ACCOUNTS})
    bank.write(Write("account", account(7, "newer", "2.00"), account(7, "newest", "3.00")))
    capture(empty_warehouse)
    assert stored(empty_warehouse, "account") == seen(bank, 0, 2)
    empty_warehouse.resnapshot("bank", widen=True, settings=bank.settings())
    assert empty_warehouse.snapshot().get("account").schema.names == ("id", "balance", "owner")
    assert stored(empty_warehouse, "account") == seen(bank, 0, 2, 1)
    bank.write(Write("account", ACCOUNTS[1]))
    capture(empty_warehouse)
    assert stored(empty_warehouse, "account") == seen(bank, 0, 2, 1)


def test_a_column_that_is_not_there_is_refused(empty_warehouse: Warehouse, bank: Any) -> None:
    with pytest.raises(NotFound, match="'none'"):
        empty_warehouse.add_source("bank", settings(bank, "id", "none"))


def test_a_column_that_comes_back_is_another(empty_warehouse: Warehouse, tmp_path: Path) -> None:
    with closing(SqliteHarness(tmp_path)) as bank:
        owned = TableSettings("account", "account", types={"owner": "string"})
        empty_warehouse.add_source("bank", replace(bank.settings(), tables=(owned,)))
        empty_warehouse.alter_source("bank", "ALTER TABLE account DROP COLUMN owner")
        capture(empty_warehouse)
        before = empty_warehouse.snapshot().moment.csn
        bank.execute("ALTER TABLE account ADD COLUMN owner TEXT", "UPDATE account SET owner = 'zoe' WHERE id = 1")
        empty_warehouse.resnapshot("bank", widen=True)
        relation = empty_warehouse.snapshot().get("account")
        assert relation.schema.names == ("id", "balance", "owner")
        assert relation.schema.columns[2].stored != "owner"
        assert sorted((row[0], row[2]) for row in stored(empty_warehouse, "account")) == [
            (1, "zoe"),
            (2, None),
            (3, None),
        ]
        assert all(row[2] is None for row in stored(empty_warehouse, "account", before))
