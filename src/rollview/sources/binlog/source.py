"""A database with a binary log as a source.

Law: a consistent snapshot knows its own place in the binary log; the transactions after that place, in the log's order,
are those that the snapshot does not hold. How a place is told is the kind's own.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, ClassVar

from pymysql.cursors import SSCursor
from pymysqlreplication import BinLogStreamReader

from rollview.core.names import quoted
from rollview.errors import SchemaChanged, SourceStopped
from rollview.sources.binlog.cascades import cascade_findings
from rollview.sources.binlog.collations import collation_findings
from rollview.sources.binlog.events import understood
from rollview.sources.binlog.layout import BinlogLayout, described, findings, read_table, recorded, stored
from rollview.sources.binlog.server import BinlogServer, StreamConnection, variables
from rollview.sources.binlog.stream import EVENTS, BinlogStream, prepared_after, read_from
from rollview.sources.binlog.values import decoder
from rollview.sources.protocol import (
    Batch,
    Capability,
    Finding,
    FirstCopy,
    Health,
    LayoutChange,
    LeavesNothing,
    Opening,
    Row,
    SourceTable,
    TableChanged,
    UnitOfWork,
)
from rollview.sources.quarantine import Sieve
from rollview.sources.restrict import asked_of_source
from rollview.sources.spool import BATCH_BYTES

_PIECE = 50_000
_INTEGERS = ("tinyint", "smallint", "mediumint", "int", "bigint")


class BinlogSource(LeavesNothing, ABC):
    kind: ClassVar[str]
    capabilities: ClassVar[frozenset[Capability]]
    begins: ClassVar[type]
    """The event at the beginning of a transaction, with its global id."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._server = BinlogServer(opening.name, self.kind, opening.address, opening.settings.timeout)
        self._used: Any = None
        self._position = ""

    @abstractmethod
    def server_findings(self, connection: Any, facts: Mapping[str, str]) -> list[Finding]:
        """What the server does not do. ``facts``: its settings."""

    @abstractmethod
    def snapshot(self, connection: Any) -> str:
        """Begin to read one moment, and tell its place in the log."""

    @abstractmethod
    def newest(self, connection: Any, after: str) -> str:
        """The end of the log; LostPosition if it does not go on from the position."""

    @abstractmethod
    def following(self, before: str, gtid: str) -> str:
        """The place after the transaction that comes at a place."""

    @abstractmethod
    def reaches(self, position: str, newest: str) -> bool:
        """Whether nothing up to the newest place is missing."""

    @abstractmethod
    def reading(self, start: str) -> Mapping[str, Any]:
        """How the driver is told to read from a place."""

    @abstractmethod
    def order(self, position: str) -> int: ...

    def check(self) -> tuple[Finding, ...]:
        with self._server.translated():
            facts = variables(self._connection)
            found = self.server_findings(self._connection, facts)
            for table in self._opening.settings.tables:
                found += findings(self._find(self._connection, table.remote), table)
                found += collation_findings(self._connection, self._server.database, table.remote)
                found += cascade_findings(self._connection, facts, self._server.database, table.remote)
            return tuple(found)

    def tables(self) -> tuple[SourceTable, ...]:
        with self._server.translated():
            settings = self._opening.settings.tables
            return tuple(described(self._get(self._connection, table.remote), table) for table in settings)

    @contextmanager
    def first_copy(self) -> Iterator[FirstCopy]:
        with self._server.translated(), closing(self._server.connect()) as reading:
            position = self.snapshot(reading)
            missing = [remote for remote in self._opening.gone if self._find(reading, remote) is None]
            remotes = [remote for remote in self._opening.settings.remotes if remote not in missing]
            found = {remote: self._get(reading, remote) for remote in remotes}

            sieve = Sieve(self._opening)

            def rows(remote: str) -> Iterator[Sequence[Row]]:
                yield from self._copied(reading, found[remote], sieve)

            tables = tuple(self._described(table) for table in found.values())
            before = {remote: self._opening.memory["columns"][remote] for remote in missing}
            columns = {**before, **{remote: recorded(table) for remote, table in found.items()}}
            memory = {**self._opening.memory_without(missing), "columns": columns}
            yield FirstCopy(position, _clock(reading), tables, rows, memory, sieve.found)

    def read(self, after: str, limit: int) -> Batch:
        with self._server.translated():
            now, newest = _clock(self._connection), self.newest(self._connection, after)
            self._position = after
            for remote in sorted(self._opening.gone):
                if self._find(self._connection, remote) is not None:
                    raise self._opening.new_table(remote).raised()
            if self.reaches(after, newest):
                return Batch((), after, known=now)
            try:
                batch = self._batch(after, newest, limit)
            except TableChanged as error:
                raise self._as_it_is_now(error.change).raised() from None
            self._position = batch.position
            return replace(batch, known=now) if batch.complete else batch

    def _as_it_is_now(self, change: LayoutChange) -> LayoutChange:
        """Where another table has the old name by now, that one is captured from a copy on."""
        if change.called is None and not change.replaced:
            return change
        if self._find(self._connection, change.table) is None:
            return self._opening.lost_table(change.table) if change.replaced else change
        if change.replaced:
            return change
        return self._opening.new_table(change.table, f"{change.reason}, and another table has its name")

    def health(self) -> Health:
        prepared = prepared_after(self._position)
        return Health(oldest_open=prepared and f"the XA transaction that was prepared after {prepared}")

    def acknowledge(self, position: str) -> None:
        """The server keeps its log by its own rules."""

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
                reader = BinlogStream(self._opening, self._server.database, start, self.following)
                for found in reader.units(understood(events, self._opening.name)):
                    reached = found if isinstance(found, str) else found.position
                    # What was read before, or is sent again after a connection was lost.
                    if self.order(reached) <= self.order(position):
                        continue
                    position = reached
                    if isinstance(found, UnitOfWork):
                        units.append(found)
                        rows += sum(len(c.before) + len(c.after) for c in found.changes.values())
                    enough = rows >= limit or reader.size > BATCH_BYTES
                    if self.reaches(position, newest) or (enough and units):
                        break
        except SourceStopped:
            if not units:
                raise
            return Batch(tuple(units), units[-1].position, complete=False)
        return Batch(tuple(units), position, complete=self.reaches(position, newest))

    def _events(self, start: str) -> Any:
        return BinLogStreamReader(
            connection_settings=self._server.parameters,
            server_id=random.randint(10**8, 2**32 - 1),  # noqa: S311
            **self.reading(start),
            blocking=True,
            only_events=[self.begins, *EVENTS],
            filter_non_implemented_events=False,
            only_schemas=[self._server.database],
            only_tables=list(self._opening.settings.remotes),
            enable_logging=False,
            pymysql_wrapper=StreamConnection,
            # While it looks for the place where to begin, the server says that it is there.
            slave_heartbeat=self._opening.settings.timeout / 2,
        )

    def _find(self, connection: Any, remote: str) -> BinlogLayout | None:
        return read_table(connection, self._server.database, remote)

    def _get(self, connection: Any, remote: str) -> BinlogLayout:
        table = self._find(connection, remote)
        if table is None:
            raise SchemaChanged(self._opening.name, remote, "it is gone")
        return table

    def _described(self, table: BinlogLayout) -> SourceTable:
        return described(table, self._opening.settings.table(table.remote))

    def _copied(self, connection: Any, table: BinlogLayout, sieve: Sieve) -> Iterator[Sequence[Row]]:
        own = self._described(table)
        # A YEAR is compared as if it were written with two digits.
        plain = {c.name for c in stored(table) if c.kind in _INTEGERS}
        settings = self._opening.settings.table(table.remote)
        where = asked_of_source(settings, own.schema, lambda name: quoted(name) if name in plain else None)
        return self._selected(connection, table, own, where, sieve)

    def _selected(
        self, connection: Any, table: BinlogLayout, own: SourceTable, where: str, sieve: Sieve
    ) -> Iterator[Sequence[Row]]:
        """Rows that fulfil a condition, of these columns."""
        there = {column.name: column for column in stored(table)}
        columns = [(there[column.name], column.type) for column in own.schema]
        decoders = [(c.name, decoder(c.kind, c.spelled, c.length, type_)) for c, type_ in columns]
        with self._server.translated(), connection.cursor(SSCursor) as cursor:
            cursor.execute(f"{selection(table, own)} WHERE {where}")
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


def selection(table: BinlogLayout, own: SourceTable) -> str:
    """A FLOAT is printed with six digits only."""
    floats = {column.name for column in stored(table) if column.kind == "float"}
    columns = (quoted(name) for name in own.schema.names)
    asked = (
        f"CAST({column} AS DOUBLE)" if name in floats else column
        for name, column in zip(own.schema.names, columns, strict=True)
    )
    return f"SELECT {', '.join(asked)} FROM {quoted(table.remote)}"


def _clock(connection: Any) -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT UTC_TIMESTAMP(6)")
        moment: datetime = cursor.fetchone()[0]
        return moment.replace(tzinfo=UTC)
