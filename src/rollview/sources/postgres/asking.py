"""A PostgreSQL database, asked by keys.

Law: what an answer saw is told by transaction ids. No position in the log describes a snapshot, because transactions
become visible in another order than they are logged; but all that it saw is logged before the position read after it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import LiteralString

from psycopg import sql
from psycopg.errors import QueryCanceled

from rollview.sources.asking import Ask, check_size, pieces, took_too_long, unaskable
from rollview.sources.postgres.layout import PgTable, split
from rollview.sources.postgres.server import Connection
from rollview.sources.protocol import UnitOfWork
from rollview.sources.settings import AskLimits

_ARRAYS: dict[int, LiteralString] = {20: "int8[]", 21: "int8[]", 23: "int8[]", 25: "text[]", 1043: "text[]"}
"""By type: what keys are bound as. Blank-padded text, for one, compares otherwise than it is told."""
_ROUND = 1 << 32
_AHEAD = 1 << 24
"""More transactions than begin between a snapshot and the reading of the log behind it."""
_PAUSE = 0.05
_FLUSHED = """
    SELECT pg_current_wal_flush_lsn() >= %s::pg_lsn, pg_current_wal_flush_lsn()::text,
           (SELECT setting::float / 1000 FROM pg_settings WHERE name = 'wal_writer_delay')
"""

TextRow = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class SnapshotSeen:
    """A snapshot: transactions from ``end`` on, and those ``running``, were not seen. Ids have 64 bits."""

    through: str
    end: int
    running: frozenset[int]

    def saw(self, unit: UnitOfWork, after: str) -> bool | None:
        return self._is_seen(int(unit.transaction))

    def _is_seen(self, short: int) -> bool:
        """The log has ids of 32 bits: the one meant began a little after the snapshot, or else before it, however long
        ago."""
        ahead = (short - self.end) % _ROUND
        return ahead >= _AHEAD and self.end + ahead - _ROUND not in self.running

    def saw_the_same(self, later: SnapshotSeen) -> bool:
        """Whether nothing became visible in between: then the log need not be read further for the later one. What was
        written since is no commit: the server removes dead rows while others read, and need not flush that."""
        return (self.end, self.running) == (later.end, later.running)

    def missed(self, position: str, transaction: str) -> bool:
        """A commit is logged a moment before it can be seen, and longer where a standby has to confirm it."""
        return not self._is_seen(int(transaction))


@contextmanager
def snapshot(connection: Connection, seconds: int | None = None) -> Iterator[None]:
    """One transaction that can write nothing. ``seconds``: that a statement may take."""
    connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    try:
        if seconds is not None:
            connection.execute(sql.SQL("SET LOCAL statement_timeout = {}").format(sql.Literal(f"{seconds}s")))
        yield
    finally:
        connection.execute("ROLLBACK")


def read_seen(connection: Connection, tables: Iterable[str]) -> SnapshotSeen:
    """What this transaction sees; the position is read behind the snapshot. A table that is emptied at once, or written
    anew, looks so to older snapshots too: as long as it is locked for reading, nobody does that."""
    for table in tables:
        lock = sql.SQL("LOCK TABLE {} IN ACCESS SHARE MODE").format(sql.Identifier(*split(table)))
        connection.execute(lock)
    row = connection.execute("SELECT txid_current_snapshot()::text").fetchone()
    assert row is not None
    _, end, running = row[0].split(":")
    place = connection.execute("SELECT pg_current_wal_insert_lsn()::text").fetchone()
    assert place is not None
    return SnapshotSeen(str(place[0]), int(end), frozenset(int(one) for one in running.split(",") if one))


def flushed(connection: Connection, seen: SnapshotSeen) -> SnapshotSeen:
    """The same, when the log up to there can be read. A commit that does not wait for the disk can be seen before, and
    the server's log writer brings it there within three times its delay; what is left then is no commit."""
    began = time.monotonic()
    while True:
        row = connection.execute(_FLUSHED, (seen.through,)).fetchone()
        assert row is not None
        is_flushed, end, delay = row
        if is_flushed:
            return seen
        if time.monotonic() - began > 3 * delay + 1:
            return replace(seen, through=str(end))
        time.sleep(_PAUSE)


def statement(
    table: str, columns: Sequence[str], equal: Sequence[str], arrays: Sequence[LiteralString]
) -> sql.Composed:
    """One place for each column of the keys. A row is given once, however many keys it equals there."""
    return sql.SQL("SELECT {} FROM {} WHERE ({}) IN (SELECT * FROM unnest({}))").format(
        sql.SQL(", ").join(map(sql.Identifier, columns)),
        sql.Identifier(*split(table)),
        sql.SQL(", ").join(map(sql.Identifier, equal)),
        sql.SQL(", ").join(sql.SQL("%s::") + sql.SQL(array) for array in arrays),
    )


def array_of(type_: str) -> LiteralString:
    """What keys of a Spark type are bound as."""
    return "text[]" if type_ == "string" else "int8[]"


def asked_rows(connection: Connection, table: PgTable, ask: Ask, limits: AskLimits) -> list[TextRow]:
    """Values as the server writes them."""
    query = statement(ask.table, ask.columns, ask.equal, _arrays(table, ask))
    found: list[TextRow] = []
    # No text of this server has a NUL in it.
    keys = (key for key in ask.keys if not any(isinstance(value, str) and "\0" in value for value in key))
    for piece in pieces(keys):
        try:
            found += _texts(connection, query, [list(column) for column in zip(*piece, strict=True)])
        except QueryCanceled:
            raise took_too_long(ask, limits) from None
        check_size(ask, len(found), limits)
    return found


def _arrays(table: PgTable, ask: Ask) -> Sequence[LiteralString]:
    types = {column.name: column for column in table.columns}
    for name in ask.equal:
        if types[name].type_oid not in _ARRAYS:
            raise unaskable(ask.table, name, f"the server compares {types[name].spelled} in its own way")
    return [_ARRAYS[types[name].type_oid] for name in ask.equal]


def _texts(connection: Connection, query: sql.Composed, keys: list[list[object]]) -> Iterator[TextRow]:
    """The server's own spelling, as the log and the copy have it."""
    result = connection.execute(query, keys).pgresult
    assert result is not None
    for row in range(result.ntuples):
        values = (result.get_value(row, place) for place in range(result.nfields))
        yield tuple(None if value is None else bytes(value).decode() for value in values)
