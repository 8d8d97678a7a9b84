"""Binary log events become units of work.

Law: a unit of work is what one global transaction id covers, and the id's number is its place. Every row is whole in
the log, column by column by name, or the source stops. A change that was logged as a statement instead of its rows is
seen, and stops it too; so is a statement that changes the layout. The rows of an XA transaction are in the log where it
was prepared, and it is a unit of work where it is committed; until then the log is read again from before them, which a
position tells as ``GTID@GTID``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from pymysqlreplication.event import (
    ExecuteLoadQueryEvent,
    GtidEvent,
    MariadbGtidEvent,
    NotImplementedEvent,
    QueryEvent,
    XAPrepareEvent,
    XidEvent,
)
from pymysqlreplication.row_event import DeleteRowsEvent, PartialUpdateRowsEvent, UpdateRowsEvent, WriteRowsEvent
from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from rollview.core.bad_row import BadRow
from rollview.core.schema import Column
from rollview.errors import BadValue, LostPosition, Unreadable
from rollview.sources.binlog.charsets import find_unreadable
from rollview.sources.binlog.ddl import (
    NOT_UNDERSTOOD,
    RenamedError,
    ReplacedError,
    UnclearError,
    altered,
    readings,
)
from rollview.sources.binlog.events import reason_to_stop
from rollview.sources.binlog.followed import layout_change, renamed_table
from rollview.sources.binlog.values import Decode, decoder
from rollview.sources.protocol import LayoutChange, Opening, Row, UnitOfWork
from rollview.sources.quarantine import Sieve
from rollview.sources.spool import Collected, changes_and_bad_rows

_ROW_EVENTS = (WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent)
EVENTS = (
    *_ROW_EVENTS,
    *(PartialUpdateRowsEvent, XidEvent, XAPrepareEvent, QueryEvent, ExecuteLoadQueryEvent, NotImplementedEvent),
)

_BEGINS_TOO = re.compile(r"START\s+TRANSACTION\s*$", re.IGNORECASE)
_INSIDE = re.compile(r"\s*(BEGIN|START TRANSACTION|SAVEPOINT|ROLLBACK\s+TO|RELEASE|XA\s+(START|END))\b", re.IGNORECASE)
_XA_END = re.compile(r"\s*XA\s+(COMMIT|ROLLBACK)\s+X'([0-9a-f]*)',X'([0-9a-f]*)',(\d+)", re.IGNORECASE)
_SIDES = {
    WriteRowsEvent: (("", +1),),
    DeleteRowsEvent: (("", -1),),
    UpdateRowsEvent: (("before_", -1), ("after_", +1)),
}
_UNDONE = re.compile(r"\s*ROLLBACK\s*$", re.IGNORECASE)
_ROWS = re.compile(r"\s*(INSERT|UPDATE|DELETE|REPLACE|LOAD|WITH|CALL)\b", re.IGNORECASE)
_NOT_WHOLE = "is not whole in the log (binlog_row_image must be FULL in every session)"
_A_STATEMENT = "a statement was logged instead of the rows that it changed"
_EMPTIED = re.compile(r"\s*TRUNCATE\b", re.IGNORECASE)


Xid = tuple[bytes, bytes, int]


def done_through(position: str) -> str:
    return position.partition("@")[0]


def read_from(position: str) -> str:
    return position.rpartition("@")[2]


def prepared_after(position: str) -> str | None:
    """Where the first XA transaction lies that is prepared and neither committed nor rolled back; None if none is."""
    return position.partition("@")[2] or None


def _global_id(xid: Xid) -> str:
    """What the branches of one XA transaction at several servers have in common."""
    return xid[0].decode("utf-8", "backslashreplace")


class BinlogStream:
    def __init__(self, opening: Opening, database: str, start: str, following: Callable[[str, str], str]) -> None:
        """``following``: the place after a transaction, from the place before it and its global id."""
        self._opening = opening
        self._following = following
        self._database = database
        columns: Mapping[str, Any] = opening.memory["columns"]
        self._decoders: dict[str, dict[str, Decode]] = {
            remote: {c.name: _decoder(columns[remote][c.name], c) for c in table.schema}
            for remote, table in opening.known.items()
            if remote not in opening.gone
        }
        self._spelled = {
            remote: {name: columns[remote][name][1] for name in decoders} for remote, decoders in self._decoders.items()
        }
        self._gtid: str | None = None
        self._collected: dict[str, Collected] = {}
        self.size = 0
        """Bytes that were taken so far."""
        self._before = start
        self._prepared: dict[Xid, tuple[str, dict[str, Collected]]] = {}

    def units(self, events: Iterable[Any]) -> Iterator[UnitOfWork | str]:
        """Units of work, and the positions of transactions that changed none of our tables."""
        for event in events:
            if isinstance(event, MariadbGtidEvent | GtidEvent):
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
            elif type(event) in _ROW_EVENTS:
                self._rows(event)
            else:
                self._stop(event)

    def _stop(self, event: Any) -> None:
        if isinstance(event, ExecuteLoadQueryEvent):
            raise LostPosition(self._opening.name, _A_STATEMENT)
        if isinstance(event, PartialUpdateRowsEvent) and not self._is_ours(event):
            return
        reason = reason_to_stop(event)
        if reason is not None:
            raise LostPosition(self._opening.name, reason)

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
        self._before = self._following(self._before, gtid)
        position = "@".join([self._before, *(before for before, _ in list(self._prepared.values())[:1])])
        if not self._collected:
            return position
        changes, bad = changes_and_bad_rows(self._collected)
        return UnitOfWork(position, gtid, datetime.fromtimestamp(event.timestamp, UTC), changes, global_id, bad)

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
        text, *others = readings(_text(event.query))
        if any(_ROWS.match(one) or _EMPTIED.match(one) for one in (text, *others) if others) and self._names_ours(text):
            raise LostPosition(self._opening.name, NOT_UNDERSTOOD)
        if _INSIDE.match(text) or _BEGINS_TOO.search(text):
            return False
        if _UNDONE.match(text):
            self._collected = {}
        elif _EMPTIED.match(text):
            self._truncate(text, _text(event.schema))
        elif _ROWS.match(text) and self._names_ours(text):
            raise LostPosition(self._opening.name, _A_STATEMENT)
        elif (change := self._altered(_text(event.query), _text(event.schema))) is not None:
            # The statement is a transaction of its own, and is not read again.
            raise replace(change, position=None if change.copy else str(self._end(event))).raised()
        return True

    def _names_ours(self, text: str) -> bool:
        return any(remote.lower() in text.lower() for remote in self._decoders)

    def _altered(self, text: str, schema: str) -> LayoutChange | None:
        """What a statement about the layout means, if what follows it cannot be read as what came before."""
        try:
            change = altered(text, schema, self._database, self._spelled)
        except RenamedError as error:
            return renamed_table(self._opening, error.table, error.new)
        except ReplacedError as error:
            return self._opening.new_table(error.table, str(error))
        except UnclearError as error:
            raise LostPosition(self._opening.name, str(error)) from None
        return None if change is None else layout_change(self._opening, change)

    def _truncate(self, text: str, schema: str) -> None:
        try:
            tree = parse_one(text, dialect="mysql")
        except SqlglotError:
            raise LostPosition(self._opening.name, "a TRUNCATE in the log cannot be understood") from None
        for table in tree.find_all(exp.Table):
            if (table.db or schema) == self._database and table.name in self._decoders:
                self._collected[table.name] = Collected(self._opening, self._opening.known[table.name], True)

    def _rows(self, event: Any) -> None:
        if not self._is_ours(event):
            return
        unreadable = find_unreadable(event.columns, self._decoders[event.table])
        if unreadable is not None:
            what = f"column '{unreadable}' of table '{event.table}' is in a character set that cannot be read exactly"
            raise LostPosition(self._opening.name, what)
        if event.table not in self._collected:
            self._collected[event.table] = Collected(self._opening, self._opening.known[event.table])
        collected, rows = self._collected[event.table], self._told(event)
        each = event.event_size // max(1, len(rows))
        self.size += event.event_size
        for row in rows:
            for side, count in _SIDES[type(event)]:
                image, reasons = row[f"{side}values"], row[f"{side}none_sources"]
                collected.add(self._decoded(event.table, image, reasons, count, collected.bad), count, each)

    def _is_ours(self, event: Any) -> bool:
        return event.schema == self._database and event.table in self._decoders

    def _told(self, event: Any) -> Sequence[Any]:
        """The event's rows. Of one with a value that the driver cannot read, such as the 31st of February, none is."""
        # Of rows without columns the driver would read on without end.
        bitmaps = (getattr(event, name, None) for name in ("columns_present_bitmap", "columns_present_bitmap2"))
        if any(bitmap is not None and not any(bitmap) for bitmap in bitmaps):
            raise LostPosition(self._opening.name, f"a row of table '{event.table}' {_NOT_WHOLE}")
        try:
            rows: Sequence[Any] = event.rows
        except ValueError as error:
            raise BadValue(self._opening.name, event.table, "*", str(error), self._gtid) from None
        except NotImplementedError as error:
            raise LostPosition(
                self._opening.name, f"table '{event.table}' has a column of a new kind: {error}"
            ) from None
        # Whatever else the driver raises where an event is not as it thinks.
        except Exception as error:
            what = f"the driver cannot read the rows of table '{event.table}' ({type(error).__name__})"
            raise Unreadable(self._opening.name, what, place=f"transaction {self._gtid}") from None
        return rows

    def _decoded(
        self, table: str, image: Mapping[str, Any], reasons: Mapping[str, str], count: int, bad: list[BadRow]
    ) -> Sequence[Row]:
        """The row; nothing if it is put aside."""
        values: list[Any] = []
        for column, decode in self._decoders[table].items():
            if column not in image:
                what = f"a row in the log has no column '{column}'"
                raise LayoutChange(self._opening.name, table, what, gone=(column,)).raised()
            try:
                values.append(self._value(table, column, image[column], reasons.get(column, "null"), decode))
            except (ValueError, ArithmeticError) as error:
                Sieve(self._opening, bad).refuse(
                    self._opening.known[table], column, str(error), self._gtid, image, count
                )
                return ()
        return (tuple(values),)

    def _value(self, table: str, column: str, value: Any, reason: str, decode: Decode) -> Any:
        if value is not None:
            return decode(value)
        if reason == "cols bitmap":
            raise LostPosition(self._opening.name, f"a row of table '{table}' {_NOT_WHOLE}")
        if reason != "null":
            raise ValueError(f"the log holds no such value: {reason}")
        return None


def _decoder(recorded: Sequence[Any], column: Column) -> Decode:
    kind, spelled, length = recorded
    return decoder(kind, spelled, length, column.type)


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
