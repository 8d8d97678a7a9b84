"""No row of a source is skipped, and none is deleted that is still there: each way in which that happened, by name."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from rollview.core.schema import Column, Schema
from rollview.errors import OutsideFolder
from rollview.sources import SourceSettings, TableSettings
from rollview.sources.files.source import FilesSource
from rollview.sources.postgres import slot
from rollview.sources.protocol import Opening, SourceTable
from rollview.warehouse import Warehouse
from tests.servers.postgres import PostgresServer
from tests.sources.debezium_harness import Connector, DebeziumHarness, events
from tests.sources.delta_harness import DeltaHarness
from tests.sources.harness import Write, account, capture, new_warehouse, stored
from tests.sources.postgres_harness import PostgresHarness
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


def test_sqlite_copied_again_and_not_published_is_read_on_from_its_old_log(
    warehouse: Warehouse, sqlite_bank: SqliteHarness
) -> None:
    warehouse.add_source("bank", sqlite_bank.settings())
    write_accounts(sqlite_bank, 10, 11, 12)
    capture(warehouse)
    killed("resnapshot", warehouse.root, sqlite_bank.settings(), "widen.declared")
    # The numbers of the new log reach the old position, and go beyond it.
    write_accounts(sqlite_bank, *range(20, 30))
    capture(warehouse)
    assert stored(warehouse, "account") == sqlite_bank.rows("account")


def test_sqlite_log_made_anew_is_a_lost_position(warehouse: Warehouse, sqlite_bank: SqliteHarness) -> None:
    warehouse.add_source("bank", sqlite_bank.settings())
    write_accounts(sqlite_bank, 10, 11, 12)
    capture(warehouse)
    for name in sqlite_bank.leftovers():
        if "_log_" in name:
            sqlite_bank.connection.execute(f"DELETE FROM {name}")
            sqlite_bank.connection.execute("DELETE FROM sqlite_sequence WHERE name = ?", (name,))
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


def test_files_that_are_read_twice_in_one_capture_come_once(inbox: Path) -> None:
    """As when another source that is captured with them has more to read."""
    settings = inbox_settings(inbox.parent)
    table = SourceTable("orders", Schema((Column("id", "bigint"),)))
    put(inbox / "a.csv", 1)
    with FilesSource(Opening("inbox", settings, settings.address, {}, {})).first_copy() as copy:
        source = FilesSource(Opening("inbox", settings, settings.address, copy.memory, {"orders": table}))
    put(inbox / "b.csv", 2)
    first = source.read(copy.position, 10)
    assert (len(first.units), len(source.read(first.position, 10).units)) == (1, 0)
    put(inbox / "c.csv", 3)
    for _ in range(2):
        (unit,) = source.read(first.position, 10).units
        assert unit.changes["orders"].after == [(3,)]


@pytest.fixture
def events_bank(tmp_path: Path) -> DebeziumHarness:
    return DebeziumHarness(tmp_path)


def numbered(bank: DebeziumHarness, number: int, *writes: Write) -> None:
    """A transaction in a file of its own, whose number has no leading zeroes."""

    def send(_topic: str, record: object) -> None:
        with (bank.root / f"events-{number}.jsonl").open("a") as file:
            file.write(json.dumps(record) + "\n")

    connector = Connector(send)
    connector._number = 1000 + number
    connector.transaction(list(events(bank._rows, writes)))


def debezium_settings(bank: DebeziumHarness, **options: str) -> SourceSettings:
    settings = bank.settings()
    return SourceSettings(settings.kind, settings.address, settings.tables, {**settings.options, **options})


def test_an_event_file_that_sorts_below_the_position_is_a_lost_position(
    warehouse: Warehouse, events_bank: DebeziumHarness
) -> None:
    warehouse.add_source("bank", events_bank.settings())
    numbered(events_bank, 8, Write("note", None, ("eight",)))
    numbered(events_bank, 9, Write("note", None, ("nine",)))
    capture(warehouse)
    numbered(events_bank, 10, Write("note", None, ("ten",)))
    state, problem = stopped(warehouse)
    assert (state, "'events-10.jsonl' was never read" in problem) == ("lost_position", True)
    assert "file_order: natural" in problem


def test_event_files_that_were_read_may_go(warehouse: Warehouse, events_bank: DebeziumHarness) -> None:
    warehouse.add_source("bank", events_bank.settings())
    for number in (7, 8, 9):
        numbered(events_bank, number, Write("note", None, (f"{number}",)))
        capture(warehouse)
    (events_bank.root / "events-7.jsonl").unlink()
    capture(warehouse)
    assert stored(warehouse, "note") == events_bank.rows("note")
    # A name that was read once, and comes back below the position, is another file.
    numbered(events_bank, 7, Write("note", None, ("again",)))
    assert stopped(warehouse)[0] == "lost_position"


def test_event_files_in_an_order_that_names_do_not_tell_are_refused(
    warehouse: Warehouse, events_bank: DebeziumHarness
) -> None:
    warehouse.add_source("bank", events_bank.settings())
    numbered(events_bank, 9, Write("account", None, account(9, "new", None)))
    numbered(events_bank, 10, Write("account", account(9, "new", None), account(9, "newer", None)))
    state, problem = stopped(warehouse)
    assert (state, "by the numbers in them" in problem) == ("lost_position", True)
    assert not warehouse.check_source("bank").ready


@pytest.mark.parametrize("at_once", [True, False])
def test_event_files_are_read_in_natural_order_by_option(
    warehouse: Warehouse, events_bank: DebeziumHarness, at_once: bool
) -> None:
    warehouse.add_source("bank", debezium_settings(events_bank, file_order="natural"))
    numbered(events_bank, 9, Write("account", None, account(9, "new", None)))
    if not at_once:
        capture(warehouse)
    numbered(events_bank, 10, Write("account", account(9, "new", None), account(9, "newer", None)))
    capture(warehouse)
    assert stored(warehouse, "account") == events_bank.rows("account")


def test_an_events_folder_that_is_empty_or_gone_is_down(warehouse: Warehouse, events_bank: DebeziumHarness) -> None:
    warehouse.add_source("bank", events_bank.settings())
    away = events_bank.root.with_name("away")
    events_bank.root.rename(away)
    assert stopped(warehouse)[0] == "retrying"
    events_bank.root.mkdir()
    assert stopped(warehouse)[0] == "retrying"
    events_bank.root.rmdir()
    away.rename(events_bank.root)
    events_bank.write(Write("note", None, ("back",)))
    capture(warehouse)
    assert stored(warehouse, "note") == events_bank.rows("note")


def test_event_files_outside_of_the_folder_are_refused(
    warehouse: Warehouse, events_bank: DebeziumHarness, tmp_path: Path
) -> None:
    warehouse.add_source("bank", events_bank.settings())
    (tmp_path / "secret.jsonl").write_text("{}\n")
    link = events_bank.root / "events-9999.jsonl"
    link.symlink_to(tmp_path / "secret.jsonl")
    assert stopped(warehouse)[0] == "outside_folder"
    link.unlink()
    os.mkfifo(link)
    assert stopped(warehouse)[0] == "not_a_file"


def test_a_transaction_without_its_end_is_shown_with_its_age_and_an_alarm(
    warehouse: Warehouse, events_bank: DebeziumHarness
) -> None:
    warehouse.add_source("bank", debezium_settings(events_bank, open_alarm="1 hour"))
    held: list[dict[str, object]] = []
    Connector(lambda _, record: held.append(record)).transaction(
        list(events(events_bank._rows, (Write("note", None, ("x",)),)))
    )
    begin, event, end = held
    events_bank.send("", begin)
    events_bank.send("", event)
    capture(warehouse)
    (source,) = warehouse.sources()
    assert (source.oldest_open, source.alarm) == ("transaction 501", None)
    assert source.open_since is not None
    (warehouse.root.parent / "events" / "events-0001.jsonl").write_text(
        "".join((events_bank.root / "events-0001.jsonl").read_text().splitlines(keepends=True)[:-2])
    )
    stale = {**event, "source": {**event["source"], "ts_us": 10**15}}  # type: ignore[dict-item]
    events_bank.send("", begin)
    events_bank.send("", stale)
    capture(warehouse)
    (source,) = warehouse.sources()
    assert "transaction 501 has been open since 2001-09-09 01:46:40 UTC" in (source.alarm or "")
    assert (source.open_seconds or 0) > 3600
    events_bank.send("", end)
    assert capture(warehouse).units == 1
    (source,) = warehouse.sources()
    assert (source.oldest_open, source.open_since, source.alarm) == (None, None, None)


@pytest.mark.postgres
def test_a_transaction_that_postgresql_has_open_for_long_is_shown(
    warehouse: Warehouse, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slot, "_LONG", "0 seconds")
    with closing(PostgresHarness(postgres_server)) as bank:
        settings = bank.settings()
        options = {**settings.options, "open_alarm": "0 seconds"}
        warehouse.add_source("bank", SourceSettings(settings.kind, settings.address, settings.tables, options))
        with psycopg.connect(bank.url) as writer:
            writer.execute("INSERT INTO note VALUES ('not yet')")
            capture(warehouse)
            (source,) = warehouse.sources()
            assert f"of process {writer.info.backend_pid}" in (source.oldest_open or "")
            assert "has been open since" in (source.alarm or "")
        assert capture(warehouse).units == 1
        (source,) = warehouse.sources()
        assert (source.oldest_open, source.alarm) == (None, None)


@pytest.fixture
def lake(tmp_path: Path) -> DeltaHarness:
    return DeltaHarness(tmp_path)


@pytest.mark.parametrize("gone", ["", "note", "note/_delta_log"])
def test_a_delta_table_that_is_away_is_down(warehouse: Warehouse, lake: DeltaHarness, gone: str) -> None:
    warehouse.add_source("lake", lake.settings())
    lake.write(Write("note", None, ("new",)))
    away = lake.root.with_name("away")
    (lake.root / gone).rename(away)
    assert stopped(warehouse)[0] == "retrying"
    (lake.root / gone).mkdir()
    assert stopped(warehouse)[0] == "retrying"
    (lake.root / gone).rmdir()
    away.rename(lake.root / gone)
    capture(warehouse)
    assert stored(warehouse, "note") == lake.rows("note")


@pytest.mark.parametrize("call", ["open", "stat"])
def test_a_delta_file_that_cannot_be_read_is_down(
    warehouse: Warehouse, lake: DeltaHarness, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    warehouse.add_source("lake", lake.settings())
    before = set((lake.root / "note").glob("*.parquet"))
    lake.write(Write("note", None, ("new",)))
    (new,) = set((lake.root / "note").glob("*.parquet")) - before
    with monkeypatch.context() as patch:
        Refusing(patch, call, new)
        state, problem = stopped(warehouse)
    assert (state, "Input/output error" in problem) == ("retrying", True)
    capture(warehouse)
    assert stored(warehouse, "note") == lake.rows("note")


def foreign_commit(table: Path, path: str, rows: int) -> None:
    """What anybody can write who may write to the table's log."""
    version = len(list((table / "_delta_log").glob("*.json")))
    add = {"path": path, "partitionValues": {}, "size": 1, "modificationTime": 0, "dataChange": True}
    text = json.dumps({"add": {**add, "stats": json.dumps({"numRecords": rows})}})
    (table / "_delta_log" / f"{version:020d}.json").write_text(text + "\n")


@pytest.mark.parametrize("spelled", ["{0}", "file://{0}", "../../secret.parquet", "%2E%2E/..%2Fsecret.parquet", "link"])
def test_a_delta_log_that_names_files_outside_of_the_folder_is_refused(
    warehouse: Warehouse, lake: DeltaHarness, tmp_path: Path, spelled: str
) -> None:
    table, secret = lake.root / "note", tmp_path / "secret.parquet"
    shutil.copy(next(table.glob("*.parquet")), secret)
    if spelled == "link":
        (table / "link").symlink_to(secret)
    warehouse.add_source("lake", lake.settings())
    foreign_commit(table, spelled.format(secret), 3)
    state, problem = stopped(warehouse)
    assert (state, str(secret) in problem) == ("outside_folder", True)
    assert stored(warehouse, "note") == lake.rows("note")
    with pytest.raises(OutsideFolder):
        warehouse.add_source("again", renamed(lake.settings()))


def renamed(settings: SourceSettings, **options: str) -> SourceSettings:
    tables = tuple(TableSettings(f"{table.relation}_2", table.remote) for table in settings.tables)
    return SourceSettings(settings.kind, settings.address, tables, options)


def test_a_delta_log_may_name_files_elsewhere_if_the_settings_say_so(
    warehouse: Warehouse, lake: DeltaHarness, tmp_path: Path
) -> None:
    table, elsewhere = lake.root / "note", tmp_path / "elsewhere.parquet"
    shutil.copy(next(table.glob("*.parquet")), elsewhere)
    foreign_commit(table, str(elsewhere), 3)
    warehouse.add_source("lake", renamed(lake.settings(), allow_outside="true"))
    assert stored(warehouse, "note_2") == lake.rows("note") + lake.rows("note")


@pytest.mark.parametrize("place", ["note/pipe.parquet", "note/_delta_log/{0:020d}.json"])
def test_a_fifo_in_a_delta_table_is_not_opened(warehouse: Warehouse, lake: DeltaHarness, place: str) -> None:
    warehouse.add_source("lake", lake.settings())
    os.mkfifo(lake.root / place.format(1))
    if "pipe" in place:
        foreign_commit(lake.root / "note", "pipe.parquet", 1)
    state, problem = stopped(warehouse)
    assert (state, "a FIFO" in problem) == ("not_a_file", True)
