"""Folders of files and of events that are read again: each way in which that went wrong, by name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

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
