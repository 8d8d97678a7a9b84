"""A MariaDB database as a source.

Law: a consistent snapshot knows its own place in the binary log; the transactions after that place, in the log's order,
are those that the snapshot does not hold. The number of a global transaction id grows along the log.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, ClassVar

from pymysql.cursors import SSCursor
from pymysqlreplication import BinLogStreamReader

from rollview.errors import LostPosition, SchemaChanged, SourceStopped
from rollview.sources.mariadb.collations import collation_findings
from rollview.sources.mariadb.layout import MariadbTable, described, findings, quoted, read_table, recorded, stored
from rollview.sources.mariadb.server import Server, server_findings
from rollview.sources.mariadb.stream import EVENTS, Stream, done_through, read_from
from rollview.sources.mariadb.values import decoder
from rollview.sources.protocol import Batch, Capability, Finding, FirstCopy, Opening, Row, SourceTable, UnitOfWork
from rollview.sources.quarantine import Sieve
from rollview.sources.restrict import asked_of_source
from rollview.sources.spool import BATCH_BYTES

_PIECE = 50_000
_NOWHERE = "0-0-0"
_INTEGERS = ("tinyint", "smallint", "mediumint", "int", "bigint")


class MariadbSource:
    kind: ClassVar[str] = "mariadb"
    capabilities: ClassVar[frozenset[Capability]] = frozenset(Capability)

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._server = Server(opening.name, opening.address)
        self._used: Any = None

    def check(self) -> tuple[Finding, ...]:
        with self._server.translated():
            found = server_findings(self._connection)
            for table in self._opening.settings.tables:
                found += findings(self._find(self._connection, table.remote), table)
                found += collation_findings(self._connection, self._server.database, table.remote)
            return tuple(found)

    def tables(self) -> tuple[SourceTable, ...]:
        with self._server.translated():
            settings = self._opening.settings.tables
            return tuple(described(self._get(self._connection, table.remote), table) for table in settings)

    @contextmanager
    def first_copy(self) -> Iterator[FirstCopy]:
        with self._server.translated(), closing(self._server.connect()) as reading:
            position = _snapshot(reading)
            found = {remote: self._get(reading, remote) for remote in self._opening.settings.remotes}

            sieve = Sieve(self._opening)

            def rows(remote: str) -> Iterator[Sequence[Row]]:
                yield from self._copied(reading, found[remote], sieve)

            tables = tuple(self._described(table) for table in found.values())
            memory = {**self._opening.memory, "columns": {remote: recorded(table) for remote, table in found.items()}}
            yield FirstCopy(position, _clock(reading), tables, rows, memory, sieve.found)

    def read(self, after: str, limit: int) -> Batch:
        with self._server.translated():
            now, newest = _clock(self._connection), _newest(self._connection)
            if self.order(newest) < self.order(after):
                raise LostPosition(self._opening.name, f"the server's log ends at {newest}, before {after}")
            if self.order(newest) == self.order(after):
                return Batch((), after, known=now)
            batch = self._batch(after, newest, limit)
            return replace(batch, known=now) if batch.complete else batch

    def acknowledge(self, position: str) -> None:
        """The server keeps its log by its own rules."""

    def order(self, position: str) -> int:
        return int(done_through(position).rpartition("-")[2])

    def remove(self) -> None:
        """Nothing was put into the database."""

    def close(self) -> None:
        if self._used is not None:
            self._used.close()

    @property
    def _connection(self) -> Any:
        if self._used is None:
            self._used = self._server.connect()
        return self._used

    def _batch(self, after: str, newest: str, limit: int) -> Batch:
        units: list[UnitOfWork] = []
        position, rows, start = after, 0, read_from(after)
        try:
            with closing(self._events(start)) as events:
                reader = Stream(self._opening, self._server.database, start)
                for found in reader.units(events):
                    reached = found if isinstance(found, str) else found.position
                    if self.order(reached) <= self.order(after):
                        continue
                    position = reached
                    if isinstance(found, UnitOfWork):
                        units.append(found)
                        rows += sum(len(c.before) + len(c.after) for c in found.changes.values())
                    enough = rows >= limit or reader.size > BATCH_BYTES
                    if self.order(position) >= self.order(newest) or (enough and units):
                        break
        except SourceStopped:
            if not units:
                raise
            return Batch(tuple(units), units[-1].position, complete=False)
        return Batch(tuple(units), position, complete=self.order(position) >= self.order(newest))

    def _events(self, after: str) -> Any:
        return BinLogStreamReader(
            connection_settings=self._server.parameters,
            server_id=random.randint(10**8, 2**32 - 1),  # noqa: S311
            is_mariadb=True,
            auto_position="" if after == _NOWHERE else after,
            blocking=True,
            only_events=list(EVENTS),
            only_schemas=[self._server.database],
            only_tables=list(self._opening.settings.remotes),
            enable_logging=False,
        )

    def _find(self, connection: Any, remote: str) -> MariadbTable | None:
        return read_table(connection, self._server.database, remote)

    def _get(self, connection: Any, remote: str) -> MariadbTable:
        table = self._find(connection, remote)
        if table is None:
            raise SchemaChanged(self._opening.name, remote, "it is gone")
        return table

    def _described(self, table: MariadbTable) -> SourceTable:
        return described(table, self._opening.settings.table(table.remote))

    def _copied(self, connection: Any, table: MariadbTable, sieve: Sieve) -> Iterator[Sequence[Row]]:
        own = self._described(table)
        types = {column.name: column.type for column in own.schema}
        columns = [column for column in stored(table) if column.name in types]
        decoders = [(c.name, decoder(c.kind, c.length, types[c.name])) for c in columns]
        # A FLOAT is printed with six digits only.
        asked = [f"CAST({quoted(c.name)} AS DOUBLE)" if c.kind == "float" else quoted(c.name) for c in columns]
        # A YEAR is compared as if it were written with two digits.
        plain = {c.name for c in columns if c.kind in _INTEGERS}
        settings = self._opening.settings.table(table.remote)
        where = asked_of_source(settings, own.schema, lambda name: quoted(name) if name in plain else None)
        with self._server.translated(), connection.cursor(SSCursor) as cursor:
            cursor.execute(f"SELECT {', '.join(asked)} FROM {quoted(table.remote)} WHERE {where}")
            while piece := cursor.fetchmany(_PIECE):
                yield [done for row in piece for done in self._decoded(own, decoders, row, sieve)]

    def _decoded(
        self, table: SourceTable, decoders: Sequence[tuple[str, Any]], row: Sequence[Any], sieve: Sieve
    ) -> Sequence[Row]:
        values: list[Any] = []
        for value, (column, decode) in zip(row, decoders, strict=True):
            try:
                values.append(None if value is None else decode(value))
            except (ValueError, ArithmeticError) as error:
                sieve.refuse(table, column, str(error), None, dict(zip(table.schema.names, row, strict=True)), +1)
                return ()
        return (tuple(values),)


def _clock(connection: Any) -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT UTC_TIMESTAMP(6)")
        moment: datetime = cursor.fetchone()[0]
        return moment.replace(tzinfo=UTC)


def _newest(connection: Any) -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT @@gtid_binlog_pos")
        return str(cursor.fetchone()[0]) or _NOWHERE


def _snapshot(connection: Any) -> str:
    """Begin to read one moment, and tell its place in the log."""
    with connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        cursor.execute("SHOW STATUS LIKE 'binlog_snapshot_%'")
        found = {name.lower(): value for name, value in cursor.fetchall()}
        cursor.execute(
            "SELECT BINLOG_GTID_POS(%s, %s)", (found["binlog_snapshot_file"], int(found["binlog_snapshot_position"]))
        )
        return str(cursor.fetchone()[0] or "") or _NOWHERE
