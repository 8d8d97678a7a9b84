"""Only the rows that a condition asks for are captured, at every csn; others are taken later, as of a position."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from rollview.core.interval import Interval
from rollview.errors import NotFound, OutOfReach, Unsupported
from rollview.relations.plans import check_reachable, high_water_mark
from rollview.sources import SourceSettings
from rollview.sources.kinds import open_new
from rollview.warehouse import Warehouse
from tests.sources.harness import ACCOUNTS, Bag, Harness, Row, Write, account, capture, stored, stored_at_each
from tests.sources.killing import killed
from tests.sources.mariadb_harness import MariadbHarness
from tests.sources.mysql_harness import MysqlHarness
from tests.sources.postgres_harness import PostgresHarness
from tests.sources.sqlite_harness import SqliteHarness

OWNERS = ("ann", "Ann", "bob", "BOB", "bob ", None)
BALANCES = ("5.00", "9.99", "10.00", "10.01", None)


def settings(harness: Any, rows: str) -> SourceSettings:
    whole: SourceSettings = harness.settings()
    return replace(whole, tables=tuple(replace(t, rows=rows if "account" in t.remote else "") for t in whole.tables))


def rich(row: Row) -> bool:
    _, owner, balance = row
    return owner is None or (owner != "bob" and balance is not None and balance >= Decimal(10))


RICH = "owner IS NULL OR NOT owner = 'bob' AND balance >= 10.00"


def chosen(rows: Bag, keep: Callable[[Row], bool]) -> Bag:
    return Counter({row: count for row, count in rows.items() if keep(row)})


def change(harness: Any, random_: random.Random) -> None:
    """One transaction of up to three writes over few keys."""
    present = {row[0]: row for row in harness.rows("account")}
    writes = []
    for number in random_.sample(range(1, 9), random_.randint(1, 3)):
        after = account(number, random_.choice(OWNERS), random_.choice(BALANCES))
        before = present.get(number)
        gone = before is not None and random_.random() < 0.3
        if after != before:
            writes.append(Write("account", before, None if gone else after))
    harness.write(*writes, Write("note", None, (str(random_.random()),)))


def test_a_captured_table_is_the_selected_table_at_every_csn(empty_warehouse: Warehouse, harness: Harness) -> None:
    random_ = random.Random(7)
    empty_warehouse.add_source("bank", settings(harness, RICH))
    seen = {empty_warehouse.snapshot().moment.csn: chosen(harness.rows("account"), rich)}
    for _ in range(12):
        change(harness, random_)
        capture(empty_warehouse)
        seen[empty_warehouse.snapshot().moment.csn] = chosen(harness.rows("account"), rich)
    assert len(set(map(str, seen.values()))) > 5
    assert stored_at_each(empty_warehouse, "account", seen) == list(seen.values())
    assert stored(empty_warehouse, "note") == harness.rows("note")


def test_more_rows_and_fewer_come_as_one_commit(empty_warehouse: Warehouse, harness: Harness) -> None:
    empty_warehouse.add_source("bank", settings(harness, "id < 2"))
    assert stored(empty_warehouse, "account") == chosen(harness.rows("account"), lambda row: row[0] < 2)
    harness.write(Write("account", ACCOUNTS[1], account(2, "eve", "1.00")), Write("account", ACCOUNTS[0]))
    before = empty_warehouse.snapshot().moment.csn
    empty_warehouse.resnapshot("bank", widen=True, settings=settings(harness, "id < 3"))
    assert stored(empty_warehouse, "account") == chosen(harness.rows("account"), lambda row: row[0] < 3)
    assert stored(empty_warehouse, "account", before) == Counter({ACCOUNTS[0]: 1})
    empty_warehouse.resnapshot("bank", widen=True, settings=settings(harness, ""))
    harness.write(Write("account", ACCOUNTS[2], account(3, "x", None)))
    capture(empty_warehouse)
    assert stored(empty_warehouse, "account") == harness.rows("account")
    empty_warehouse.resnapshot("bank", widen=True, settings=settings(harness, "owner = 'x'"))
    assert stored(empty_warehouse, "account") == Counter({account(3, "x", None): 1})


def test_a_table_that_is_emptied_and_filled_is_still_selected(empty_warehouse: Warehouse, harness: Harness) -> None:
    empty_warehouse.add_source("bank", settings(harness, RICH))
    harness.empty("account")
    harness.write(Write("account", None, account(5, None, None)), Write("account", None, account(6, "bob", "99.00")))
    capture(empty_warehouse)
    assert stored(empty_warehouse, "account") == Counter({account(5, None, None): 1})


@pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=getattr(pytest.mark, k)) for k in ("postgres", "mariadb", "mysql")]
)
def test_a_server_is_not_asked_for_rows_that_integers_leave_out(request: pytest.FixtureRequest, kind: str) -> None:
    server = request.getfixturevalue(f"{kind}_server")
    made = {"postgres": PostgresHarness, "mariadb": MariadbHarness, "mysql": MysqlHarness}[kind]
    with closing(made(server)) as bank:
        asked = settings(bank, "owner = 'nobody' AND (id = 1 OR NOT id <> 3 AND id IS NOT NULL)")
        source = open_new("bank", asked)
        with closing(source):
            with source.first_copy() as copy:
                remote = asked.tables[0].remote
                assert sorted(row[0] for rows in copy.rows(remote) for row in rows) == [1, 3]
            source.remove()


def test_killed_while_it_is_widened_and_then_captured(empty_warehouse: Warehouse, bank: Any) -> None:
    empty_warehouse.add_source("bank", settings(bank, "id < 2"))
    killed("widen", empty_warehouse.root, settings(bank, "id < 3"), "widen.declared")
    assert empty_warehouse.sources()[0].state == "widening"
    bank.write(Write("account", ACCOUNTS[1]), Write("account", None, account(0, "new", None)))
    capture(empty_warehouse)
    assert empty_warehouse.sources()[0].state == "active"
    assert stored(empty_warehouse, "account") == chosen(bank.rows("account"), lambda row: row[0] < 3)
    assert stored(empty_warehouse, "account", 1) == Counter({ACCOUNTS[0]: 1})


def drop_owner(warehouse: Warehouse, bank: Any) -> None:
    statement = "ALTER TABLE account DROP COLUMN owner"
    if bank.kind == "sqlite":
        warehouse.alter_source("bank", statement)
    else:
        bank.execute(statement)


def test_a_condition_follows_the_new_name_of_its_column(empty_warehouse: Warehouse, bank: Any) -> None:
    empty_warehouse.add_source("bank", settings(bank, "owner = 'ann'"))
    bank.execute("ALTER TABLE account RENAME COLUMN owner TO holder")
    bank.execute("INSERT INTO account VALUES (7, 'ann', 7), (8, 'bob', 8)")
    capture(empty_warehouse)
    assert empty_warehouse.snapshot().get("account").schema.names == ("id", "holder", "balance")
    ann = chosen(bank.rows("account"), lambda row: row[1] == "ann")
    assert stored(empty_warehouse, "account") == ann
    empty_warehouse.resnapshot("bank")
    assert stored(empty_warehouse, "account") == ann


def test_a_table_that_loses_a_column_of_its_condition_waits_alone(empty_warehouse: Warehouse, bank: Any) -> None:
    empty_warehouse.add_source("bank", settings(bank, "owner = 'ann'"))
    before = empty_warehouse.snapshot().moment.csn
    drop_owner(empty_warehouse, bank)
    bank.execute("INSERT INTO account VALUES (7, 7)")
    bank.write(Write("note", None, ("goes on",)))
    capture(empty_warehouse)
    assert empty_warehouse.sources()[0].state == "active"
    assert stored(empty_warehouse, "note") == bank.rows("note")
    snapshot = empty_warehouse.snapshot()
    table = snapshot.get("account")
    assert (table.waits_at, high_water_mark(snapshot, table)) == (before, before)
    assert table.problem is not None
    assert all(word in table.problem for word in ("account'", "'owner'", "rollview source resnapshot bank --widen"))
    assert [one.problem for one in empty_warehouse.status().tables if one.name == "account"] == [table.problem]
    assert stored(empty_warehouse, "account", before) == Counter({(1, Decimal(10)): 1})
    check_reachable(snapshot, table, before)
    with pytest.raises(OutOfReach, match="has lost column 'owner'") as refused:
        check_reachable(snapshot, table, before + 1)
    assert refused.value.facts["nearest"] == (before,)

    empty_warehouse.resnapshot("bank")
    assert empty_warehouse.snapshot().get("account").waits_at == before, "a copy does not tell which rows"
    bank.write(Write("note", None, ("and on",)))
    capture(empty_warehouse)
    assert stored(empty_warehouse, "note") == bank.rows("note")

    empty_warehouse.resnapshot("bank", widen=True, settings=settings(bank, "id > 1"))
    snapshot = empty_warehouse.snapshot()
    table = snapshot.get("account")
    assert (table.waits_at, table.problem) == (None, None)
    assert table.coarse == (Interval(before, snapshot.moment.csn),)
    check_reachable(snapshot, table, snapshot.moment.csn)
    with pytest.raises(OutOfReach) as refused:
        check_reachable(snapshot, table, before + 1)
    assert refused.value.facts["nearest"] == (before, snapshot.moment.csn)
    bank.execute("DELETE FROM account WHERE id = 3")
    capture(empty_warehouse)
    ids = {row[0] for row in bank.rows("account")} - {1}
    assert {row[0] for row in stored(empty_warehouse, "account")} == ids


def test_a_column_that_comes_back_ends_the_wait(empty_warehouse: Warehouse, bank: Any) -> None:
    empty_warehouse.add_source("bank", settings(bank, "owner = 'ann'"))
    drop_owner(empty_warehouse, bank)
    capture(empty_warehouse)
    assert empty_warehouse.snapshot().get("account").waits_at is not None
    bank.execute("ALTER TABLE account ADD COLUMN owner VARCHAR(100)")
    bank.execute("UPDATE account SET owner = 'ann' WHERE id = 2")
    capture(empty_warehouse)
    capture(empty_warehouse)
    table = empty_warehouse.snapshot().get("account")
    assert (table.waits_at, table.problem) == (None, None)
    assert stored(empty_warehouse, "account") == Counter({(2, Decimal("20.50"), "ann"): 1})


@pytest.mark.parametrize(
    ("rows", "error", "told"),
    [
        ("owner LIKE 'a%'", Unsupported, "LIKE"),
        ("upper(owner) = 'A'", Unsupported, "UPPER"),
        ("id = '1'", Unsupported, "type bigint"),
        ("owner = 1", Unsupported, "type string"),
        ("id IN (SELECT 1)", Unsupported, "SELECT"),
        ("nobody = 1", NotFound, "nobody"),
    ],
)
def test_a_condition_that_has_no_one_meaning_is_refused(
    empty_warehouse: Warehouse, tmp_path: Path, rows: str, error: type[Exception], told: str
) -> None:
    bank = SqliteHarness(tmp_path)
    with pytest.raises(error, match=told):
        empty_warehouse.add_source("bank", settings(bank, rows))
    assert not empty_warehouse.sources()
    assert bank.leftovers() == []
    empty_warehouse.add_source("bank", settings(bank, "id > 1"))
    with pytest.raises(error, match=told):
        empty_warehouse.resnapshot("bank", widen=True, settings=settings(bank, rows))
    capture(empty_warehouse)
    assert stored(empty_warehouse, "account") == chosen(bank.rows("account"), lambda row: row[0] > 1)
    bank.close()
