"""Places in the logs of a database.

Law: a position is the newest entry of each log that was read, by its number and its mark; a log in which that entry is
another is not read on. A cut is one entry in every log, written in the transaction of a statement that changed a table:
what lies before it was committed before the statement, and what lies behind it after.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from rollview.core.names import double_quoted
from rollview.errors import LostPosition
from rollview.sources.sqlite.traced import TracedTable
from rollview.sources.sqlite.triggers import Names

CUT = 2
"""The ``count`` of an entry that is no row."""


@dataclass(frozen=True, slots=True)
class LogPlace:
    """An entry of a log. Positions that an older rollview left have no mark."""

    number: int
    mark: str | None


@dataclass(frozen=True, slots=True)
class Cut:
    """Where it is in each log, and what each table is from there on."""

    places: tuple[LogPlace, ...]
    tables: tuple[TracedTable, ...]


def position_of(places: Sequence[LogPlace]) -> str:
    return ",".join(f"{place.number}-{place.mark}" for place in places)


def parsed(position: str) -> list[LogPlace]:
    parts = (part.partition("-") for part in position.split(","))
    return [LogPlace(int(number), mark or None) for number, _, mark in parts]


def newest(connection: sqlite3.Connection, names: Names) -> int:
    """A statement that fails half-way with OR FAIL leaves entries that SQLite's own count does not know."""
    counted = "SELECT max(seq) FROM sqlite_sequence WHERE name = ?"
    query = f"SELECT max(coalesce(({counted}), 0), coalesce((SELECT max(seq) FROM {double_quoted(names.log)}), 0))"
    return int(connection.execute(query, (names.log,)).fetchone()[0])


def place_of(connection: sqlite3.Connection, names: Names, number: int) -> LogPlace:
    found = connection.execute(f"SELECT mark FROM {double_quoted(names.log)} WHERE seq = ?", (number,)).fetchone()
    return LogPlace(number, None if found is None else str(found[0]))


def newest_places(connection: sqlite3.Connection, logs: Sequence[Names]) -> list[LogPlace]:
    return [place_of(connection, names, newest(connection, names)) for names in logs]


def check_place(source: str, connection: sqlite3.Connection, names: Names, seen: LogPlace, remote: str) -> None:
    """Whether the log is still the one in which ``seen`` was read."""
    if seen.mark is None:
        what = f"the log of table '{remote}' was made by an older rollview, and cannot tell whether it was made anew"
        raise LostPosition(source, what)
    if place_of(connection, names, seen.number) != seen:
        what = f"entry {seen.number} of the log of table '{remote}' is not the one that was read"
        raise LostPosition(source, f"{what}: the log was made anew, or the database was restored from a backup")


def write_cut(connection: sqlite3.Connection, logs: Sequence[Names], tables: Sequence[TracedTable]) -> None:
    for names, table in zip(logs, tables, strict=True):
        statement = f"INSERT INTO {double_quoted(names.log)} (count, c0) VALUES (?, ?)"
        connection.execute(statement, (CUT, table.to_json()))


def next_cut(connection: sqlite3.Connection, logs: Sequence[Names], seen: Sequence[LogPlace]) -> Cut | None:
    """The first one behind a position."""
    found = [_next(connection, names, place.number) for names, place in zip(logs, seen, strict=True)]
    known = [one for one in found if one is not None]
    if len(known) != len(logs):
        return None
    return Cut(tuple(place for place, _ in known), tuple(table for _, table in known))


def _next(connection: sqlite3.Connection, names: Names, after: int) -> tuple[LogPlace, TracedTable] | None:
    query = f"SELECT seq, mark, c0 FROM {double_quoted(names.log)} WHERE seq > ? AND count = ? ORDER BY seq LIMIT 1"
    found = connection.execute(query, (after, CUT)).fetchone()
    return None if found is None else (LogPlace(found[0], str(found[1])), TracedTable.from_json(found[2]))
