"""Binary log events become units of work.

Law: a unit of work is what one global transaction id covers, and the id's number is its place. Every row is whole in
the log, column by column by name, or the source stops. A change that was logged as a statement instead of its rows is
seen, and stops it too. The rows of an XA transaction are in the log where it was prepared, and it is a unit of work
where it is committed; until then the log is read again from before them, which a position tells as ``GTID@GTID``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pymysqlreplication.event import MariadbGtidEvent, QueryEvent, XAPrepareEvent, XidEvent
from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent
from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from rollview.errors import BadValue, LostPosition, SchemaChanged
from rollview.sources.mariadb.layout import MariadbTable, stored
from rollview.sources.mariadb.values import Decode, decoder
from rollview.sources.protocol import Changes, Opening, Row, UnitOfWork

EVENTS = (MariadbGtidEvent, WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent, XidEvent, XAPrepareEvent, QueryEvent)

_INSIDE = re.compile(r"\s*(BEGIN|START TRANSACTION|SAVEPOINT|ROLLBACK\s+TO|RELEASE|XA\s+(START|END))\b", re.IGNORECASE)
_XA_END = re.compile(r"\s*XA\s+(COMMIT|ROLLBACK)\s+X'([0-9a-f]*)',X'([0-9a-f]*)',(\d+)", re.IGNORECASE)
_UNDONE = re.compile(r"\s*ROLLBACK\s*$", re.IGNORECASE)
_ROWS = re.compile(r"\s*(INSERT|UPDATE|DELETE|REPLACE|LOAD|WITH|CALL)\b", re.IGNORECASE)
_EMPTIED = re.compile(r"\s*TRUNCATE\b", re.IGNORECASE)


Xid = tuple[bytes, bytes, int]


def done_through(position: str) -> str:
    return position.partition("@")[0]


def read_from(position: str) -> str:
    return position.rpartition("@")[2]


def _global_id(xid: Xid) -> str:
    """What the branches of one XA transaction at several servers have in common."""
    return xid[0].decode("utf-8", "backslashreplace")


@dataclass(slots=True)
class _Collected:
    before: list[Row] = field(default_factory=list)
    after: list[Row] = field(default_factory=list)
    replaces: bool = False


class Stream:
    def __init__(self, opening: Opening, database: str, tables: Mapping[str, MariadbTable], start: str) -> None:
        self._opening = opening
        self._database = database
        columns = {remote: {c.name: c for c in stored(table)} for remote, table in tables.items()}
        self._decoders: dict[str, dict[str, Decode]] = {
            remote: {c.name: decoder(columns[remote][c.name], c.type) for c in opening.known[remote].schema}
            for remote in tables
        }
        self._gtid: str | None = None
        self._collected: dict[str, _Collected] = {}
        self._before = start
        self._prepared: dict[Xid, tuple[str, dict[str, _Collected]]] = {}

    def units(self, events: Iterable[Any]) -> Iterator[UnitOfWork | str]:
        """Units of work, and the positions of transactions that changed none of our tables."""
        for event in events:
            if isinstance(event, MariadbGtidEvent):
                if self._gtid is not None:
                    raise LostPosition(self._opening.name, f"transaction {self._gtid} has no end that is understood")
                self._gtid, self._collected = event.gtid, {}
            elif isinstance(event, XAPrepareEvent):
                yield self._prepare(event)
            elif isinstance(event, XidEvent):
                yield self._end(event)
            elif isinstance(event, QueryEvent):
                ended = _XA_END.match(_text(event.query))
                if ended is not None:
                    yield self._end(event, self._end_prepared(ended))
                elif self._query(event):
                    yield self._end(event)
            else:
                self._rows(event)

    def _prepare(self, event: XAPrepareEvent) -> UnitOfWork | str:
        xid = (event.xid_gtrid, event.xid_bqual, event.xid_format_id)
        if event.one_phase:
            return self._end(event, _global_id(xid))
        self._prepared[xid] = self._before, self._collected
        self._collected = {}
        return self._end(event)

    def _end(self, event: Any, global_id: str | None = None) -> UnitOfWork | str:
        assert self._gtid is not None
        gtid, self._gtid = self._gtid, None
        self._before = gtid
        position = "@".join([gtid, *(before for before, _ in list(self._prepared.values())[:1])])
        if not self._collected:
            return position
        changes = {remote: Changes(c.before, c.after, c.replaces) for remote, c in self._collected.items()}
        return UnitOfWork(position, gtid, datetime.fromtimestamp(event.timestamp, UTC), changes, global_id)

    def _end_prepared(self, ended: re.Match[str]) -> str:
        """The rows are those that were prepared, or none if they are rolled back. Returns the global id."""
        xid = (bytes.fromhex(ended[2]), bytes.fromhex(ended[3]), int(ended[4]))
        if xid not in self._prepared:
            what = f"the rows of XA transaction {_global_id(xid)!r} are in the log before the place where it was read"
            raise LostPosition(self._opening.name, what)
        _, rows = self._prepared.pop(xid)
        self._collected = rows if ended[1].upper() == "COMMIT" else {}
        return _global_id(xid)

    def _query(self, event: Any) -> bool:
        """Whether the statement ends its transaction."""
        text = _text(event.query)
        if _INSIDE.match(text):
            return False
        if _UNDONE.match(text):
            self._collected = {}
        elif _EMPTIED.match(text):
            self._truncate(text, _text(event.schema))
        elif _ROWS.match(text) and any(remote.lower() in text.lower() for remote in self._decoders):
            raise LostPosition(self._opening.name, "a statement was logged instead of the rows that it changed")
        return True

    def _truncate(self, text: str, schema: str) -> None:
        try:
            tree = parse_one(text, dialect="mysql")
        except SqlglotError:
            raise LostPosition(self._opening.name, "a TRUNCATE in the log cannot be understood") from None
        for table in tree.find_all(exp.Table):
            if (table.db or schema) == self._database and table.name in self._decoders:
                self._collected[table.name] = _Collected(replaces=True)

    def _rows(self, event: Any) -> None:
        if event.schema != self._database or event.table not in self._decoders:
            return
        collected = self._collected.setdefault(event.table, _Collected())
        for row in event.rows:
            if isinstance(event, UpdateRowsEvent):
                before, after = ("before_values", "before_none_sources"), ("after_values", "after_none_sources")
                collected.before.append(self._decoded(event.table, *(row[name] for name in before)))
                collected.after.append(self._decoded(event.table, *(row[name] for name in after)))
            else:
                side = collected.after if isinstance(event, WriteRowsEvent) else collected.before
                side.append(self._decoded(event.table, row["values"], row["none_sources"]))

    def _decoded(self, table: str, image: Mapping[str, Any], reasons: Mapping[str, str]) -> Row:
        values: list[Any] = []
        for column, decode in self._decoders[table].items():
            if column not in image:
                raise SchemaChanged(self._opening.name, table, f"a row in the log has no column '{column}'")
            if image[column] is None and reasons.get(column, "null") != "null":
                raise self._missing(table, column, reasons[column])
            try:
                values.append(None if image[column] is None else decode(image[column]))
            except (ValueError, ArithmeticError) as error:
                raise BadValue(self._opening.name, table, column, str(error), self._gtid) from None
        return tuple(values)

    def _missing(self, table: str, column: str, reason: str) -> Exception:
        if reason == "cols bitmap":
            what = f"a row of table '{table}' is not whole in the log (binlog_row_image must be FULL in every session)"
            return LostPosition(self._opening.name, what)
        return BadValue(self._opening.name, table, column, f"the log holds no such value: {reason}", self._gtid)


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
