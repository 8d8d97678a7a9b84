"""No row of a source is skipped, and none is deleted that is still there: each way in which that happened, by name."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rollview.warehouse import Warehouse
from tests.sources.harness import Write, account, capture, new_warehouse, stored
from tests.sources.sqlite_harness import SqliteHarness
from tests.sources.test_kills import killed


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[Warehouse]:
    with new_warehouse(tmp_path / "warehouse") as made:
        yield made


@pytest.fixture
def sqlite_bank(tmp_path: Path) -> Iterator[SqliteHarness]:
    with closing(SqliteHarness(tmp_path)) as made:
        yield made


def stopped(warehouse: Warehouse) -> tuple[str, str]:
    """The state and the problem of the one source after it was captured in vain."""
    (done,) = warehouse.capture().sources
    assert done.problem is not None
    (source,) = warehouse.sources()
    return source.state, source.problem or ""


def write_accounts(bank: SqliteHarness, *numbers: int) -> None:
    bank.write(*(Write("account", None, account(number, "new", None)) for number in numbers))


def test_sqlite_log_made_anew_and_not_published_is_a_lost_position(
    warehouse: Warehouse, sqlite_bank: SqliteHarness
) -> None:
    warehouse.add_source("bank", sqlite_bank.settings())
    write_accounts(sqlite_bank, 10, 11, 12)
    capture(warehouse)
    killed("resnapshot", warehouse.root, sqlite_bank.settings(), "widen.declared")
    # The numbers of the new log reach the old position, and go beyond it.
    write_accounts(sqlite_bank, *range(20, 30))
    state, problem = stopped(warehouse)
    assert state == "lost_position"
    assert "made anew" in problem
    warehouse.resnapshot("bank")
    assert stored(warehouse, "account") == sqlite_bank.rows("account")
    write_accounts(sqlite_bank, 40)
    capture(warehouse)
    assert stored(warehouse, "account") == sqlite_bank.rows("account")


@pytest.mark.parametrize("written_since", [0, 1, 5])
def test_sqlite_restored_from_a_backup_is_a_lost_position(
    warehouse: Warehouse, sqlite_bank: SqliteHarness, tmp_path: Path, written_since: int
) -> None:
    warehouse.add_source("bank", sqlite_bank.settings())
    write_accounts(sqlite_bank, 10)
    capture(warehouse)
    with closing(sqlite3.connect(tmp_path / "backup.db")) as backup:
        sqlite_bank.connection.backup(backup)
        write_accounts(sqlite_bank, 11)
        capture(warehouse)
        backup.backup(sqlite_bank.connection)
    for number in range(20, 20 + written_since):
        write_accounts(sqlite_bank, number)
    assert stopped(warehouse)[0] == "lost_position"
    warehouse.resnapshot("bank")
    assert stored(warehouse, "account") == sqlite_bank.rows("account")


def test_sqlite_position_of_an_older_rollview_is_told_what_to_do(
    warehouse: Warehouse, sqlite_bank: SqliteHarness
) -> None:
    warehouse.add_source("bank", sqlite_bank.settings())
    (source,) = warehouse.catalog.sources()
    with warehouse.catalog.write() as writer:
        writer.sources.advance("bank", source.position, "1,1", None)
    state, problem = stopped(warehouse)
    assert state == "lost_position"
    assert "older rollview" in problem
    warehouse.resnapshot("bank")
    write_accounts(sqlite_bank, 10)
    capture(warehouse)
    assert stored(warehouse, "account") == sqlite_bank.rows("account")


def test_sqlite_file_that_is_gone_is_down_and_not_made(warehouse: Warehouse, sqlite_bank: SqliteHarness) -> None:
    warehouse.add_source("bank", sqlite_bank.settings())
    away = sqlite_bank.path.with_suffix(".away")
    sqlite_bank.path.rename(away)
    state, problem = stopped(warehouse)
    assert (state, "there is no file" in problem) == ("retrying", True)
    assert not sqlite_bank.path.exists()
    away.rename(sqlite_bank.path)
    write_accounts(sqlite_bank, 10)
    capture(warehouse)
    assert stored(warehouse, "account") == sqlite_bank.rows("account")
