"""A captured table gets another name at its database, or is made anew under its own: one suite for all that can."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rollview.sources import SourceSettings, TableSettings
from rollview.warehouse import Warehouse
from tests.sources.harness import Write, account, capture, stored
from tests.sources.mariadb_harness import MariadbHarness
from tests.sources.mysql_harness import MysqlHarness
from tests.sources.postgres_harness import PostgresHarness
from tests.sources.sqlite_harness import SqliteHarness

SERVERS: dict[str, Any] = {"postgres": PostgresHarness, "mariadb": MariadbHarness, "mysql": MysqlHarness}
ANEW = "CREATE TABLE account (id INT PRIMARY KEY, owner VARCHAR(100), balance DECIMAL(12,2), more INT)"


@pytest.fixture(params=[*(pytest.param(kind, marks=getattr(pytest.mark, kind)) for kind in SERVERS), "sqlite"])
def bank(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    kind = request.param
    made = SERVERS[kind](request.getfixturevalue(f"{kind}_server")) if kind in SERVERS else SqliteHarness(tmp_path)
    with closing(made):
        yield made


def execute(bank: Any, *texts: str) -> None:
    for text in texts:
        if isinstance(bank, MariadbHarness):
            bank.execute(text)
        else:
            bank.connection.execute(text)


def settings(bank: Any) -> SourceSettings:
    tables = (TableSettings("account", "account"), TableSettings("note", "note"))
    return SourceSettings(bank.kind, bank.settings().address, tables)


def test_a_table_goes_on_under_another_name(empty_warehouse: Warehouse, bank: Any) -> None:
    """Also with rows before and after the change that nobody has read, twice, and with a column that has another."""
    empty_warehouse.add_source("bank", settings(bank))
    id_ = empty_warehouse.snapshot().get("account").id
    bank.write(Write("account", None, account(7, "fay", "7.00")))
    execute(bank, "ALTER TABLE account RENAME TO konto", "INSERT INTO konto VALUES (8, 'gus', 8)")
    bank.write(Write("note", None, ("between",)))
    capture(empty_warehouse)
    assert stored(empty_warehouse, "account") == bank.rows("konto")
    execute(
        bank,
        'ALTER TABLE konto RENAME TO "select"'
        if bank.kind in ("postgres", "sqlite")
        else "RENAME TABLE konto TO `select`",
    )
    name = '"select"' if bank.kind in ("postgres", "sqlite") else "`select`"
    execute(bank, f"ALTER TABLE {name} RENAME COLUMN owner TO holder", f"DELETE FROM {name} WHERE id < 3")
    capture(empty_warehouse)
    relation = empty_warehouse.snapshot().get("account")
    assert (relation.id, relation.schema.names) == (id_, ("id", "holder", "balance"))
    assert stored(empty_warehouse, "account") == bank.rows(name)
    record = empty_warehouse.catalog.source("bank")
    assert [table.remote for table in record.tables] == ["select", "note"]
    empty_warehouse.resnapshot("bank")
    assert stored(empty_warehouse, "account") == bank.rows(name)


@pytest.mark.parametrize("away", ["DROP TABLE account", "ALTER TABLE account RENAME TO account_old"])
def test_a_table_made_anew_is_its_own_substitute(empty_warehouse: Warehouse, bank: Any, away: str) -> None:
    empty_warehouse.add_source("bank", settings(bank))
    first, before = empty_warehouse.snapshot().moment.csn, bank.rows("account")
    ids = {one.column: one.id for one in empty_warehouse.schema_at("account", first).columns}
    execute(bank, away, ANEW, "INSERT INTO account VALUES (1, 'ann', 5, 6)")
    if bank.kind == "postgres":
        execute(bank, "ALTER TABLE account REPLICA IDENTITY FULL")
    bank.write(Write("note", None, ("beside",)))
    capture(empty_warehouse)
    assert empty_warehouse.sources()[0].state == "active"
    assert stored(empty_warehouse, "account") == bank.rows("account")
    assert stored(empty_warehouse, "note") == bank.rows("note")
    newest = empty_warehouse.snapshot().moment.csn
    now = {one.column: one.id for one in empty_warehouse.schema_at("account", newest).columns}
    assert (ids.items() <= now.items(), set(now)) == (True, {"id", "owner", "balance", "more"})
    assert stored(empty_warehouse, "account", first) == {(*row, None): count for row, count in before.items()}
    execute(bank, "UPDATE account SET more = 7")
    capture(empty_warehouse)
    assert stored(empty_warehouse, "account") == bank.rows("account")
