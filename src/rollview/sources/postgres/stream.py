"""Messages become units of work.

Law: a unit of work is what lies between Begin and Commit, and its position is where its commit ends. Rows of many
transactions are read at once, each by the layout that was announced before it. A prepared transaction is a unit of work
when it is committed. What stops the reading stops it after every unit of work that was whole before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from rollview.errors import LostPosition, SourceStopped, Unreadable
from rollview.sources.postgres.announced import AnnouncedLayout, Announcements
from rollview.sources.postgres.columns import Share, read_shares
from rollview.sources.postgres.layout import PgTable, split
from rollview.sources.postgres.messages import (
    Begin,
    BeginPrepare,
    Commit,
    CommitPrepared,
    Message,
    Prepare,
    RelationMessage,
    RollbackPrepared,
    RowMessage,
    TruncateMessage,
    UnknownMessageError,
    decode,
    lsn_text,
)
from rollview.sources.postgres.rows import RowReader
from rollview.sources.protocol import Opening, UnitOfWork
from rollview.sources.sections import NotPlainError
from rollview.sources.spool import Backlog, Collected, changes_and_bad_rows

_NO_ROW = re.compile(rb"[^IUD]")
_IN_TRANSACTION = (b"T", b"R")
"""Messages that wait with the rows of a transaction which may be known already."""
_TOGETHER = 200
_SHOWN = 30
NOT_LOOKED_AT: Mapping[str, PgTable | None] = {}
_AT_ONCE = 8 << 20
"""Bytes of rows that are read at once."""


@dataclass(frozen=True, slots=True, eq=False)
class _Draft:
    """A transaction as far as its rows were read."""

    begin: Begin | BeginPrepare
    collected: dict[str, Collected] = field(default_factory=dict)

    @property
    def position(self) -> str:
        begin = self.begin
        return lsn_text(begin.commit_lsn if isinstance(begin, Begin) else begin.prepare_lsn)

    def collect(self, opening: Opening, remote: str) -> Collected:
        if remote not in self.collected:
            self.collected[remote] = Collected(opening, opening.known[remote])
        return self.collected[remote]

    def unit(self, end: Commit | CommitPrepared) -> UnitOfWork:
        changes, bad = changes_and_bad_rows(self.collected)
        if isinstance(end, CommitPrepared):
            return UnitOfWork(lsn_text(end.end_lsn), str(end.xid), end.time, changes, end.gid, bad)
        return UnitOfWork(lsn_text(end.end_lsn), str(self.begin.xid), end.time, changes, quarantined=bad)


@dataclass(frozen=True, slots=True)
class _Step:
    """The rows up to ``stop`` that no step before has taken are the draft's; ``end``: it is whole with them."""

    draft: _Draft
    stop: int
    end: Commit | CommitPrepared | None = None


class PostgresStream:
    """Layouts are announced again in every reading, so one stream serves one reading."""

    def __init__(self, opening: Opening, tables: Mapping[str, PgTable | None] = NOT_LOOKED_AT) -> None:
        """``tables``: as they are now; one that is not among them is taken to be as it was recorded."""
        self._opening = opening
        remotes = opening.settings.remotes
        self._announcements = {remote: Announcements(opening, remote, tables.get(remote)) for remote in remotes}
        self._remotes = {split(remote): remote for remote in opening.settings.remotes}
        recorded: Mapping[str, Any] = opening.memory.get("tables", {})
        self._by_oid = {recorded.get(remote, {}).get("oid"): remote for remote in opening.settings.remotes}
        self._layouts: dict[int, AnnouncedLayout] = {}
        self._others: set[int] = set()
        """Tables that were announced and are none of ours."""
        self._passed: dict[int, bytes] = {}
        """What was announced last in transactions that were known already: rows that follow may be of it."""
        self._draft: _Draft | None = None
        self._backlog: Backlog | None = None
        self._waiting: dict[str, _Draft] = {}
        self._rows: list[bytes] = []
        self._unread = 0
        self._steps: list[_Step] = []
        self._units: list[UnitOfWork] = []
        self.seen = 0
        self.size = 0
        """Messages, and bytes of rows, that were taken so far."""
        self.prepared: dict[int, int | None] = {}
        """Where transactions were prepared, and where their end is, if it was seen."""

    def units(self, messages: Iterable[bytes], after: int) -> Iterator[list[UnitOfWork]]:
        """Those that end beyond ``after``, several at once. Rows of a transaction that may be known already wait for
        its end."""
        stopped: SourceStopped | None = None
        try:
            coming = iter(messages)
            while some := list(islice(coming, _TOGETHER)):
                self.seen += len(some)
                self._take(some, after)
                if self._units:
                    yield self._taken()
        except SourceStopped as error:
            stopped = error
        try:
            self._read()
        except SourceStopped as error:
            stopped = error
        yield self._taken()
        if stopped is not None:
            raise stopped

    def _taken(self) -> list[UnitOfWork]:
        taken, self._units = self._units, []
        return taken

    def _take(self, messages: Sequence[bytes], after: int) -> None:
        """Rows between two other messages are taken together."""
        if not all(messages):
            raise self._unreadable("pgoutput sent nothing", b"")
        at, kinds = 0, bytes([data[0] for data in messages])
        for other in _NO_ROW.finditer(kinds):
            self._take_rows(messages[at : other.start()])
            at, data = other.end(), messages[other.start()]
            if self._backlog is not None and other[0] in _IN_TRANSACTION:
                self._backlog.append(data)
            else:
                self._boundary(self._decoded(data), after)
        self._take_rows(messages[at:])

    def _decoded(self, data: bytes) -> Message:
        try:
            return decode(data)
        except UnknownMessageError as error:
            raise self._unreadable(str(error), data) from None

    def _unreadable(self, reason: str, data: bytes) -> Unreadable:
        at = None if self._draft is None else f"the transaction at {self._draft.position}"
        return Unreadable(self._opening.name, reason, place=at, text=repr(data[:_SHOWN])[2:-1])

    def _take_rows(self, messages: Sequence[bytes]) -> None:
        if messages and self._draft is None:
            raise self._unreadable("a row is in no transaction", messages[0])
        if self._backlog is not None:
            for data in messages:
                self._backlog.append(data)
            return
        if self._passed:
            self._announce_passed(messages)
        self._rows += messages
        self._unread += sum(map(len, messages))
        if self._unread > _AT_ONCE:
            self._read_all()

    def _boundary(self, message: Message, after: int) -> None:
        match message:
            case Begin():
                self._begin(message)
                self._backlog = Backlog(self._opening.room) if message.commit_lsn < after else None
            case Commit():
                self._check_commit(message)
                waiting, self._backlog = self._backlog, None
                is_new = message.end_lsn > after
                for data in waiting or ():
                    if is_new:
                        self._take([data], after)
                    elif data[:1] == b"R":
                        self._passed[int.from_bytes(data[1:5], "big")] = data
                if waiting is not None:
                    waiting.close()
                self._step(message if is_new else None)
                self._draft = None
            case BeginPrepare():
                self._begin(message)
            case Prepare():
                self._prepare(message)
            case CommitPrepared() | RollbackPrepared():
                self._end(message, after)
            case RelationMessage():
                self._announce(message)
            case TruncateMessage():
                self._truncate(message)

    def _begin(self, message: Begin | BeginPrepare) -> None:
        if self._draft is not None:
            raise self._unreadable("a transaction begins within another", b"")
        self._draft = _Draft(message)

    def _check_commit(self, message: Commit) -> None:
        if self._draft is None or not isinstance(self._draft.begin, Begin):
            raise self._unreadable("a commit ends no transaction", b"")
        if message.lsn != self._draft.begin.commit_lsn or message.end_lsn <= message.lsn:
            raise self._unreadable("a commit is of another transaction than its begin", b"")

    def _step(self, end: Commit | None = None) -> None:
        assert self._draft is not None
        self._steps.append(_Step(self._draft, len(self._rows), end))

    def _prepare(self, message: Prepare) -> None:
        draft = self._draft
        if draft is None or not isinstance(draft.begin, BeginPrepare) or draft.begin.gid != message.gid:
            raise self._unreadable("what is prepared has not begun", b"")
        self._step()
        self._waiting[draft.begin.gid] = draft
        self.prepared[draft.begin.prepare_lsn] = None
        self._draft = None

    def _end(self, end: CommitPrepared | RollbackPrepared, after: int) -> None:
        """What was prepared under the id is a unit of work, if it is committed."""
        if end.gid not in self._waiting:
            what = f"the rows of the prepared transaction '{end.gid}' came before it was read"
            raise LostPosition(self._opening.name, what)
        draft = self._waiting.pop(end.gid)
        assert isinstance(draft.begin, BeginPrepare)
        self.prepared[draft.begin.prepare_lsn] = end.end_lsn
        if isinstance(end, CommitPrepared) and end.end_lsn > after:
            self._steps.append(_Step(draft, len(self._rows), end))

    def _announce_passed(self, rows: Iterable[bytes]) -> None:
        for oid in {int.from_bytes(data[1:5], "big") for data in rows}:
            data = self._passed.pop(oid, None)
            if data is not None:
                self._boundary(self._decoded(data), 0)

    def _announce(self, message: RelationMessage) -> None:
        self._passed.pop(message.oid, None)
        before = self._layouts.get(message.oid)
        # A table that has another name now, perhaps one of ours, is still the same table, and what follows is read by
        # what is said of it now.
        named = self._remotes.get((message.schema, message.name))
        remote = self._by_oid.get(message.oid, named) if before is None else before.remote
        if remote is None:
            self._others.add(message.oid)
        if remote is None or (before is not None and before.message == message):
            return
        if before is not None:
            self._read_all()
        self._layouts[message.oid] = self._announcements[remote].announced(message, self._place)

    @property
    def _place(self) -> int:
        """Where the transaction is that is read; 0 if none is."""
        if self._draft is None:
            return 0
        begin = self._draft.begin
        return begin.commit_lsn if isinstance(begin, Begin) else begin.prepare_lsn

    def _truncate(self, message: TruncateMessage) -> None:
        """Whatever came before it in the same transaction is gone too."""
        for oid in self._passed.keys() & set(message.oids):
            self._boundary(self._decoded(self._passed[oid]), 0)
        if self._draft is None or not self._layouts.keys() | self._others >= set(message.oids):
            raise self._unreadable("a table is emptied that was not announced, or in no transaction", b"")
        self._read_all()
        for remote in (self._layouts[oid].remote for oid in message.oids if oid in self._layouts):
            self._draft.collected[remote] = Collected(self._opening, self._opening.known[remote], True)

    def _read_all(self) -> None:
        """What was taken of the transaction that goes on, too."""
        if self._draft is not None:
            self._step()
        self._read()

    def _read(self) -> None:
        rows, steps = self._rows, self._steps
        if not steps:
            return
        self.size += self._unread
        self._rows, self._steps, self._unread = [], [], 0
        bounds = [0, *(step.stop for step in steps)]
        try:
            if not self._are_announced(rows[: bounds[-1]]):
                raise NotPlainError
            shares = read_shares(rows[: bounds[-1]], self._layouts, bounds)
        except NotPlainError:
            shares = None
        for number, step in enumerate(steps):
            if shares is None:
                self._collect_rows(step.draft, rows[bounds[number] : step.stop])
            else:
                self._collect_parts(step.draft, shares, number)
            if step.end is not None:
                self._units.append(step.draft.unit(step.end))

    def _are_announced(self, rows: Sequence[bytes]) -> bool:
        """A row of a table that was never announced is not simply another's."""
        known = {oid.to_bytes(4, "big") for oid in (*self._layouts, *self._others)}
        return all(data[1:5] in known for data in rows)

    def _collect_parts(self, draft: _Draft, shares: Iterable[Share], number: int) -> None:
        for share in shares:
            gone, come, size = share.part(number)
            if size:
                collected = draft.collect(self._opening, share.layout.remote)
                for rows, count in ((come, +1), (gone, -1)):
                    if len(rows):
                        collected.add(rows, count, size * len(rows) // (len(come) + len(gone)))

    def _collect_rows(self, draft: _Draft, messages: Iterable[bytes]) -> None:
        for data in messages:
            message = self._decoded(data)
            assert isinstance(message, RowMessage)
            layout = self._layouts.get(message.oid)
            if layout is None and message.oid not in self._others:
                raise self._unreadable("a row is of a table that was not announced", data)
            if layout is not None:
                if any(image is not None and len(image) != len(layout.message.columns) for image in message.images):
                    raise self._unreadable("a row has more or fewer values than its table has columns", data)
                collected = draft.collect(self._opening, layout.remote)
                reader = RowReader(self._opening, layout, draft.position, collected.bad)
                collected.add(reader.come(message), +1, len(data))
                collected.add(reader.gone(message), -1, 0)
