"""No row of a source is skipped, and none is deleted that is still there: each way in which that happened, by name."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rollview.sources import SourceSettings, TableSettings
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


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    folder = tmp_path / "inbox" / "orders"
    folder.mkdir(parents=True)
    return folder


def inbox_settings(root: Path, **options: str) -> SourceSettings:
    table = TableSettings("orders", "orders", {"id": "bigint"}, (), "csv")
    return SourceSettings("files", str(root), (table,), options)


def put(path: Path, *numbers: int) -> None:
    """A file that was written long ago."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in ("id", *numbers)))
    os.utime(path, (time.time() - 60,) * 2)


def orders(warehouse: Warehouse) -> list[int]:
    return sorted(number for (number,) in stored(warehouse, "orders").elements())


class Refusing:
    """The system, when it cannot show one path."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, call: str, path: Path) -> None:
        real = getattr(os, call)

        def refuse(place: object, *args: object, **options: object) -> object:
            if not isinstance(place, int) and os.path.realpath(os.fspath(place)) == str(path):  # type: ignore[call-overload]
                raise OSError(5, "Input/output error", str(path))
            return real(place, *args, **options)

        monkeypatch.setattr(os, call, refuse)


@pytest.mark.parametrize(
    ("call", "path"), [("scandir", "2026"), ("stat", "2026/b.csv"), ("open", "2026/b.csv"), ("scandir", "")]
)
def test_files_that_the_system_cannot_show_are_not_deleted(
    warehouse: Warehouse, inbox: Path, monkeypatch: pytest.MonkeyPatch, call: str, path: str
) -> None:
    put(inbox / "a.csv", 1)
    put(inbox / "2026" / "b.csv", 2, 3)
    warehouse.add_source("inbox", inbox_settings(inbox.parent, confirm_empty_seconds="0"))
    os.utime(inbox / "2026" / "b.csv", (time.time() - 30,) * 2)
    with monkeypatch.context() as patch:
        Refusing(patch, call, inbox / path)
        state, problem = stopped(warehouse)
    assert (state, "Input/output error" in problem) == ("retrying", True)
    assert orders(warehouse) == [1, 2, 3]
    capture(warehouse)
    assert orders(warehouse) == [1, 2, 3]


def seen_long_ago(warehouse: Warehouse) -> None:
    """As if the folders that look emptied had been seen so an hour before."""
    (source,) = warehouse.catalog.sources()
    assert source.position is not None
    empty = {
        table: dict.fromkeys(paths, "2026-01-01T00:00:00+00:00") for table, paths in source.memory["empty"].items()
    }
    with warehouse.catalog.write() as writer:
        writer.sources.advance(source.name, source.position, source.position, {**source.memory, "empty": empty})


@pytest.mark.parametrize("emptied", ["", "2026"])
def test_a_folder_that_has_lost_all_files_is_confirmed_first(warehouse: Warehouse, inbox: Path, emptied: str) -> None:
    put(inbox / "2026" / "b.csv", 2)
    if emptied:
        put(inbox / "a.csv", 1)
    before = [1, 2] if emptied else [2]
    warehouse.add_source("inbox", inbox_settings(inbox.parent))
    away = inbox.parent / "away"
    (inbox / "2026").rename(away)
    if not emptied:
        (inbox / "2026").mkdir()
    (done,) = warehouse.capture().sources
    assert done.units == 0
    (source,) = warehouse.sources()
    assert (source.state, "has lost all its files" in (source.alarm or "")) == ("active", True)
    capture(warehouse)
    assert orders(warehouse) == before
    # Back again, nothing has happened; gone again, it is confirmed again.
    shutil.rmtree(inbox / "2026", ignore_errors=True)
    away.rename(inbox / "2026")
    capture(warehouse)
    assert (warehouse.sources()[0].alarm, orders(warehouse)) == (None, before)
    shutil.rmtree(inbox / "2026")
    capture(warehouse)
    assert orders(warehouse) == before
    seen_long_ago(warehouse)
    capture(warehouse)
    assert (warehouse.sources()[0].alarm, orders(warehouse)) == (None, before[:-1])


def test_a_folder_whose_mount_went_away_is_never_taken_for_emptied(warehouse: Warehouse, tmp_path: Path) -> None:
    share = Path("/dev/shm")
    if not share.is_dir() or share.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no second device")
    mounted, bare, address = share / f"rollview-{os.getpid()}", tmp_path / "bare", tmp_path / "address"
    try:
        put(mounted / "orders" / "a.csv", 1)
        (bare / "orders").mkdir(parents=True)
        address.symlink_to(mounted)
        warehouse.add_source("inbox", inbox_settings(address, confirm_empty_seconds="0.001"))
        address.unlink()
        address.symlink_to(bare)
        for _ in range(3):
            state, problem = stopped(warehouse)
            assert (state, "is it mounted" in problem) == ("retrying", True)
        assert orders(warehouse) == [1]
        warehouse.resnapshot("inbox")
        assert orders(warehouse) == []
    finally:
        shutil.rmtree(mounted)


def test_a_file_that_is_always_being_written_is_shown(warehouse: Warehouse, inbox: Path) -> None:
    put(inbox / "a.csv", 1)
    warehouse.add_source("inbox", inbox_settings(inbox.parent, open_alarm="0 seconds"))
    (inbox / "a.csv").write_text("id\n1\n2\n")
    capture(warehouse)
    (source,) = warehouse.sources()
    assert "file 'a.csv'" in (source.oldest_open or "")
    since = source.open_since
    os.utime(inbox / "a.csv")
    capture(warehouse)
    (source,) = warehouse.sources()
    assert (source.open_since, "has been open since" in (source.alarm or "")) == (since, True)
    put(inbox / "a.csv", 1, 2)
    capture(warehouse)
    (source,) = warehouse.sources()
    assert (source.oldest_open, source.open_since, source.alarm) == (None, None, None)


def test_files_outside_of_the_folder_are_refused(warehouse: Warehouse, inbox: Path, tmp_path: Path) -> None:
    put(inbox / "a.csv", 1)
    put(tmp_path / "secret.csv", 7)
    put(inbox.parent / "other" / "b.csv", 2)
    warehouse.add_source("inbox", inbox_settings(inbox.parent))
    (inbox / "within.csv").symlink_to(inbox.parent / "other" / "b.csv")
    capture(warehouse)
    assert orders(warehouse) == [1, 2]
    (inbox / "out.csv").symlink_to(tmp_path / "secret.csv")
    state, problem = stopped(warehouse)
    assert (state, "secret.csv" in problem) == ("outside_folder", True)
    assert orders(warehouse) == [1, 2]
    (inbox / "out.csv").unlink()
    capture(warehouse)
    os.mkfifo(inbox / "pipe.csv")
    state, problem = stopped(warehouse)
    assert (state, "a FIFO" in problem) == ("not_a_file", True)
    (inbox / "pipe.csv").unlink()
    (inbox / "null.csv").symlink_to("/dev/null")
    assert stopped(warehouse)[0] == "outside_folder"


def test_files_outside_of_the_folder_are_read_if_the_settings_say_so(
    warehouse: Warehouse, inbox: Path, tmp_path: Path
) -> None:
    put(tmp_path / "elsewhere" / "b.csv", 2)
    (inbox / "out.csv").symlink_to(tmp_path / "elsewhere" / "b.csv")
    inbox.rename(tmp_path / "linked")
    inbox.symlink_to(tmp_path / "linked")
    warehouse.add_source("inbox", inbox_settings(inbox.parent, allow_outside="true"))
    assert orders(warehouse) == [2]
    (inbox / "null.csv").symlink_to("/dev/null")
    state, problem = stopped(warehouse)
    assert (state, "a device" in problem) == ("not_a_file", True)
