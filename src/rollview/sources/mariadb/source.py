"""A MariaDB database as a source.

Law: a place in the log is the global id of its last transaction, whose number grows along the log.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any, ClassVar

from pymysqlreplication.event import MariadbGtidEvent

from rollview.core.names import quoted
from rollview.errors import EnvironmentFault, LostPosition
from rollview.sources.asking import (
    Ask,
    SourceAnswer,
    SourceStream,
    asked_table,
    check_size,
    only_asked,
    pieces,
    took_too_long,
)
from rollview.sources.binlog.layout import BinlogLayout
from rollview.sources.binlog.server import filter_findings, log_findings, setting, version_of
from rollview.sources.binlog.source import BinlogSource
from rollview.sources.mariadb.asking import TOO_LONG, GtidSeen, check_compared, condition, order_of, spelled
from rollview.sources.protocol import Capability, Finding, LayoutChange, Opening, Row, SourceTable
from rollview.sources.quarantine import Sieve

_NOWHERE = "0-0-0"
_OLDEST = (10, 5)
_SETTER = "SET GLOBAL"


class MariadbSource(BinlogSource):
    kind: ClassVar[str] = "mariadb"
    capabilities: ClassVar[frozenset[Capability]] = frozenset(Capability)
    begins: ClassVar[type] = MariadbGtidEvent

    def __init__(self, opening: Opening) -> None:
        super().__init__(opening)
        self._asking: Any = None

    def server_findings(self, connection: Any, facts: Mapping[str, str]) -> list[Finding]:
        if "mariadb" not in facts["version"].lower():
            return [Finding("the server is not MariaDB; if it is MySQL, the kind of the source is mysql")]
        found = log_findings(facts, _SETTER)
        if version_of(facts) < _OLDEST:
            found.append(Finding(f"the server is MariaDB {facts['version']}; 10.5 is the oldest that tells enough"))
        if "," in facts["gtid_binlog_pos"]:
            found.append(Finding("the log has several domains of transactions, which have no common order"))
        compressed = setting(facts, _SETTER, "log_bin_compress", "OFF")
        found += [compressed] if compressed else []
        return found + filter_findings(connection, "SHOW MASTER STATUS", self._server.database)

    def snapshot(self, connection: Any) -> str:
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
            cursor.execute("SHOW STATUS LIKE 'binlog_snapshot_%'")
            found = {name.lower(): value for name, value in cursor.fetchall()}
            place = found["binlog_snapshot_file"], int(found["binlog_snapshot_position"])
            cursor.execute("SELECT BINLOG_GTID_POS(%s, %s)", place)
            return str(cursor.fetchone()[0] or "") or _NOWHERE

    def newest(self, connection: Any, after: str) -> str:
        with connection.cursor() as cursor:
            cursor.execute("SELECT @@gtid_binlog_pos")
            newest = str(cursor.fetchone()[0]) or _NOWHERE
        if self.order(newest) < self.order(after):
            raise LostPosition(self._opening.name, f"the server's log ends at {newest}, before {after}")
        return newest

    def following(self, before: str, gtid: str) -> str:
        return gtid

    def reaches(self, position: str, newest: str) -> bool:
        return self.order(position) >= self.order(newest)

    def reading(self, start: str) -> Mapping[str, Any]:
        return {"is_mariadb": True, "auto_position": "" if start == _NOWHERE else start}

    def order(self, position: str) -> int:
        return order_of(position)

    def ask(self, asks: Sequence[Ask]) -> SourceAnswer:
        for one in asks:
            asked_table(self._opening.known, self._opening.settings, one)
        with self._server.translated(), self._kept() as reading:
            seen = GtidSeen(self.snapshot(reading))
            rows = tuple(only_asked(self._answered(reading, one), one) for one in asks)
        return SourceAnswer(rows, seen)

    def close(self) -> None:
        if self._asking is not None:
            self._asking.close()
        super().close()

    @contextmanager
    def _kept(self) -> Iterator[Any]:
        """The connection by which this source is asked, one for all questions. One on which something failed is not
        used again."""
        reading, self._asking = self._asking, None
        if reading is None:
            reading = self._server.connect()
            with reading.cursor() as cursor:
                cursor.execute("SET max_statement_time = %s", (self._opening.settings.asking.seconds,))
        try:
            yield reading
            reading.rollback()
        except BaseException:
            reading.close()
            raise
        self._asking = reading

    @staticmethod
    def statement(table: SourceTable, equal: Sequence[str]) -> str:
        columns = ", ".join(map(quoted, table.schema.names))
        places = f"({', '.join('?' for _ in equal)})"
        return f"SELECT {columns} FROM {quoted(table.name)} WHERE {condition(equal, [places, '…'])}"

    @contextmanager
    def stream(self) -> Iterator[SourceStream]:
        sieve = Sieve(self._opening)
        # A connection of its own, in one transaction that can write nothing.
        with self._server.translated(), closing(self._server.connect()) as reading:
            seen = GtidSeen(self.snapshot(reading))

            def rows(remote: str) -> Iterator[Sequence[Row]]:
                return self._selected(reading, self._same(reading, remote), self._opening.known[remote], "TRUE", sieve)

            yield SourceStream(rows, seen)

    @contextmanager
    def moment(self) -> Iterator[None]:
        """Each transaction is a unit of its own."""
        yield

    def _answered(self, reading: Any, ask: Ask) -> Iterator[Row]:
        own = asked_table(self._opening.known, self._opening.settings, ask)
        table, sieve, found = self._same(reading, ask.table), Sieve(self._opening), 0
        check_compared(table, ask.equal)
        limits = self._opening.settings.asking
        for piece in pieces(ask.keys):
            keys = list(spelled(table, ask.equal, piece))
            if not keys:
                continue
            try:
                for rows in self._selected(reading, table, own, condition(ask.equal, keys), sieve):
                    found += len(rows)
                    check_size(ask, found, limits)
                    yield from rows
            except EnvironmentFault as error:
                if error.facts.get("number") == TOO_LONG:
                    raise took_too_long(ask, limits) from None
                raise

    def _same(self, reading: Any, remote: str) -> BinlogLayout:
        """The table as it is, if its columns are still what was captured last."""
        table, known = self._get(reading, remote), self._opening.known[remote]
        now = self._described(table).schema
        gone = tuple(column.name for column in known.schema if not now.has(column))
        if gone:
            what = f"columns that are gone or have another type: {', '.join(gone)}"
            raise LayoutChange(self._opening.name, remote, what, gone=gone).raised()
        return table
