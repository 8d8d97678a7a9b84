"""An SQLite database, asked by keys.

Law: what an answer saw is its log's newest entries, read in the same transaction. A unit of work here is all that was
committed between two readings, so an answer may lie inside of one.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from rollview.core.names import double_quoted
from rollview.sources.asking import Ask, check_size, pieces, took_too_long
from rollview.sources.protocol import Row, UnitOfWork
from rollview.sources.settings import AskLimits

_STEPS = 10_000
"""After so many steps of its machine SQLite asks whether to go on."""


@dataclass(frozen=True, slots=True)
class LogSeen:
    """Entries of the logs up to a position."""

    through: str

    def saw(self, unit: UnitOfWork, after: str) -> bool | None:
        seen, begin, end = (_numbers(one) for one in (self.through, after, unit.position))
        if all(a >= b for a, b in zip(seen, end, strict=True)):
            return True
        return False if all(a <= b for a, b in zip(seen, begin, strict=True)) else None

    def missed(self, position: str, transaction: str) -> bool:
        """What is in the log is in the tables."""
        return False


def statement(table: str, columns: Sequence[str], equal: Sequence[str]) -> str:
    """One place, for all keys as JSON. A row is given once, however many keys it equals there."""
    keys = ", ".join(f"json_extract(value, '$[{place}]')" for place in range(len(equal)))
    return _statement(table, columns, equal, f"SELECT {keys} FROM json_each(?)")


def _statement(table: str, columns: Sequence[str], equal: Sequence[str], keys: str) -> str:
    shown = ", ".join(map(double_quoted, columns))
    compared = ", ".join(map(double_quoted, equal))
    return f"SELECT {shown} FROM {double_quoted(table)} WHERE ({compared}) IN ({keys})"


def asked_rows(connection: sqlite3.Connection, ask: Ask, limits: AskLimits) -> list[Row]:
    """Rows as SQLite holds them."""
    deadline = time.monotonic() + limits.seconds
    connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)
    try:
        return _found(connection, ask, limits)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
            raise took_too_long(ask, limits) from None
        raise
    finally:
        connection.set_progress_handler(None, 0)


def _found(connection: sqlite3.Connection, ask: Ask, limits: AskLimits) -> list[Row]:
    query = statement(ask.table, ask.columns, ask.equal)
    with_nul = {key for key in ask.keys if any(isinstance(value, str) and "\0" in value for value in key)}
    found: list[Row] = []
    for piece in pieces(ask.keys - with_nul):
        found += connection.execute(query, (json.dumps(piece),)).fetchall()
        check_size(ask, len(found), limits)
    for piece in pieces(with_nul):
        # A text in JSON ends at a NUL here: each value has a place of its own.
        places = ", ".join([f"({', '.join('?' * len(ask.equal))})"] * len(piece))
        query = _statement(ask.table, ask.columns, ask.equal, f"VALUES {places}")
        found += connection.execute(query, [value for key in piece for value in key]).fetchall()
        check_size(ask, len(found), limits)
    return found


@contextmanager
def read_only(connection: sqlite3.Connection) -> Iterator[None]:
    """Whatever is executed inside, nothing is written."""
    connection.execute("PRAGMA query_only = 1")
    try:
        yield
    finally:
        connection.execute("PRAGMA query_only = 0")


def _numbers(position: str) -> Sequence[int]:
    return [int(part.partition("-")[0]) for part in position.split(",")]
