"""A PostgreSQL database, asked by keys.

Law: what an answer saw is told by transaction ids. No position in the log describes a snapshot, because transactions
become visible in another order than they are logged; but all that it saw is logged before the position read after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import LiteralString

from psycopg import sql

from rollview.sources.asking import Ask, check_size, pieces, unaskable
from rollview.sources.postgres.layout import PgTable, split
from rollview.sources.postgres.server import Connection
from rollview.sources.protocol import UnitOfWork

_ARRAYS: dict[int, LiteralString] = {20: "int8[]", 21: "int8[]", 23: "int8[]", 25: "text[]", 1043: "text[]"}
"""By type: what keys are bound as. Blank-padded text, for one, compares otherwise than it is told."""
_ROUND = 1 << 32
_LONGEST: LiteralString = "SET LOCAL statement_timeout = '30s'"

TextRow = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class SnapshotSeen:
    """A snapshot: transactions from ``end`` on, and those ``running``, were not seen. Ids have 64 bits."""

    through: str
    end: int
    running: frozenset[int]

    def saw(self, unit: UnitOfWork, after: str) -> bool | None:
        """The log has ids of 32 bits: the one meant is that nearest to the snapshot."""
        short = int(unit.transaction)
        near = self.end - (self.end - short + _ROUND // 2) % _ROUND + _ROUND // 2
        return near < self.end and near not in self.running


@contextmanager
def snapshot(connection: Connection) -> Iterator[None]:
    """One short transaction that can write nothing."""
    connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    try:
        connection.execute(_LONGEST)
        yield
    finally:
        connection.execute("ROLLBACK")


def read_seen(connection: Connection) -> SnapshotSeen:
    """What this transaction sees; the position is read behind the snapshot."""
    row = connection.execute("SELECT txid_current_snapshot()::text").fetchone()
    assert row is not None
    _, end, running = row[0].split(":")
    place = connection.execute("SELECT pg_current_wal_insert_lsn()::text").fetchone()
    assert place is not None
    return SnapshotSeen(str(place[0]), int(end), frozenset(int(one) for one in running.split(",") if one))


def asked_rows(connection: Connection, table: PgTable, ask: Ask) -> list[TextRow]:
    """Values as the server writes them. A row is given once, however many keys it equals there."""
    columns = sql.SQL(", ").join(map(sql.Identifier, ask.columns))
    equal = sql.SQL(", ").join(map(sql.Identifier, ask.equal))
    arrays = sql.SQL(", ").join(sql.SQL("%s::") + sql.SQL(array) for array in _arrays(table, ask))
    query = sql.SQL("SELECT {} FROM {} WHERE ({}) IN (SELECT * FROM unnest({}))").format(
        columns, sql.Identifier(*split(ask.table)), equal, arrays
    )
    found: list[TextRow] = []
    # No text of this server has a NUL in it.
    keys = (key for key in ask.keys if not any(isinstance(value, str) and "\0" in value for value in key))
    for piece in pieces(keys):
        found += _texts(connection, query, [list(column) for column in zip(*piece, strict=True)])
        check_size(ask, len(found))
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
