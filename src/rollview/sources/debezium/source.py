"""Debezium's change events as a source.

Law: the first copy is the newest snapshot that the connector took and all whole transactions after it; then each whole
transaction is a unit of work. Rows that go are told whole, or the source stops.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

from rollview.core.references import resolve
from rollview.errors import LostPosition, NotFound, SourceDown, SourceStopped, Unreadable
from rollview.sources.debezium.assembly import Assembly, Placed, Stated, Whole
from rollview.sources.debezium.columns import BlockColumns, table_after
from rollview.sources.debezium.reached import Places, ReadSoFar
from rollview.sources.debezium.records import (
    Event,
    Heartbeat,
    Operation,
    Statement,
    TransactionEnd,
    UnknownRecordError,
    parse,
)
from rollview.sources.debezium.replayed import RENAMED, Copy, Replay, ReplayedRows, SnapshotRows, unclear
from rollview.sources.debezium.rows import EventRows, places_text
from rollview.sources.debezium.statements import TableStatement, told, types_in
from rollview.sources.debezium.streams import FolderStreams, Found, Place, Streams
from rollview.sources.debezium.values import OPTIONS, is_known
from rollview.sources.inside import Inside
from rollview.sources.protocol import (
    GONE,
    Batch,
    Capability,
    Changes,
    Finding,
    FirstCopy,
    Health,
    LayoutChange,
    LeavesNothing,
    Opening,
    Rows,
    SourceTable,
    UnitOfWork,
)
from rollview.sources.settings import NEW_COLUMNS, OPEN_ALARM, NewColumns, TableSettings

_KAFKA = "kafka."
_FILES = "files"
"""What the position remembers: the files that there were when it was read."""
_RENAMED = "renamed"
"""And the tables that got another name since the connector copied them, with the place of that in the log."""
_SHOWN = 60


class DebeziumSource(LeavesNothing):
    kind: ClassVar[str] = "debezium"
    capabilities: ClassVar[frozenset[Capability]] = frozenset(Capability) - {Capability.SCHEMA_MESSAGES}

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._options = opening.settings.options
        self._streams = _open_streams(opening)
        self._known: Mapping[str, Sequence[str]] | None = opening.memory.get(_FILES)
        self._health = Health()
        self._at = ReadSoFar.of(opening.memory)
        self._types = self._at.types
        """Of columns, where the statements that were read on lead."""
        self._renamed: dict[str, Any] = dict(opening.memory.get(_RENAMED, {}))
        new = NewColumns(self._options.get(NEW_COLUMNS, NewColumns.IGNORE))
        self._columns = BlockColumns(opening.name, opening.memory, new)
        self._rows = EventRows(opening)
        self._known_at: dict[str, tuple[BlockColumns, ReadSoFar]] = {}
        """What is known at the positions that were told last: not all of it may be published."""

    def check(self) -> tuple[Finding, ...]:
        found = [finding for table in self._opening.settings.tables for finding in _table_findings(table)]
        for name, value in self._options.items():
            if not name.startswith(_KAFKA) and name != OPEN_ALARM and value not in OPTIONS.get(name, ()):
                known = "; ".join(f"{option}: {' or '.join(values)}" for option, values in OPTIONS.items())
                found.append(Finding(f"the option '{name}' or its value is not known; there are {known}"))
        try:
            self._streams.check(self._streams.start(), None)
        except (SourceDown, SourceStopped) as error:
            found.append(Finding(error.message))
        return tuple(found)

    def tables(self) -> tuple[SourceTable, ...]:
        return self._described(self._opening.known, {})

    def _described(
        self, known: Mapping[str, SourceTable], copied: Mapping[str, Collection[str]]
    ) -> tuple[SourceTable, ...]:
        chosen = self._opening.settings.tables
        return tuple(self._columns.described(one, known.get(one.remote), copied.get(one.remote, ())) for one in chosen)

    @contextmanager
    def first_copy(self) -> Iterator[FirstCopy]:
        places = dict(self._streams.start())
        self._streams.check(places, None)
        copy = self._copied(places)
        newest, copied = copy.newest() if self._opening.known else ({}, {})
        changes = self._copied_changes(newest, copied)
        known = {remote: table_after(table, changes.get(remote)) for remote, table in self._opening.known.items()}
        tables = {table.name: table for table in self._described(known, copied)}
        state = ReplayedRows(self._opening.name, tables)
        replay = Replay(self._rows, self._columns, state, self._opening.known).run(copy)
        if state.missing and not self._opening.known:
            raise NotFound("table", min(state.missing))
        self._columns, self._at = replay.columns.copied(state.missing), copy.at

        def rows(remote: str) -> Iterator[Rows]:
            yield list(state.rows[remote].elements())

        if not self._opening.known:
            self._columns = self._columns.begun()
        here = tuple(table for remote, table in tables.items() if remote not in state.missing)
        about = (places_text(copy.at.places), replay.moment, here, rows, self._memory())
        yield FirstCopy(*about, changes=changes)

    def _copied_changes(
        self, newest: Mapping[str, Event], copied: Mapping[str, Collection[str]]
    ) -> dict[str, LayoutChange]:
        """What is another in tables that were captured before, by the newest event of each."""
        columns = self._columns
        if columns.new is NewColumns.STOP:
            # A copy takes the source as it is.
            columns = replace(columns, new=NewColumns.IGNORE)
        changes: dict[str, LayoutChange] = {}
        for remote, event in newest.items():
            about = (self._opening.settings.table(remote), self._opening.known[remote].schema, event)
            change = columns.change(*about, copied[remote])
            if change is not None and change.memory is not None:
                columns = replace(columns, memory=change.memory)
                changes[remote] = change
        self._columns = replace(columns, new=self._columns.new)
        return changes

    def read(self, after: str, limit: int) -> Batch:
        places = {**self._streams.start(), **json.loads(after)}
        self._streams.check(places, self._known)
        if self._brings_files():
            # Files are known before a record of them is published, so one that is not known was never read.
            self._known = self._files()
            return Batch((), after, complete=False, memory=self._memory())
        self._columns, self._at = known = self._known_at.get(after, (self._columns, self._at))
        self._known_at, self._types = {after: known}, self._at.types
        assembly = Assembly.after(self._opening.name, self._opening.settings.remotes, places, self._at)
        units: list[UnitOfWork] = []
        beats: list[datetime] = []
        complete, stopped = self._fill(assembly, limit, beats)
        try:
            for step in assembly.steps():
                if isinstance(step, Stated) and units:
                    # What it says is remembered with the place after it, and units before it are published alone.
                    return Batch(tuple(units), after, complete=False, memory=self._memory())
                unit = self._stated(step, assembly.at) if isinstance(step, Stated) else self._followed(step)
                self._at, after = assembly.at, places_text(step.places)
                self._known_at[after] = self._columns, self._at
                if unit is None:
                    return Batch((), after, complete=False, memory=self._memory())
                units.append(unit)
        except SourceStopped as error:
            stopped = error
        memory = self._memory()
        # What was whole before it is taken first.
        if stopped is not None and not units:
            raise stopped
        if stopped is not None:
            return Batch(tuple(units), after, complete=False, memory=memory)
        # However much follows a transaction without its end, it is what the source waits for.
        self._health = replace(_health(assembly) if complete or not units else Health(), alarm=self._alarm())
        times = [unit.time for unit in units] + ([] if assembly.waits else beats)
        return Batch(tuple(units), after, complete, memory, max(times, default=None) if complete else None)

    def health(self) -> Health:
        return self._health

    def _alarm(self) -> str | None:
        """What was to be taken and could not be."""
        if self._columns.new is not NewColumns.TAKE:
            return None
        known = self._opening.known
        left = [(table, ", ".join(self._columns.left_out(table, known[table].schema))) for table in known]
        told = [f"of table '{table}' left out: {names}" for table, names in left if names]
        what = "nobody tells what older rows have there; have the connector copy its tables again, then run"
        return f"{'; '.join(told)}; {what}: rollview source resnapshot {self._opening.name}" if told else None

    def _stated(self, stated: Stated, at: ReadSoFar) -> UnitOfWork | None:
        """TableChanged if a statement has done something to a table other than to its rows."""
        about, remote = stated.told, stated.told.remote
        if about.unclear is not None:
            raise LostPosition(self._opening.name, unclear(about))
        if about.is_new:
            if remote in self._opening.gone or not about.if_gone:
                raise self._opening.new_table(remote).raised()
            return None
        if about.called in self._opening.settings.remotes:
            what = f"table '{remote}' has the name of another that is captured, '{about.called}'"
            raise LostPosition(self._opening.name, f"{what}; have the connector copy its tables again")
        self._at, position = at, places_text(stated.places)
        if about.is_gone:
            memory = {**self._memory(), GONE: sorted({*self._opening.gone, remote})}
            raise replace(self._opening.lost_table(remote), position=position, memory=memory).raised()
        if about.emptied:
            return UnitOfWork(position, "TRUNCATE", about.time, {remote: Changes(replaces=True)})
        settings, known = self._opening.settings.table(remote), self._opening.known[remote].schema
        columns, change = self._columns.stated(settings, known, about)
        if change is not None:
            if about.called:
                self._renamed = {name: log for name, log in self._renamed.items() if name != remote}
                self._renamed[about.called] = about.log
            if change.memory is not None:
                change = replace(change, memory=self._memory(change.memory), position=position)
            raise change.raised()
        self._columns = columns
        return None

    def _followed(self, whole: Whole) -> UnitOfWork:
        self._follow(whole)
        return self._rows.unit(self._presently(whole), self._opening.known)

    def _presently(self, whole: Whole) -> Whole:
        """Its events under the present names of columns."""
        return replace(whole, events=tuple(map(self._columns.present_in, whole.events)))

    def _follow(self, whole: Whole) -> None:
        """TableChanged if the columns of a table are not what they were; the newest of its events tells."""
        events = ((placed.remote, placed.record) for placed in whole.events)
        newest = {remote: event for remote, event in events if isinstance(event, Event) and event.layout}
        for remote, event in newest.items():
            assert remote is not None
            settings, known = self._opening.settings.table(remote), self._opening.known[remote].schema
            change = self._columns.change(settings, known, event)
            if change is not None:
                memory = None if change.memory is None else self._memory(change.memory)
                raise replace(change, memory=memory).raised()
        for remote, event in newest.items():
            self._columns = self._columns.noted(remote or "", event)

    def _memory(self, columns: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """What has to be known at the position that was read to."""
        return {
            **(self._columns.memory if columns is None else columns),
            **self._at.memory(),
            _FILES: self._files(),
            _RENAMED: self._renamed,
        }

    def _files(self) -> dict[str, list[str]]:
        return {stream: list(names) for stream, names in self._streams.listed().items()}

    def _brings_files(self) -> bool:
        known = self._known or {}
        return any(not set(names) <= set(known.get(stream, ())) for stream, names in self._files().items())

    def acknowledge(self, position: str) -> None:
        """Files and topics are kept by their own rules."""

    def order(self, position: str) -> int:
        return sum(place[0] for place in json.loads(position).values())

    def close(self) -> None:
        self._streams.close()

    def _fill(self, assembly: Assembly, limit: int, beats: list[datetime]) -> tuple[bool, SourceStopped | None]:
        """Read on in every stream; whether each was read to its end, and what stopped one of them."""
        complete, stopped = True, None
        # One with nothing but statements is read after the others: a connector that writes records in their order has
        # written those by then that come before rows. Topics come in such an order.
        for stream, place in self._in_order(assembly.places):
            try:
                complete = self._fill_from(assembly, stream, place, limit, beats) and complete
            except SourceStopped as error:
                # What rows come after statements that cannot be read, nobody can tell.
                if not assembly.has_rows(stream):
                    raise
                stopped = stopped or error
        return complete, stopped

    def _in_order(self, places: Places) -> list[tuple[str, Place]]:
        is_sorted = len(self._streams.listed()) < 2
        return sorted(places.items(), key=lambda one: 0 if is_sorted else self._turn(*one))

    def _turn(self, stream: str, place: Place) -> int:
        """Streams of statements come last, and those that may become one after those with rows."""
        try:
            records = (parse(found.data) for found in self._streams.records(stream, place))
            first = next((one for one in records if isinstance(one, Event | TransactionEnd | Statement)), None)
        except (SourceStopped, UnknownRecordError):
            return 0
        return 1 if first is None else 2 * isinstance(first, Statement)

    def _fill_from(self, assembly: Assembly, stream: str, place: Place, limit: int, beats: list[datetime]) -> bool:
        number = 0
        for found in self._streams.records(stream, place):
            if number >= limit:
                return False
            placed = self._placed(found, beats)
            # None of the statements may be missing that comes before rows.
            number += placed is None or not isinstance(placed.record, TableStatement | Statement)
            if placed is None:
                continue
            if isinstance(placed.record, Event) and placed.record.operation is Operation.READ:
                raise LostPosition(self._opening.name, "the connector has copied its tables again")
            assembly.add(placed)
        return True

    def _copied(self, places: Places) -> Copy:
        """The newest snapshot, and everything that follows it."""
        assembly = Assembly(self._opening.name, self._opening.settings.remotes, places)
        snapshot, self._types = SnapshotRows(), {}
        for stream, place in self._in_order(places):
            for found in self._streams.records(stream, place):
                placed = self._placed(found, [], copies=True)
                if placed is None:
                    continue
                record = placed.record
                if isinstance(record, Event) and record.operation is Operation.READ:
                    if snapshot.add(placed):
                        assembly.forget(placed)
                else:
                    if not isinstance(record, Statement):
                        snapshot.ends_in(stream)
                    assembly.add(placed)
        if snapshot.is_open:
            raise SourceDown(self._opening.name, "the connector has not finished its own snapshot yet")
        snapshot.leave_out(assembly.begin_after(snapshot.whole))
        self._check_renamed(snapshot, assembly)
        steps: list[Whole | Stated] = []
        at = assembly.at
        for step in assembly.steps():
            if isinstance(step, Stated) and self._ends_copy(step):
                break
            steps.append(step)
            at = assembly.at
        self._check_pieces(snapshot, steps)
        return Copy(snapshot.rows, steps, at)

    def _check_pieces(self, snapshot: SnapshotRows, steps: Sequence[Whole | Stated]) -> None:
        """Rows that are copied in pieces may be told by what came before them as well."""
        last = {(one.stream, one.remote): one.place[0] for one in snapshot.pieces}
        events = [one for step in steps if isinstance(step, Whole) for one in step.events]
        for one in (*snapshot.whole, *events):
            if one.place[0] < last.get((one.stream, one.remote), 0):
                what = f"table '{one.remote}' was copied in pieces (incremental) beside other rows of it"
                raise LostPosition(self._opening.name, f"{what}; have the connector copy it as a whole")

    def _check_renamed(self, snapshot: SnapshotRows, assembly: Assembly) -> None:
        """What the connector copied of a table before it got another name is not among its events."""
        for one in assembly.statements:
            if one.moved or one.unclear is not None:
                what = unclear(one) if one.unclear is not None else f"table '{one.remote}' {RENAMED}"
                raise LostPosition(self._opening.name, what)
        copied, reached = {one.remote for one in snapshot.whole}, assembly.reached
        for remote, log in self._renamed.items():
            is_older = reached is None or log is None or reached[0] != log[0] or reached <= tuple(log)
            if remote not in copied and is_older:
                raise LostPosition(self._opening.name, f"table '{remote}' {RENAMED}")
        self._renamed = {}

    def _ends_copy(self, stated: Stated) -> bool:
        """Whether it is followed after the copy: columns are known by the names that they had before it."""
        told, passed = stated.told, self._at.places.get(stated.stream)
        is_passed = passed is not None and not self._streams.is_beyond(stated.place, passed)
        if told.called or (told.is_gone and not is_passed and self._opening.known):
            return True
        return bool(self._opening.known) and not is_passed and not told.emptied and not told.is_new

    def _placed(self, found: Found, beats: list[datetime], copies: bool = False) -> Placed | None:
        try:
            record = parse(found.data)
        except UnknownRecordError as error:
            raise Unreadable(
                self._opening.name, str(error), place=_place_told(found), text=_beginning(found.data)
            ) from None
        if isinstance(record, Heartbeat):
            beats.append(record.time)
        if isinstance(record, TransactionEnd):
            return Placed(found.stream, found.place, record)
        if isinstance(record, Statement):
            return self._placed_statement(found, record, copies)
        if not isinstance(record, Event):
            return None
        remote = next((name for name in record.names if name in self._opening.settings.remotes), None)
        if remote is None:
            return None
        if record.transaction is None and record.operation is Operation.TRUNCATE and record.log is not None:
            # MySQL's is a statement that is a transaction of its own.
            mark = ":".join(map(str, record.log))
            emptied = TableStatement(remote, record.time, record.log, emptied=True, mark=f"{mark} {record.operation}")
            return Placed(found.stream, found.place, emptied, remote)
        if record.transaction is None and record.operation is not Operation.READ:
            what = f"an event of table '{remote}' has no transaction; set provide.transaction.metadata=true"
            raise LostPosition(self._opening.name, what)
        return Placed(found.stream, found.place, record, remote)

    def _placed_statement(self, found: Found, record: Statement, copies: bool) -> Placed:
        remotes, types = self._opening.settings.remotes, types_in(record, self._opening.settings.remotes)
        about: TableStatement | None = None
        if record.is_met:
            about = told(record, remotes, self._types)
        elif types and copies:
            # The connector tells what its own copy has.
            remote = next(iter(types))
            about = TableStatement(remote, record.time, record.log, types[remote])
        self._types = {**self._types, **types}
        return Placed(found.stream, found.place, about or record, None if about is None else about.remote)


def _health(assembly: Assembly) -> Health:
    if assembly.oldest is None:
        return Health()
    transaction, since = assembly.oldest
    return Health(oldest_open=f"transaction {transaction}", open_since=since)


def _open_streams(opening: Opening) -> Streams:
    if not opening.address.startswith("kafka://"):
        return FolderStreams(Inside.of(opening), opening.settings.options.get("file_order"))
    # It needs a package that only those have who read Kafka.
    from rollview.sources.debezium.kafka import KafkaStreams

    settings = {
        name.removeprefix(_KAFKA): resolve(value, Path.cwd(), f"source '{opening.name}'")
        for name, value in opening.settings.options.items()
        if name.startswith(_KAFKA)
    }
    return KafkaStreams(opening.name, opening.address, opening.settings.remotes, settings)


def _table_findings(table: TableSettings) -> Iterator[Finding]:
    if not table.types:
        yield Finding(f"the types of the columns of '{table.remote}' are not declared")
    for column, type_ in table.types.items():
        if not is_known(type_):
            yield Finding(f"column '{column}' of '{table.remote}' is declared as '{type_}', which is not read here")


def _place_told(found: Found) -> str:
    where = "the record that ends at " + ", ".join(map(str, found.place))
    return f"{where} of stream '{found.stream}'" if found.stream else where


def _beginning(data: bytes | None) -> str:
    return (data or b"")[:_SHOWN].decode("utf-8", "replace")
