"""15: a moment is the same by copy and by log, whatever zones the writer, the reader and the server are in."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from rollview.sources import SourceSettings, TableSettings
from rollview.warehouse import Warehouse
from tests.sources.harness import Bag, capture, stored
from tests.sources.mariadb_harness import MariadbHarness

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Honolulu")

INSTANTS = tuple(
    datetime.fromisoformat(text).replace(tzinfo=UTC)
    for text in (
        *("2026-03-29 00:59:59.999999", "2026-03-29 01:00:00", "2026-10-25 00:30:00", "2026-10-25 01:30:00"),
        *("2026-03-08 06:59:59", "2026-03-08 07:00:00", "2026-11-01 05:30:00", "2026-11-01 06:30:00"),
        *("2026-04-04 14:45:00", "2026-04-04 15:15:00", "2026-10-03 15:29:59", "2026-10-03 15:30:00"),
    )
)
"""Around both nights of Berlin, New York and Lord Howe, whose clocks move by half an hour."""

LOCALS = tuple(
    datetime.fromisoformat(text)
    for text in ("2026-03-29 02:30:00", "2026-10-25 02:30:00", "2026-03-08 02:30:00.5", "2026-10-04 02:15:00")
)
"""Times that some clock never showed, or showed twice."""

COLUMNS = {
    "sqlite": ("DATETIME", "DATETIME"),
    "postgres": ("timestamp", "timestamptz"),
    "mariadb": ("datetime(6)", "timestamp(6) NULL"),
    "mysql": ("datetime(6)", "timestamp(6) NULL"),
}


@contextmanager
def reading_in(zone: str) -> Iterator[None]:
    """The process that captures believes to be there."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = zone
    time.tzset()
    try:
        yield
    finally:
        os.environ.pop("TZ") if before is None else os.environ.update(TZ=before)
        time.tzset()


def execute(bank: Any, text: str) -> None:
    bank.execute(text) if isinstance(bank, MariadbHarness) else bank.connection.execute(text)


def write(bank: Any, zone: str, first: int) -> Bag:
    """Rows that a writer in the zone means, and so what they are everywhere."""
    offset = _offset(zone)
    if bank.kind == "postgres":
        execute(bank, f"SET timezone = '{zone}'")
    elif isinstance(bank, MariadbHarness):
        execute(bank, f"SET time_zone = '{_spelled(offset)}'")
    rows, meant = [], Counter[Any]()
    for place, instant in enumerate(INSTANTS):
        local = LOCALS[place % len(LOCALS)]
        there = (instant + offset).replace(tzinfo=None)
        told = {"postgres": instant.astimezone(ZoneInfo(zone)), "mariadb": there, "mysql": there}
        moment = told.get(bank.kind, instant.replace(tzinfo=None))
        rows.append(f"({first + place}, '{local}', '{moment}')")
        meant[(first + place, local, instant if bank.kind in told else moment)] += 1
    execute(bank, f"INSERT INTO moments VALUES {', '.join(rows)}")
    return meant


def _offset(zone: str) -> timedelta:
    found = datetime(2026, 1, 1, tzinfo=ZoneInfo(zone)).utcoffset()
    assert found is not None
    return found


def _spelled(offset: timedelta) -> str:
    minutes = int(offset.total_seconds()) // 60
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


def test_15_moments_are_the_same_by_copy_and_by_log_in_every_zone(empty_warehouse: Warehouse, bank: Any) -> None:
    local, instant = COLUMNS[bank.kind]
    execute(bank, f"CREATE TABLE moments (id INTEGER PRIMARY KEY, l {local}, i {instant})")
    if bank.kind == "postgres":
        execute(bank, "ALTER TABLE moments REPLICA IDENTITY FULL")
    meant: Bag = Counter()
    for number, zone in enumerate(ZONES):
        meant += write(bank, zone, 100 * number)
    given = bank.settings()
    with reading_in("Australia/Lord_Howe"):
        table = TableSettings("moments", "moments")
        empty_warehouse.add_source("bank", SourceSettings(given.kind, given.address, (table,)))
    assert stored(empty_warehouse, "moments") == meant
    for number, zone in enumerate(ZONES):
        meant += write(bank, zone, 1000 + 100 * number)
        execute(bank, f"UPDATE moments SET id = id + 50 WHERE id BETWEEN {100 * number} AND {100 * number + 20}")
        moved = {row for row in meant if 100 * number <= row[0] <= 100 * number + 20}
        meant = Counter((row[0] + 50, *row[1:]) if row in moved else row for row in meant)
        with reading_in(zone):
            capture(empty_warehouse)
        assert stored(empty_warehouse, "moments") == meant
    with reading_in("America/New_York"):
        assert empty_warehouse.resnapshot("bank").rows == 0
    assert stored(empty_warehouse, "moments") == meant
