"""A first copy is finished or made again, whatever stops it; damage in the warehouse is not told as its source's."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from rollview.capture import first_copy, publication, requests
from rollview.catalog import Catalog, Part
from rollview.errors import AlreadyExists, BadValue, Retryable, SourceDown, UsageError
from rollview.relations.folders import state_folder
from rollview.sources import SourceSettings, TableSettings
from rollview.sources.postgres import server, values
from rollview.sources.protocol import FirstCopy
from rollview.sources.sqlite.source import SqliteSource
from rollview.store.datafile import safe_places
from rollview.warehouse import Warehouse
from tests.sources.harness import Write, account, capture, new_warehouse, stored
from tests.sources.sqlite_harness import SqliteHarness


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[Warehouse]:
    with new_warehouse(tmp_path / "warehouse") as made:
        yield made


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[SqliteHarness]:
    with closing(SqliteHarness(tmp_path)) as made:
        yield made


def check_goes_on(warehouse: Warehouse, bank: SqliteHarness) -> None:
    """What is held is what the source has, now and after its next commit."""
    capture(warehouse)
    bank.write(Write("account", None, account(50, "new", None)))
    capture(warehouse)
    assert warehouse.sources()[0].state == "active"
    for table in ("account", "note"):
        assert stored(warehouse, table) == bank.rows(table)


def test_a_copy_that_another_process_made_since_the_source_was_recorded_is_done(
    warehouse: Warehouse, bank: SqliteHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def capture_elsewhere(step: str) -> None:
        with Warehouse.open(warehouse.root) as other:
            capture(other)

    with monkeypatch.context() as patch:
        patch.setattr(requests, "reach", capture_elsewhere)
        added = warehouse.add_source("bank", bank.settings())
    assert {table.name: table.rows for table in added.tables} == {"account": 3, "note": 3}
    assert warehouse.sources()[0].state == "active"
    check_goes_on(warehouse, bank)


def test_a_source_that_is_being_removed_is_not_copied(
    warehouse: Warehouse, bank: SqliteHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def begin_removal(step: str) -> None:
        with warehouse.catalog.write() as writer:
            writer.sources.set_state("bank", "removing")

    monkeypatch.setattr(requests, "reach", begin_removal)
    with pytest.raises(UsageError, match="being removed"):
        warehouse.add_source("bank", bank.settings())
    assert warehouse.sources()[0].state == "removing"
    assert warehouse.snapshot().relations == {}


def fail_when_left(monkeypatch: pytest.MonkeyPatch) -> None:
    real = SqliteSource.first_copy

    @contextmanager
    def cut(self: SqliteSource) -> Iterator[FirstCopy]:
        with real(self) as copy:
            yield copy
        raise SourceDown("bank", "the connection was ended")

    monkeypatch.setattr(SqliteSource, "first_copy", cut)


def lose_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    real = first_copy._publish

    def unheard(*about: object) -> None:
        real(*about)  # type: ignore[arg-type]
        raise Retryable("The catalog does not answer.")

    monkeypatch.setattr(first_copy, "_publish", unheard)


@pytest.mark.parametrize("fail", [fail_when_left, lose_the_answer])
@pytest.mark.parametrize("by", ["add", "capture"])
def test_a_copy_that_was_published_counts_whatever_fails_then(
    warehouse: Warehouse,
    bank: SqliteHarness,
    monkeypatch: pytest.MonkeyPatch,
    fail: object,
    by: str,
) -> None:
    assert callable(fail)
    with monkeypatch.context() as patch:
        if by == "capture":
            patch.setattr(requests, "finish_copy", lambda *about: {})
            warehouse.add_source("bank", bank.settings())
        fail(patch)
        if by == "add":
            with pytest.raises(Retryable):
                warehouse.add_source("bank", bank.settings())
        else:
            (done,) = warehouse.capture().sources
            assert done.problem is not None
    (source,) = warehouse.catalog.sources()
    assert (source.state, source.position is None) == ("retrying", False)
    check_goes_on(warehouse, bank)


@pytest.mark.parametrize("mend", ["capture", "resnapshot"])
def test_a_source_that_says_copying_and_has_a_position_is_read_on(
    warehouse: Warehouse, bank: SqliteHarness, mend: str
) -> None:
    warehouse.add_source("bank", bank.settings())
    with warehouse.catalog.write() as writer:
        writer.sources.set_state("bank", "copying", "left behind by an older rollview")
    with pytest.raises(AlreadyExists, match="bank"):
        warehouse.add_source("bank", bank.settings())
    if mend == "resnapshot":
        warehouse.resnapshot("bank")
    check_goes_on(warehouse, bank)


def break_value(bank: SqliteHarness) -> None:
    bank.connection.execute("UPDATE account SET balance = 'much' WHERE id = 1")


def mend_value(bank: SqliteHarness) -> None:
    bank.connection.execute("UPDATE account SET balance = 10 WHERE id = 1")


@pytest.mark.parametrize("finish", ["capture", "add"])
def test_a_first_copy_that_stops_under_capture_is_made_again(
    warehouse: Warehouse, bank: SqliteHarness, finish: str
) -> None:
    break_value(bank)
    with pytest.raises(BadValue):
        warehouse.add_source("bank", bank.settings())
    for _ in range(2):
        (done,) = warehouse.capture().sources
        assert "balance" in (done.problem or "")
        (source,) = warehouse.sources()
        assert (source.state, source.problem) == ("copying", done.problem)
    with pytest.raises(UsageError, match="copying"):
        warehouse.resnapshot("bank")
    mend_value(bank)
    if finish == "add":
        warehouse.add_source("bank", bank.settings())
    check_goes_on(warehouse, bank)


def test_a_source_without_a_position_is_copied_whatever_its_state_says(
    warehouse: Warehouse, bank: SqliteHarness
) -> None:
    break_value(bank)
    with pytest.raises(BadValue):
        warehouse.add_source("bank", bank.settings())
    with warehouse.catalog.write() as writer:
        writer.sources.set_state("bank", "bad_value", "left behind by an older rollview")
    with pytest.raises(UsageError, match="copying"):
        warehouse.resnapshot("bank")
    mend_value(bank)
    check_goes_on(warehouse, bank)


def test_no_connection_to_postgres_is_ended_for_being_idle_in_a_transaction() -> None:
    """Not the one that holds the copy's snapshot, either."""
    said: list[bytes] = []

    class Connection:
        def __enter__(self) -> Connection:
            return self

        def __exit__(self, *about: object) -> None:
            pass

        def execute(self, statement: bytes) -> None:
            said.append(statement)

    asked = server.PostgresServer("bank", "postgresql://nobody@localhost/none", 1.0)
    asked._connected = lambda options: Connection()  # type: ignore[assignment,method-assign,return-value]
    with asked.connected(replication="database"):
        assert said == [values.PATIENT.encode()]
    with asked.connected():
        assert said[1] == values.PATIENT.encode()


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    folder = tmp_path / "inbox" / "orders"
    folder.mkdir(parents=True)
    return folder


def put(path: Path, *numbers: int, age: int) -> None:
    path.write_text("".join(f"{line}\n" for line in ("id", *numbers)))
    os.utime(path, (time.time() - age,) * 2)


def add_inbox(warehouse: Warehouse, inbox: Path) -> None:
    put(inbox / "a.csv", 1, 2, age=60)
    table = TableSettings("orders", "orders", {"id": "bigint"}, (), "csv")
    warehouse.add_source("inbox", SourceSettings("files", str(inbox.parent), (table,)))


def state_file(warehouse: Warehouse, table: str) -> Path:
    relation = warehouse.snapshot().get(table)
    folder = state_folder(warehouse.root / "data", relation)
    (place,) = safe_places(folder.root, folder.files(relation.pins[Part.STATE].version))
    return place


def problem_of(warehouse: Warehouse) -> tuple[str, str]:
    (done,) = warehouse.capture().sources
    (source,) = warehouse.sources()
    return source.state, done.problem or ""


@pytest.mark.parametrize("damage", ["missing", "empty", "no footer", "broken rows"])
def test_a_damaged_file_of_the_warehouse_is_not_a_source_that_does_not_answer(
    warehouse: Warehouse, inbox: Path, damage: str
) -> None:
    add_inbox(warehouse, inbox)
    file = state_file(warehouse, "orders")
    whole = file.read_bytes()
    put(inbox / "a.csv", 2, 3, age=30)
    if damage == "missing":
        file.unlink()
    else:
        broken = {"empty": b"", "no footer": whole[:-8], "broken rows": b"PAR1" + b"\xff" * 40 + whole[44:]}
        file.write_bytes(broken[damage])
    state, problem = problem_of(warehouse)
    assert (state, file.name in problem, "not whole" in problem) == ("active", True, True), problem
    file.write_bytes(whole)
    capture(warehouse)
    assert sorted(stored(warehouse, "orders").elements()) == [(2,), (3,)]


def test_a_failure_of_the_warehouse_s_disk_is_not_a_source_that_does_not_answer(
    warehouse: Warehouse, inbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*about: object) -> None:
        raise OSError(5, "Input/output error")

    add_inbox(warehouse, inbox)
    put(inbox / "b.csv", 3, age=30)
    with monkeypatch.context() as patch:
        patch.setattr(publication, "settle", refuse)
        state, problem = problem_of(warehouse)
    assert (state, "Cannot use the disk" in problem) == ("active", True), problem
    capture(warehouse)
    assert sorted(stored(warehouse, "orders").elements()) == [(1,), (2,), (3,)]


def test_a_warehouse_whose_making_was_cut_off_is_finished_by_making_it_again(
    tmp_path: Path, bank: SqliteHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    class CutError(Exception):
        pass

    def cut(*about: object) -> Catalog:
        raise CutError

    place = tmp_path / "cut"
    with monkeypatch.context() as patch:
        patch.setattr(Catalog, "create", cut)
        with pytest.raises(CutError):
            Warehouse.create(place)
    with Warehouse.create(place) as made:
        made.add_source("bank", bank.settings())
    with pytest.raises(AlreadyExists):
        Warehouse.create(place)
    with Warehouse.open(place) as opened:
        check_goes_on(opened, bank)


def test_a_warehouse_whose_making_was_cut_off_after_its_catalog_can_be_opened(
    tmp_path: Path, bank: SqliteHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Catalog.create
    place = tmp_path / "cut"

    class CutError(Exception):
        pass

    def cut(*about: object) -> Catalog:
        real(*about).close()  # type: ignore[arg-type]
        raise CutError

    with monkeypatch.context() as patch:
        patch.setattr(Catalog, "create", cut)
        with pytest.raises(CutError):
            Warehouse.create(place)
    with Warehouse.open(place) as opened:
        opened.add_source("bank", bank.settings())
        check_goes_on(opened, bank)
