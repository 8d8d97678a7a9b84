"""Messages become units of work.

Law: a unit of work is what lies between Begin and Commit, and its position is where its commit ends. Each row is read
by the layout that was announced for it, column by column by name, so no value ever lands in another column. A large
value that an update left alone is taken from the old row. A prepared transaction is one when it is committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rollview.catalog import BadRow
from rollview.core.schema import Column, Schema
from rollview.errors import LostPosition, SchemaChanged
from rollview.sources.postgres.layout import full_name, split
from rollview.sources.postgres.messages import (
    UNCHANGED,
    Begin,
    BeginPrepare,
    Commit,
    CommitPrepared,
    Image,
    Message,
    Prepare,
    RelationMessage,
    RollbackPrepared,
    RowMessage,
    TruncateMessage,
    Unchanged,
    decode,
    lsn_text,
)
from rollview.sources.postgres.values import Decode, decoder, spark_type
from rollview.sources.protocol import Opening, Row, UnitOfWork
from rollview.sources.quarantine import Sieve
from rollview.sources.spool import Backlog, Collected, told


@dataclass(frozen=True, slots=True)
class _Layout:
    """How rows of one table are read: for each of our columns its place in the message."""

    remote: str
    schema: Schema
    places: tuple[int, ...]
    decoders: tuple[Decode, ...]


class Stream:
    """Layouts are announced again in every reading, so one stream serves one reading."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._remotes = {split(remote): remote for remote in opening.settings.remotes}
        self._layouts: dict[int, _Layout] = {}
        self._collected: dict[str, Collected] = {}
        self._begin: Begin | BeginPrepare | None = None
        self._waiting: dict[str, tuple[BeginPrepare, dict[str, Collected]]] = {}
        self.size = 0
        """Bytes that were taken so far."""
        self.prepared: dict[int, int | None] = {}
        """Where transactions were prepared, and where their end is, if it was seen."""

    def units(self, messages: Iterable[bytes], after: int) -> Iterator[UnitOfWork]:
        """Those that end beyond ``after``. Rows of a transaction that may be known already wait for its end."""
        waiting: Backlog | None = None
        for data in messages:
            if waiting is not None and data[:1] in (b"I", b"U", b"D", b"T"):
                waiting.append(data)
                continue
            message = decode(data)
            match message:
                case Begin():
                    self._begin, self._collected = message, {}
                    waiting = Backlog() if message.commit_lsn < after else None
                case Commit():
                    if message.end_lsn > after:
                        self._take_all(waiting or ())
                        yield self._unit(message)
                    waiting = None
                case BeginPrepare():
                    self._begin, self._collected = message, {}
                case Prepare():
                    self._prepare()
                case CommitPrepared():
                    unit = self._end(message)
                    if unit is not None and message.end_lsn > after:
                        yield unit
                case RollbackPrepared():
                    self._end(message)
                case _:
                    self._take(message, len(data))

    def _prepare(self) -> None:
        assert isinstance(self._begin, BeginPrepare)
        self._waiting[self._begin.gid] = self._begin, self._collected
        self.prepared[self._begin.prepare_lsn] = None

    def _end(self, end: CommitPrepared | RollbackPrepared) -> UnitOfWork | None:
        """What was prepared under the id, if it is committed."""
        if end.gid not in self._waiting:
            what = f"the rows of the prepared transaction '{end.gid}' came before it was read"
            raise LostPosition(self._opening.name, what)
        begin, collected = self._waiting.pop(end.gid)
        self.prepared[begin.prepare_lsn] = end.end_lsn
        if isinstance(end, RollbackPrepared):
            return None
        changes, bad = told(collected)
        return UnitOfWork(lsn_text(end.end_lsn), str(end.xid), end.time, changes, end.gid, bad)

    def _take_all(self, messages: Iterable[bytes]) -> None:
        for data in messages:
            self._take(decode(data), len(data))

    def _take(self, message: Message, size: int) -> None:
        self.size += size
        match message:
            case RelationMessage():
                self._announce(message)
            case RowMessage():
                self._row(message, size)
            case TruncateMessage():
                self._truncate(message)

    def _unit(self, commit: Commit) -> UnitOfWork:
        assert self._begin is not None
        changes, bad = told(self._collected)
        return UnitOfWork(lsn_text(commit.end_lsn), str(self._begin.xid), commit.time, changes, quarantined=bad)

    def _announce(self, message: RelationMessage) -> None:
        remote = self._remotes.get((message.schema, message.name))
        if remote is None:
            return
        if message.identity != "f":
            mend = f"ALTER TABLE {full_name(remote)} REPLICA IDENTITY FULL;"
            raise LostPosition(self._opening.name, f"table '{remote}' does not log whole old rows any more; run {mend}")
        known: Mapping[str, Any] = self._opening.memory["tables"][remote]["columns"]
        schema = self._opening.known[remote].schema
        present = {column.name: place for place, column in enumerate(message.columns)}
        announced = {column.name: (column.type_oid, column.modifier) for column in message.columns}
        gone = tuple(
            column.name for column in schema if not is_same(column, known[column.name], announced.get(column.name))
        )
        if gone:
            what = f"columns that are gone or have another type: {', '.join(gone)}"
            raise SchemaChanged(self._opening.name, remote, what, gone=gone)
        places = tuple(present[column.name] for column in schema)
        self._layouts[message.oid] = _Layout(remote, schema, places, tuple(decoder(c.type) for c in schema))

    def _collect(self, remote: str) -> Collected:
        if remote not in self._collected:
            self._collected[remote] = Collected(self._opening, self._opening.known[remote])
        return self._collected[remote]

    def _row(self, message: RowMessage, size: int) -> None:
        layout = self._layouts.get(message.oid)
        if layout is None:
            return
        collected = self._collect(layout.remote)
        if message.after is not None:
            whole = _filled(message.after, message.before)
            collected.add(self._decoded(layout, whole, +1, collected.bad), +1, size)
        if message.before is not None and not message.is_key:
            collected.add(self._decoded(layout, message.before, -1, collected.bad), -1, 0)
        elif message.after is None or message.before is not None:
            raise LostPosition(self._opening.name, f"an old row of table '{layout.remote}' is not whole")

    def _truncate(self, message: TruncateMessage) -> None:
        """Whatever came before it in the same transaction is gone too."""
        for layout in (self._layouts[oid] for oid in message.oids if oid in self._layouts):
            self._collected[layout.remote] = Collected(self._opening, self._opening.known[layout.remote], True)

    def _decoded(self, layout: _Layout, image: Image, count: int, bad: list[BadRow]) -> Sequence[Row]:
        """The row; nothing if it is put aside."""
        values: list[Any] = []
        for place, decode_value in zip(layout.places, layout.decoders, strict=True):
            text = image[place]
            try:
                values.append(None if text is None else decode_value(_text(text)))
            except (ValueError, ArithmeticError, KeyError) as error:
                column = layout.schema.columns[len(values)].name
                position = lsn_text(_place(self._begin)) if self._begin else None
                row = {c.name: image[p] for c, p in zip(layout.schema, layout.places, strict=True)}
                table = self._opening.known[layout.remote]
                Sieve(self._opening, bad).refuse(table, column, str(error), position, row, count)
                return ()
        return (tuple(values),)


def _place(begin: Begin | BeginPrepare) -> int:
    return begin.commit_lsn if isinstance(begin, Begin) else begin.prepare_lsn


def _filled(after: Image, before: Image | None) -> Image:
    """An unchanged large value is in the old row."""
    if UNCHANGED not in after:
        return after
    old = before or (UNCHANGED,) * len(after)
    return tuple(before if value is UNCHANGED else value for value, before in zip(after, old, strict=True))


def _text(value: str | Unchanged) -> str:
    if isinstance(value, Unchanged):
        raise ValueError("a large value that the log does not hold")
    return value


def is_same(column: Column, recorded: Sequence[Any], told: tuple[int, int] | None) -> bool:
    """Whether a column of this type and modifier holds what it held when it was recorded."""
    if told is None or told[0] != recorded[0]:
        return False
    # Only the digits of a decimal are in the modifier and in our type as well.
    derived = recorded[1] == told[1] or not column.type.startswith("decimal")
    return derived or spark_type(told[0], told[1], "b", None) == column.type
