"""Binary log events become units of work.

Law: a unit of work is what one global transaction id covers, and the id's number is its place. Every row is whole in
the log, column by column by name, or the source stops. A change that was logged as a statement instead of its rows is
seen, and stops it too; so is a statement that changes the layout.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pymysqlreplication.event import MariadbGtidEvent, QueryEvent, XidEvent
from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent
from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from rollview.core.names import same
from rollview.core.schema import Column
from rollview.errors import LostPosition, SchemaChanged
from rollview.sources.mariadb.ddl import UnclearError, altered
from rollview.sources.mariadb.values import Decode, decoder
from rollview.sources.protocol import Changes, Opening, Row, UnitOfWork
from rollview.sources.quarantine import Sieve

EVENTS = (MariadbGtidEvent, WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent, XidEvent, QueryEvent)

_INSIDE = re.compile(r"\s*(BEGIN|START TRANSACTION|SAVEPOINT|ROLLBACK\s+TO|RELEASE)\b", re.IGNORECASE)
_UNDONE = re.compile(r"\s*ROLLBACK\s*$", re.IGNORECASE)
_ROWS = re.compile(r"\s*(INSERT|UPDATE|DELETE|REPLACE|LOAD|WITH|CALL)\b", re.IGNORECASE)
_EMPTIED = re.compile(r"\s*TRUNCATE\b", re.IGNORECASE)


@dataclass(slots=True)
class _Collected:
    before: list[Row] = field(default_factory=list)
    after: list[Row] = field(default_factory=list)
    replaces: bool = False


class Stream:
    def __init__(self, opening: Opening, database: str) -> None:
        self._opening = opening
        self._database = database
        columns: Mapping[str, Any] = opening.memory["columns"]
        self._decoders: dict[str, dict[str, Decode]] = {
            remote: {c.name: _decoder(columns[remote][c.name], c) for c in table.schema}
            for remote, table in opening.known.items()
        }
        self._spelled = {
            remote: {name: columns[remote][name][1] for name in decoders} for remote, decoders in self._decoders.items()
        }
        self._sieve = Sieve(opening)
        self._gtid: str | None = None
        self._collected: dict[str, _Collected] = {}

    def units(self, events: Iterable[Any]) -> Iterator[UnitOfWork | str]:
        """Units of work, and the ids of transactions that changed none of our tables."""
        for event in events:
            if isinstance(event, MariadbGtidEvent):
                if self._gtid is not None:
                    raise LostPosition(self._opening.name, f"transaction {self._gtid} has no end that is understood")
                self._gtid, self._collected = event.gtid, {}
            elif isinstance(event, XidEvent):
                yield self._end(event)
            elif isinstance(event, QueryEvent):
                if self._query(event):
                    yield self._end(event)
            else:
                self._rows(event)

    def _end(self, event: Any) -> UnitOfWork | str:
        assert self._gtid is not None
        gtid, self._gtid = self._gtid, None
        if not self._collected:
            return gtid
        changes = {remote: Changes(c.before, c.after, c.replaces) for remote, c in self._collected.items()}
        time, bad = datetime.fromtimestamp(event.timestamp, UTC), self._sieve.take()
        return UnitOfWork(gtid, gtid, time, changes, quarantined=bad)

    def _query(self, event: Any) -> bool:
        """Whether the statement ends its transaction."""
        text = event.query if isinstance(event.query, str) else event.query.decode("utf-8", "replace")
        if _INSIDE.match(text):
            return False
        if _UNDONE.match(text):
            self._collected = {}
            self._sieve.take()
        elif _EMPTIED.match(text):
            self._truncate(text, _text(event.schema))
        elif _ROWS.match(text) and any(remote.lower() in text.lower() for remote in self._decoders):
            raise LostPosition(self._opening.name, "a statement was logged instead of the rows that it changed")
        else:
            self._altered(text, _text(event.schema))
        return True

    def _altered(self, text: str, schema: str) -> None:
        """A statement about the layout stops the reading if what follows it cannot be read as what came before."""
        try:
            change = altered(text, schema, self._database, self._spelled)
        except UnclearError as error:
            raise LostPosition(self._opening.name, str(error)) from None
        if change is None:
            return
        known = self._opening.known[change.table]
        gone = tuple(c.name for c in known.schema if any(same(c.name, name) for name in change.columns))
        promised = dict.fromkeys((*known.constraints.primary_key, *known.constraints.not_null))
        unsure = tuple(name for name in promised if any(same(name, other) for other in change.unsure))
        if gone or unsure:
            what = (
                f"columns that are gone or were replaced: {', '.join(gone)}" if gone else "its key or NOT NULL is gone"
            )
            raise SchemaChanged(self._opening.name, change.table, what, gone=gone, unsure=unsure)

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
        for row in self._told(event):
            if isinstance(event, UpdateRowsEvent):
                collected.before += self._decoded(event.table, row["before_values"], row["before_none_sources"], -1)
                collected.after += self._decoded(event.table, row["after_values"], row["after_none_sources"], +1)
            elif isinstance(event, WriteRowsEvent):
                collected.after += self._decoded(event.table, row["values"], row["none_sources"], +1)
            else:
                collected.before += self._decoded(event.table, row["values"], row["none_sources"], -1)

    def _decoded(self, table: str, image: Mapping[str, Any], reasons: Mapping[str, str], count: int) -> Sequence[Row]:
        """The row; nothing if it is put aside."""
        values: list[Any] = []
        for column, decode in self._decoders[table].items():
            if column not in image:
                what = f"a row in the log has no column '{column}'"
                raise SchemaChanged(self._opening.name, table, what, gone=(column,))
            try:
                values.append(self._value(table, column, image[column], reasons.get(column, "null"), decode))
            except (ValueError, ArithmeticError) as error:
                self._sieve.refuse(self._opening.known[table], column, str(error), self._gtid, image, count)
                return ()
        return (tuple(values),)

    def _value(self, table: str, column: str, value: Any, reason: str, decode: Decode) -> Any:
        if value is not None:
            return decode(value)
        if reason == "cols bitmap":
            what = f"a row of table '{table}' is not whole in the log (binlog_row_image must be FULL in every session)"
            raise LostPosition(self._opening.name, what)
        if reason != "null":
            raise ValueError(f"the log holds no such value: {reason}")
        return None


def _decoder(recorded: Sequence[Any], column: Column) -> Decode:
    kind, _, length = recorded
    return decoder(kind, length, column.type)


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
