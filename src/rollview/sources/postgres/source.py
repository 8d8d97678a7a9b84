"""A PostgreSQL database as a source.

Law: the slot's exported snapshot holds exactly the transactions that committed before the slot's first position; the
slot yields exactly those after it, in commit order. The order is that of commit positions in the log, never of times
or transaction ids.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any, ClassVar, cast

from psycopg import sql

from rollview.core.names import double_quoted
from rollview.errors import RollviewError, SchemaChanged, SourceDown, SourceStopped
from rollview.sources.asking import Ask, SourceAnswer, SourceStream, asked_table, only_asked
from rollview.sources.postgres import slot
from rollview.sources.postgres.altered import TableComparison, check_logged, numbers_of
from rollview.sources.postgres.asking import (
    SnapshotSeen,
    array_of,
    asked_rows,
    flushed,
    read_seen,
    snapshot,
    statement,
)
from rollview.sources.postgres.identity import facts, present_layout
from rollview.sources.postgres.layout import PgTable, called_now, described, findings, read_table, split
from rollview.sources.postgres.messages import lsn_text, parse_lsn
from rollview.sources.postgres.needs import server_findings
from rollview.sources.postgres.server import Connection, PostgresServer
from rollview.sources.postgres.stream import PostgresStream
from rollview.sources.postgres.values import decoder
from rollview.sources.protocol import (
    ATTEMPT,
    Batch,
    Capability,
    Finding,
    FirstCopy,
    Health,
    LayoutChange,
    Opening,
    Row,
    SourceTable,
    UnitOfWork,
)
from rollview.sources.quarantine import Sieve
from rollview.sources.renamed import renamed_table
from rollview.sources.restrict import asked_of_source
from rollview.sources.settings import TableSettings, size
from rollview.sources.spool import BATCH_BYTES

_PIECE = 50_000
_TABLES_AT_ONCE = 4
_LOOKS = 10
_LOG_ALARM = "5 GB"
"""How much of its log a server may keep for us before that is told."""
_CHANGES = """
    SELECT data FROM pg_logical_slot_peek_binary_changes(
        %s, %s::pg_lsn, %s, 'proto_version', '1', 'publication_names', %s)"""
_WITH_GLOBAL_IDS = _CHANGES.replace("'proto_version', '1'", "'proto_version', '3', 'two_phase', 'on'")


@dataclass(frozen=True, slots=True)
class _Look:
    """Units of work, how many messages they took and what stopped the reading; the tables as they were before and after
    it. ``is_settled``: the log was read up to whatever made them so."""

    units: tuple[UnitOfWork, ...]
    seen: int
    stopped: RollviewError | None
    tables: Mapping[str, PgTable | None]
    identity: slot.ServerIdentity
    is_settled: bool


class PostgresSource:
    kind: ClassVar[str] = "postgres"
    capabilities: ClassVar[frozenset[Capability]] = frozenset(Capability)

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._server = PostgresServer(opening.name, opening.address, opening.settings.timeout)
        self._name = self._named(opening.memory)
        self._own = slot.name_of(opening.memory["tag"], opening.attempt)
        self._tables: dict[str, Any] = dict(opening.memory.get("tables", {}))
        self._cap = size(opening.settings.options.get("log_alarm", _LOG_ALARM))
        self._prepared: Mapping[int, int | None] = {}
        self._open = ExitStack()
        self._used: Connection | None = None
        self._flushed: SnapshotSeen | None = None

    def check(self) -> tuple[Finding, ...]:
        with self._server.translated():
            found = server_findings(self._connection)
            for table in self._opening.settings.tables:
                found += findings(read_table(self._connection, table.remote), table)
            # Of a source that is captured already, its slot may deserve a look.
            alarm = self.health().alarm if self._tables else None
            return (*found, *([Finding(alarm, blocks=False)] if alarm else []))

    def health(self) -> Health:
        with self._server.translated():
            return slot.health(self._connection, self._name, self._cap)

    def tables(self) -> tuple[SourceTable, ...]:
        with self._server.translated():
            found = self._read_tables(self._connection)
            return self._described(found, self._chosen(found))

    @contextmanager
    def first_copy(self) -> Iterator[FirstCopy]:
        self._take_away(keep=self._name if self._opening.known else None)
        self._opening.fence()
        with self._server.translated():
            slot.publish(self._connection, self._own, list(self._read_tables(self._connection)))
        with self._server.connected(replication="database") as replication:
            position, exported = slot.create(replication, self._own, two_phase=self._two_phase)
            with self._at_snapshot(exported) as first:
                found = self._read_tables(first)
                chosen = self._chosen(found)
                tables = {table.name: table for table in self._described(found, chosen)}
                sieve = Sieve(self._opening)

                def rows(remote: str) -> Iterator[Sequence[Row]]:
                    with self._at_snapshot(exported) as reading:
                        yield from self._copied(reading, tables[remote], chosen[remote], sieve)

                memory = self._memory(first, found)
                about = (lsn_text(position), slot.read_identity(first).time, tuple(tables.values()))
                yield FirstCopy(*about, rows, memory, sieve.found, _TABLES_AT_ONCE, self._changes(found))

    @contextmanager
    def _at_snapshot(self, snapshot: str) -> Iterator[Connection]:
        """Any number of connections may look at the moment that the slot begins with."""
        with self._server.connected() as reading:
            reading.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            reading.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(sql.Literal(snapshot)))
            yield reading

    def read(self, after: str, limit: int) -> Batch:
        start = parse_lsn(after)
        look = self._look(start, limit)
        units, stopped, tables, identity = look.units, look.stopped, look.tables, look.identity
        self._check(tables, read_all=not units and stopped is None)
        end = max([start, *(parse_lsn(unit.position) for unit in units)])
        if stopped is not None and not units:
            raise stopped
        if stopped is not None or look.seen >= limit or (units and not self._are_there(tables)):
            return Batch(units, lsn_text(end), complete=False)
        change = self._changed(tables)
        if change is not None:
            if units or not look.is_settled:
                return Batch(units, lsn_text(end), complete=not units)
            # All rows before it were read, so what is remembered from here on holds from this position on.
            position = lsn_text(identity.flushed) if change.keeps_all and identity.flushed > start else None
            raise replace(change, position=position).raised()
        # All that committed by then was read, whatever tables it was about: an idle table pins no log.
        noted = self._noted(tables) if look.is_settled else None
        return Batch(units, lsn_text(max(end, identity.flushed)), memory=noted, known=identity.time)

    def _look(self, start: int, limit: int) -> _Look:
        """What the log has, read by tables that are the same before and after it was read."""
        now: Mapping[str, PgTable | None] | None = None
        for _ in range(_LOOKS):
            with self._server.translated():
                inserted = None if now is None else slot.inserted(self._connection)
                identity = slot.check(self._connection, self._opening.name, self._name, start, self._opening.memory)
                units, seen, stopped = self._units(start, identity.flushed, limit, now or {})
                tables = {remote: self._find(remote) for remote in self._opening.settings.remotes}
            settled = inserted is None or identity.flushed >= inserted
            look = _Look(units, seen, stopped, tables, identity, settled)
            if now is not None and tables == now:
                return look
            if now is None and not isinstance(stopped, SchemaChanged) and self._are_as_recorded(tables):
                return look
            now = tables
        raise SourceDown(self._opening.name, "its tables are altered all the time")

    def _are_there(self, tables: Mapping[str, PgTable | None]) -> bool:
        """Whether none was dropped, or made anew, so that nothing more will come of it."""
        return all(
            one in self._opening.gone if table is None else table.oid == self._tables[one]["oid"]
            for one, table in tables.items()
        )

    def _find(self, remote: str) -> PgTable | None:
        """The table of that name; if there is none, the one that had it, by the name that it has now."""
        table = read_table(self._connection, remote)
        if table is not None or remote not in self._tables:
            return table
        called = called_now(self._connection, remote, self._tables[remote]["oid"])
        return None if called is None else read_table(self._connection, called)

    def _are_as_recorded(self, tables: Mapping[str, PgTable | None]) -> bool:
        def is_same(remote: str, table: PgTable | None) -> bool:
            if table is None:
                return remote in self._opening.gone
            recorded = self._tables[remote]
            return all(recorded.get(fact) == value for fact, value in facts(table).items())

        return all(is_same(remote, table) for remote, table in tables.items())

    def _changed(self, tables: Mapping[str, PgTable | None]) -> LayoutChange | None:
        """What is another in a table by now, where all rows up to now were read."""
        for remote, table in tables.items():
            if table is not None and table.oid == self._tables[remote]["oid"]:
                comparison = TableComparison(self._opening, remote, self._tables[remote], table)
                change = comparison.change(present_layout(table)) or comparison.renamed_table()
                if change is not None:
                    others = {other: known for other, known in self._tables.items() if other != remote}
                    now = {**others, change.called or remote: comparison.memory(None, change)}
                    return replace(change, memory=None if change.copy else {**self._opening.memory, "tables": now})
        return None

    def ask(self, asks: Sequence[Ask]) -> SourceAnswer:
        sieve = Sieve(self._opening)
        for one in asks:
            asked_table(self._opening.known, self._opening.settings, one)
        limits = self._opening.settings.asking
        with self._server.translated(), snapshot(self._connection, limits.seconds):
            seen = read_seen(self._connection, sorted({one.table for one in asks}))
            rows = tuple(only_asked(self._answered(one, sieve), one) for one in asks)
        if self._flushed is None or not self._flushed.saw_the_same(seen):
            with self._server.translated():
                self._flushed = flushed(self._connection, seen)
        return SourceAnswer(rows, self._flushed)

    @staticmethod
    def statement(table: SourceTable, equal: Sequence[str]) -> str:
        arrays = [array_of(column.type) for column in table.schema.only(equal)]
        return statement(table.name, table.schema.names, equal, arrays).as_string(None)

    @contextmanager
    def stream(self) -> Iterator[SourceStream]:
        sieve = Sieve(self._opening)
        with self._server.connected() as reading, snapshot(reading):
            seen = read_seen(reading, self._opening.settings.remotes)
            for remote in self._opening.settings.remotes:
                self._check_asked(reading, remote)

            def rows(remote: str) -> Iterator[Sequence[Row]]:
                settings = self._opening.settings.table(remote)
                yield from self._copied(reading, self._opening.known[remote], settings, sieve)

            yield SourceStream(rows, flushed(reading, seen))

    @contextmanager
    def moment(self) -> Iterator[None]:
        """Each transaction is a unit of its own."""
        yield

    def acknowledge(self, position: str) -> None:
        """The rows of a transaction that was prepared are in the log before its end is: they are read again until
        then."""
        end = parse_lsn(position)
        needed = [begin for begin, done in self._prepared.items() if done is None or done > end]
        with self._server.translated():
            slot.advance(self._connection, self._name, min([end, *needed]))

    def order(self, position: str) -> int:
        return parse_lsn(position)

    def withdraw(self, memory: Mapping[str, Any]) -> None:
        if self._named(memory) != self._own:
            with self._server.translated():
                slot.drop(self._connection, self._own)

    def tidy(self, memory: Mapping[str, Any]) -> None:
        self._take_away(keep=self._named(memory))

    def remove(self) -> None:
        self._take_away(keep=None)

    def close(self) -> None:
        self._open.close()

    def _named(self, memory: Mapping[str, Any]) -> str:
        return slot.name_of(memory["tag"], memory.get(ATTEMPT, ""))

    def _take_away(self, keep: str | None) -> None:
        """Whoever takes over after the fence has a name that is not among those that were found before it."""
        with self._server.translated():
            names = [name for name in slot.left(self._connection, self._opening.memory["tag"]) if name != keep]
            if names:
                self._opening.fence()
            for name in names:
                slot.drop(self._connection, name)

    @property
    def _two_phase(self) -> bool:
        """Global ids are told only where they are asked for; a slot is made for one or the other."""
        return self._opening.settings.global_transactions is not None

    @property
    def _connection(self) -> Connection:
        if self._used is None:
            self._used = self._open.enter_context(self._server.connected())
        return self._used

    def _units(
        self, after: int, through: int, limit: int, now: Mapping[str, PgTable | None]
    ) -> tuple[tuple[UnitOfWork, ...], int, RollviewError | None]:
        """What was read, how many messages it took, and what stopped the reading."""
        units: list[UnitOfWork] = []
        arguments = (self._name, lsn_text(through), limit, self._name)
        query = _WITH_GLOBAL_IDS if self._two_phase else _CHANGES
        reader = PostgresStream(self._opening, now)
        # Whatever happens, the connection must not be left in the middle of an answer.
        with (
            self._connection.cursor(binary=True) as cursor,
            closing(cast(Generator[Any], cursor.stream(query, arguments, size=1000))) as rows,
        ):
            try:
                for some in reader.units(map(itemgetter(0), rows), after):
                    units += some
                    if reader.size > BATCH_BYTES:
                        return tuple(units), limit, None
            except SourceStopped as error:
                return tuple(units), reader.seen, error
            finally:
                self._prepared = reader.prepared
        return tuple(units), reader.seen, None

    def _check(self, tables: Mapping[str, PgTable | None], *, read_all: bool) -> None:
        for remote, table in tables.items():
            recorded = self._tables[remote]
            if table is None and remote in self._opening.gone:
                continue
            if read_all and table is None:
                lost = self._opening.lost_table(remote)
                raise replace(lost, memory={**(lost.memory or {}), "tables": self._tables}).raised()
            if read_all and table is not None and table.oid != recorded["oid"]:
                raise self._opening.new_table(remote).raised()
            if read_all:
                check_logged(self._opening.name, remote, recorded, table)
            if table is not None and table.oid == recorded["oid"]:
                unsure = TableComparison(self._opening, remote, recorded, table).unsure()
                if unsure is not None:
                    raise unsure.raised()

    def _noted(self, tables: Mapping[str, PgTable | None]) -> dict[str, Any] | None:
        """What is harmless by itself is remembered, so that it is not held against the next change."""
        now = dict(self._tables)
        for remote, table in tables.items():
            if table is not None and table.oid == now[remote]["oid"]:
                numbers = numbers_of(self._opening.known[remote], now[remote])
                now[remote] = {**facts(table), "numbers": dict(numbers)}
        if now == self._tables:
            return None
        self._tables = now
        return {**self._opening.memory, "tables": now}

    def _read_tables(self, connection: Connection) -> Mapping[str, PgTable]:
        """Without those that are known to be gone, if they still are."""
        found = {}
        for remote in self._opening.settings.remotes:
            table = read_table(connection, remote)
            if table is not None:
                found[remote] = table
            elif remote not in self._opening.gone:
                raise SchemaChanged(self._opening.name, remote, "it is gone")
        if not found:
            raise SchemaChanged(self._opening.name, self._opening.settings.remotes[0], "it is gone")
        return found

    def _chosen(self, tables: Mapping[str, PgTable]) -> dict[str, TableSettings]:
        """What is said of each table, in the names that its columns have now."""
        changes = self._changes(tables)
        called = {remote: dict(change.renamed) for remote, change in changes.items()}
        return {one.remote: renamed_table(one, called.get(one.remote, {})) for one in self._opening.settings.tables}

    def _described(self, tables: Mapping[str, PgTable], chosen: Mapping[str, TableSettings]) -> tuple[SourceTable, ...]:
        lenient = bool(self._opening.known)
        return tuple(described(table, chosen[remote], lenient=lenient) for remote, table in tables.items())

    def _changes(self, tables: Mapping[str, PgTable]) -> Mapping[str, LayoutChange]:
        """What is another now in tables that were captured before, by the numbers of their columns. It is followed
        before the copy is whole: if that fails, the log is read on from the old position."""
        found, known = dict[str, LayoutChange](), self._tables
        for remote, table in tables.items():
            recorded = self._tables.get(remote)
            if recorded is not None and remote in self._opening.known and recorded["oid"] == table.oid:
                comparison = TableComparison(self._opening, remote, recorded, table)
                change, unsure = comparison.change(present_layout(table), copied=True), comparison.unsure()
                about = LayoutChange(self._opening.name, remote, "it is as it was")
                lost = () if unsure is None else unsure.unsure
                if change is not None:
                    known = {**known, remote: comparison.renamed_memory(change)}
                memory = {**self._opening.memory, "tables": known}
                found[remote] = replace(change or unsure or about, unsure=lost, with_rows=True, memory=memory)
        return found

    def _copied(
        self, connection: Connection, table: SourceTable, settings: TableSettings, sieve: Sieve
    ) -> Iterator[Sequence[Row]]:
        columns = sql.SQL(", ").join(map(sql.Identifier, table.schema.names))
        query = sql.SQL("COPY (SELECT {} FROM {} WHERE {}) TO STDOUT").format(
            columns, sql.Identifier(*split(table.name)), sql.SQL(_asked(table, settings))
        )
        decoders = [decoder(column.type) for column in table.schema]
        piece: list[Row] = []
        size = 0
        with self._server.translated(), connection.cursor() as cursor, cursor.copy(query) as copy:
            for row in copy.rows():
                piece += self._decoded(table, decoders, row, sieve)
                size += sum(map(len, filter(None, row)))
                if len(piece) == _PIECE or size > BATCH_BYTES:
                    yield piece
                    piece, size = [], 0
        yield piece

    def _answered(self, ask: Ask, sieve: Sieve) -> list[Row]:
        known = asked_table(self._opening.known, self._opening.settings, ask)
        table = self._check_asked(self._connection, ask.table)
        decoders = [decoder(column.type) for column in known.schema]
        found = asked_rows(self._connection, table, ask, self._opening.settings.asking)
        return [fit for row in found for fit in self._decoded(known, decoders, row, sieve)]

    def _check_asked(self, connection: Connection, remote: str) -> PgTable:
        """The table as it is, if it is the one that was captured last and its columns still mean what they did."""
        table, recorded = read_table(connection, remote), self._tables[remote]
        check_logged(self._opening.name, remote, recorded, table)
        assert table is not None
        comparison = TableComparison(self._opening, remote, recorded, table)
        change = comparison.change(present_layout(table), copied=True) or comparison.unsure()
        if change is not None:
            raise change.raised()
        return table

    def _decoded(self, table: SourceTable, decoders: Sequence[Any], row: Sequence[Any], sieve: Sieve) -> Sequence[Row]:
        values: list[Any] = []
        for text, decode in zip(row, decoders, strict=True):
            try:
                values.append(None if text is None else decode(text))
            except (ValueError, ArithmeticError, KeyError) as error:
                column = table.schema.columns[len(values)].name
                sieve.refuse(table, column, str(error), None, dict(zip(table.schema.names, row, strict=True)), +1)
                return ()
        return (tuple(values),)

    def _memory(self, connection: Connection, tables: Mapping[str, PgTable]) -> dict[str, Any]:
        identity = slot.read_identity(connection)
        missing = self._opening.gone.difference(tables)
        described = {remote: self._tables[remote] for remote in missing}
        described |= {remote: facts(table) for remote, table in tables.items()}
        own = {"system": identity.system, "timeline": identity.timeline, "tables": described}
        own[ATTEMPT] = self._opening.attempt
        return {**self._opening.memory_without(missing), **own}


def _asked(table: SourceTable, settings: TableSettings) -> str:
    """Types that were declared are not the server's; an oid is compared as the number that it is here."""

    def column(name: str) -> str | None:
        return None if name in settings.types else f"CAST({double_quoted(name)} AS bigint)"

    return asked_of_source(settings, table.schema, column)
