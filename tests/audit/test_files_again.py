"""Folders of files and of events that are read again: each way in which that went wrong, by name."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rollview.errors import SourceDown
from rollview.sources import SourceSettings, TableSettings
from rollview.sources.debezium.source import DebeziumSource
from rollview.sources.protocol import Opening
from rollview.warehouse import Warehouse
from tests.sources.debezium_harness import Connector, DebeziumHarness, events
from tests.sources.harness import Write, capture, new_warehouse, stored


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[Warehouse]:
    with new_warehouse(tmp_path / "warehouse") as made:
        yield made


@pytest.fixture
def events_bank(tmp_path: Path) -> DebeziumHarness:
    return DebeziumHarness(tmp_path)


def transaction(bank: DebeziumHarness, file: str, number: int, *writes: Write, is_whole: bool = True) -> None:
    """In a file of its own; without its END if it is not whole."""
    held: list[object] = []
    connector = Connector(lambda _, record: held.append(record))
    connector._number = number
    connector.transaction(list(events(bank._rows, writes)))
    lines = held if is_whole else held[:-1]
    (bank.root / file).write_text("".join(f"{json.dumps(record)}\n" for record in lines))


@pytest.mark.parametrize("names", [("0001.jsonl", "2.jsonl", "10.jsonl"), ("2026-01-01.jsonl", "2026-01-02.jsonl")])
def test_event_files_whose_names_begin_with_a_digit_are_read_in_natural_order(
    warehouse: Warehouse, events_bank: DebeziumHarness, names: tuple[str, ...]
) -> None:
    (events_bank.root / "events-0001.jsonl").rename(events_bank.root / names[0])
    settings = events_bank.settings()
    settings = replace(settings, options={**settings.options, "file_order": "natural"})
    warehouse.add_source("bank", settings)
    for number, name in enumerate(names[1:], start=600):
        transaction(events_bank, name, number, Write("note", None, (name,)))
    capture(warehouse)
    assert stored(warehouse, "note") == events_bank.rows("note")


def test_event_files_whose_names_begin_with_anothers_are_read_in_their_order(
    warehouse: Warehouse, events_bank: DebeziumHarness
) -> None:
    (events_bank.root / "events-0001.jsonl").rename(events_bank.root / "a1.json")
    transaction(events_bank, "a1.json5.json", 600, Write("note", None, ("second",)))
    warehouse.add_source("bank", events_bank.settings())
    assert stored(warehouse, "note") == events_bank.rows("note")


def test_a_transaction_without_its_end_is_told_however_much_follows_it(events_bank: DebeziumHarness) -> None:
    settings = events_bank.settings()
    with DebeziumSource(Opening("bank", settings, settings.address, {}, {})).first_copy() as copy:
        known = {table.name: table for table in copy.tables}
        source = DebeziumSource(Opening("bank", settings, settings.address, copy.memory, known))
    transaction(events_bank, "events-0002.jsonl", 600, Write("note", None, ("lost",)), is_whole=False)
    transaction(events_bank, "events-0003.jsonl", 601, *(Write("note", None, (f"{one}",)) for one in range(9)))
    assert not source.read(copy.position, 4).complete  # The new files become known.
    batch = source.read(copy.position, 4)
    assert (batch.units, batch.complete) == ((), False)
    assert source.health().oldest_open == "transaction 601"
    assert source.health().open_since is not None


LONG_AGO = "2026-01-01T00:00:00+00:00"


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    folder = tmp_path / "inbox"
    for table in ("orders", "parts"):
        (folder / table).mkdir(parents=True)
    return folder


def inbox_settings(root: Path, *tables: str) -> SourceSettings:
    chosen = tuple(TableSettings(table, table, {"id": "bigint"}, (), "csv") for table in tables)
    return SourceSettings("files", str(root), chosen)


def put(path: Path, *numbers: int) -> None:
    """A file that was written long ago."""
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in ("id", *numbers)))
    os.utime(path, (time.time() - 60,) * 2)


def ids(warehouse: Warehouse, table: str = "orders") -> list[int]:
    return sorted(number for (number,) in stored(warehouse, table).elements())


def remember(warehouse: Warehouse, **facts: object) -> None:
    """As if the source had remembered this."""
    (source,) = warehouse.catalog.sources()
    with warehouse.catalog.write() as writer:
        writer.sources.set_memory(source.name, {**source.memory, **facts})


def memory(warehouse: Warehouse, about: str) -> dict[str, dict[str, str]]:
    (source,) = warehouse.catalog.sources()
    return dict(source.memory.get(about, {}))


def copied_in_vain(warehouse: Warehouse) -> str:
    with pytest.raises(SourceDown) as raised:
        warehouse.resnapshot("inbox", widen=True)
    return raised.value.message


def test_a_file_that_is_being_rewritten_is_not_deleted_by_a_copy_made_again(warehouse: Warehouse, inbox: Path) -> None:
    put(inbox / "orders" / "a.csv", 1)
    put(inbox / "orders" / "b.csv", 2)
    warehouse.add_source("inbox", inbox_settings(inbox, "orders"))
    (inbox / "orders" / "a.csv").write_text("id\n1\n")
    assert "file 'a.csv' is being written" in copied_in_vain(warehouse)
    with pytest.raises(SourceDown):
        warehouse.resnapshot("inbox")
    assert ids(warehouse) == [1, 2]
    put(inbox / "orders" / "a.csv", 1, 3)
    capture(warehouse)
    assert ids(warehouse) == [1, 2, 3]


def test_a_copy_made_again_believes_an_emptied_folder_when_it_is_confirmed(warehouse: Warehouse, inbox: Path) -> None:
    put(inbox / "orders" / "a.csv", 1)
    warehouse.add_source("inbox", inbox_settings(inbox, "orders"))
    (inbox / "orders" / "a.csv").unlink()
    assert "has lost all its files" in copied_in_vain(warehouse)
    since = memory(warehouse, "empty")
    assert list(since["orders"]) == [""]
    # Tried again, whoever asks, it still knows since when.
    (done,) = warehouse.capture().sources
    assert "has lost all its files" in (done.problem or "")
    assert (memory(warehouse, "empty"), ids(warehouse)) == (since, [1])
    remember(warehouse, empty={"orders": {"": LONG_AGO}})
    capture(warehouse)
    assert (memory(warehouse, "empty"), ids(warehouse), warehouse.sources()[0].state) == ({}, [], "active")


def test_a_copy_made_again_waits_for_a_folder_that_is_not_mounted(warehouse: Warehouse, inbox: Path) -> None:
    put(inbox / "orders" / "a.csv", 1)
    warehouse.add_source("inbox", inbox_settings(inbox, "orders"))
    (inbox / "orders" / "a.csv").unlink()
    remember(warehouse, folders={"orders": {"": -1}}, empty={"orders": {"": LONG_AGO}})
    assert "is it mounted" in copied_in_vain(warehouse)
    assert ids(warehouse) == [1]
    # Only who asks for nothing but the source as it is, means it.
    warehouse.resnapshot("inbox")
    assert ids(warehouse) == []


def test_tables_that_are_emptied_in_different_readings_are_believed_together(warehouse: Warehouse, inbox: Path) -> None:
    for table in ("orders", "parts"):
        put(inbox / table / "a.csv", 1)
    warehouse.add_source("inbox", inbox_settings(inbox, "orders", "parts"))
    (inbox / "orders" / "a.csv").unlink()
    capture(warehouse)
    remember(warehouse, empty={"orders": {"": LONG_AGO}})
    (inbox / "parts" / "a.csv").unlink()
    capture(warehouse)
    assert memory(warehouse, "empty")["orders"] == {"": LONG_AGO}
    assert "parts" in (warehouse.sources()[0].alarm or "")
    remember(warehouse, empty={**memory(warehouse, "empty"), "parts": {"": LONG_AGO}})
    capture(warehouse)
    assert (ids(warehouse), ids(warehouse, "parts"), warehouse.sources()[0].alarm) == ([], [], None)


@pytest.mark.parametrize("elsewhere_in_doubt", [False, True])
def test_a_device_that_has_another_number_is_remembered_while_there_are_files(
    warehouse: Warehouse, inbox: Path, elsewhere_in_doubt: bool
) -> None:
    put(inbox / "orders" / "a.csv", 1)
    put(inbox / "orders" / "2026" / "b.csv", 2)
    put(inbox / "parts" / "a.csv", 3)
    warehouse.add_source("inbox", inbox_settings(inbox, "orders", "parts"))
    device = memory(warehouse, "folders")
    # As after a start of the system that has given out other numbers.
    remember(warehouse, folders={**device, "orders": {"": -1, "2026": -1}})
    if elsewhere_in_doubt:
        (inbox / "parts" / "a.csv").unlink()
    capture(warehouse)
    assert memory(warehouse, "folders") == device
    (inbox / "orders" / "2026" / "b.csv").unlink()
    capture(warehouse)
    remember(
        warehouse, empty={table: dict.fromkeys(paths, LONG_AGO) for table, paths in memory(warehouse, "empty").items()}
    )
    capture(warehouse)
    assert ids(warehouse) == [1]


def test_a_device_is_not_remembered_of_a_folder_that_is_empty(warehouse: Warehouse, inbox: Path) -> None:
    put(inbox / "orders" / "a.csv", 1)
    put(inbox / "orders" / "2026" / "b.csv", 2)
    warehouse.add_source("inbox", inbox_settings(inbox, "orders"))
    remember(warehouse, folders={"orders": {"": -1, "2026": -1}})
    (inbox / "orders" / "2026" / "b.csv").unlink()
    for _ in range(2):
        (done,) = warehouse.capture().sources
        assert "is it mounted" in (done.problem or "")
    assert ids(warehouse) == [1, 2]
