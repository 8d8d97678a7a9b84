"""A captured table gets another name at its database, or is made anew under its own: one suite for all that can."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from rollview.catalog import NewUnit, UnitPart
from rollview.errors import OutOfReach, SourceDown
from rollview.relations.plans import check_reachable
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


def make_account(bank: Any) -> None:
    execute(bank, ANEW, "INSERT INTO account VALUES (1, 'ann', 5, 6)")
    if bank.kind == "postgres":
        execute(bank, "ALTER TABLE account REPLICA IDENTITY FULL")


def test_a_table_that_is_gone_waits_alone_and_csns_until_it_is_back_are_refused(
    empty_warehouse: Warehouse, bank: Any
) -> None:
    empty_warehouse.add_source("bank", settings(bank))
    before = bank.rows("account")
    bank.write(Write("note", None, ("before",)))
    execute(bank, "DROP TABLE account")
    for text in ("one", "two"):
        bank.write(Write("note", None, (text,)))
        capture(empty_warehouse)
        assert stored(empty_warehouse, "note") == bank.rows("note")
    snapshot = empty_warehouse.snapshot()
    waits, gone = snapshot.get("account").waits_at, snapshot.moment.csn
    assert waits is not None
    assert waits < gone
    assert "is gone" in (snapshot.get("account").problem or "")
    assert empty_warehouse.sources()[0].state == "active"
    make_account(bank)
    bank.write(Write("note", None, ("three",)))
    capture(empty_warehouse)
    capture(empty_warehouse)
    now = empty_warehouse.snapshot()
    assert (now.get("account").waits_at, now.get("account").problem) == (None, None)
    assert stored(empty_warehouse, "account") == bank.rows("account")
    assert stored(empty_warehouse, "note") == bank.rows("note")
    assert stored(empty_warehouse, "account", waits) == {(*row, None): count for row, count in before.items()}
    for csn in range(waits + 1, now.moment.csn):
        with pytest.raises(OutOfReach) as refused:
            check_reachable(now, now.get("account"), csn)
        assert refused.value.facts["nearest"] == (waits, now.moment.csn)
    execute(bank, "UPDATE account SET more = 7")
    capture(empty_warehouse)
    assert stored(empty_warehouse, "account") == bank.rows("account")


def test_two_tables_that_are_gone_come_back_one_after_the_other(empty_warehouse: Warehouse, bank: Any) -> None:
    empty_warehouse.add_source("bank", settings(bank))
    execute(bank, "CREATE TABLE other (id INT PRIMARY KEY)", "DROP TABLE note")
    execute(bank, "DROP TABLE account")
    capture(empty_warehouse)
    waiting = [table.name for table in empty_warehouse.snapshot().tables() if table.waits_at is not None]
    assert sorted(waiting) == ["account", "note"]
    make_account(bank)
    capture(empty_warehouse)
    assert stored(empty_warehouse, "account") == bank.rows("account")
    execute(bank, "UPDATE account SET more = 7")
    capture(empty_warehouse)
    assert stored(empty_warehouse, "account") == bank.rows("account")
    assert empty_warehouse.snapshot().get("note").waits_at is not None
    execute(bank, "CREATE TABLE note (text VARCHAR(100))", "INSERT INTO note VALUES ('back')")
    if bank.kind == "postgres":
        execute(bank, "ALTER TABLE note REPLICA IDENTITY FULL")
    capture(empty_warehouse)
    assert stored(empty_warehouse, "note") == bank.rows("note")
    assert all(table.waits_at is None for table in empty_warehouse.snapshot().tables())


def test_a_table_that_is_another_is_refused_until_it_is_copied(empty_warehouse: Warehouse, bank: Any) -> None:
    """What other sources commit before the copy does not show the rows of the table that is gone."""
    empty_warehouse.add_source("bank", settings(bank))
    execute(bank, "DROP TABLE account")
    make_account(bank)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rollview.capture.run.copy_again", _fails)
        assert empty_warehouse.capture().sources[0].problem is not None
    with empty_warehouse.catalog.write() as writer:
        place = UnitPart("local", "1", "1", datetime.now(UTC))
        csn = writer.commit_units([NewUnit((place,), (), None)]).csn
    snapshot = empty_warehouse.snapshot()
    with pytest.raises(OutOfReach, match="is another since csn"):
        check_reachable(snapshot, snapshot.get("account"), csn)
    capture(empty_warehouse)
    assert stored(empty_warehouse, "account") == bank.rows("account")
    snapshot = empty_warehouse.snapshot()
    with pytest.raises(OutOfReach):
        check_reachable(snapshot, snapshot.get("account"), csn)


def _fails(*_: object, **__: object) -> None:
    raise SourceDown("bank", "it is away")
