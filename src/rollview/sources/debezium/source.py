"""Debezium's change events as a source.

Law: the first copy is the newest snapshot that the connector took and all whole transactions after it; then each whole
transaction is a unit of work. Rows that go are told whole, or the source stops.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

from rollview.core.references import resolve
from rollview.core.schema import Column
from rollview.errors import BadValue, LostPosition, SchemaChanged, SourceDown, SourceStopped, Unreadable
from rollview.sources.debezium.assembly import Assembly, Placed, Places, Whole
from rollview.sources.debezium.columns import Block, BlockColumns, block_of, lacks, table_after
from rollview.sources.debezium.records import Event, Heartbeat, Operation, TransactionEnd, UnknownRecordError, parse
from rollview.sources.debezium.replayed import ReplayedRows
from rollview.sources.debezium.streams import FolderStreams, Found, Place, Streams
from rollview.sources.debezium.values import OPTIONS, UNAVAILABLE, decode, is_known
from rollview.sources.inside import Inside
from rollview.sources.protocol import (
    Batch,
    Capability,
    Changes,
    Finding,
    FirstCopy,
    Health,
    LayoutChange,
    LeavesNothing,
    Opening,
    Row,
    Rows,
    SourceTable,
    UnitOfWork,
)
from rollview.sources.settings import NEW_COLUMNS, OPEN_ALARM, NewColumns, TableSettings

_KAFKA = "kafka."
_FILES = "files"
"""What the position remembers: the files that there were when it was read."""
_EVERYTHING = 10**12
_SHOWN = 60
_REPAIR = "PostgreSQL: ALTER TABLE … REPLICA IDENTITY FULL; MySQL: SET GLOBAL binlog_row_image = FULL"


@dataclass(slots=True)
class _Collected:
    before: list[Row] = field(default_factory=list)
    after: list[Row] = field(default_factory=list)
    replaces: bool = False


class DebeziumSource(LeavesNothing):
    kind: ClassVar[str] = "debezium"
    capabilities: ClassVar[frozenset[Capability]] = frozenset(Capability) - {Capability.SCHEMA_MESSAGES}

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._options = opening.settings.options
        self._streams = _open_streams(opening)
        self._known: Mapping[str, Sequence[str]] | None = opening.memory.get(_FILES)
        self._health = Health()
        new = NewColumns(self._options.get(NEW_COLUMNS, NewColumns.IGNORE))
        self._columns = BlockColumns(opening.name, opening.memory, new)

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
        newest, copied = self._newest_events(places) if self._opening.known else ({}, {})
        changes = self._copied_changes(newest, copied)
        known = {remote: table_after(table, changes.get(remote)) for remote, table in self._opening.known.items()}
        tables = {table.name: table for table in self._described(known, copied)}
        assembly = Assembly(self._opening.name, self._opening.settings.remotes, places)
        state = ReplayedRows(self._opening.name, tables)
        moment = self._replay(assembly, state)

        def rows(remote: str) -> Iterator[Rows]:
            yield list(state.rows[remote].elements())

        if not self._opening.known:
            self._columns = self._columns.begun()
        about = (_text(assembly.places), moment, tuple(tables.values()), rows, self._memory())
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

    def _newest_events(self, places: Mapping[str, Place]) -> tuple[dict[str, Event], dict[str, set[str]]]:
        """By tables: the newest event, and its columns if all events have just these from the newest copy on."""
        newest: dict[str, Event] = {}
        blocks: dict[str, list[Block]] = {}
        for remote, event in self._captured_events(places):
            if event.snapshot == "first":
                blocks.clear()
            newest[remote] = event
            blocks.setdefault(remote, []).append(block_of(event.layout))
        same = {remote for remote, told in blocks.items() if len({tuple(one.items()) for one in told}) == 1}
        return newest, {remote: set(event.layout) if remote in same else set() for remote, event in newest.items()}

    def _captured_events(self, places: Mapping[str, Place]) -> Iterator[tuple[str, Event]]:
        """Events of captured tables that tell their columns, as their streams have them."""
        for stream, place in places.items():
            for found in self._streams.records(stream, place):
                placed = self._placed(found, [])
                if placed is None or placed.remote is None or not isinstance(placed.record, Event):
                    continue
                if placed.record.layout:
                    yield placed.remote, placed.record

    def read(self, after: str, limit: int) -> Batch:
        places = {**self._streams.start(), **json.loads(after)}
        self._streams.check(places, self._known)
        if self._brings_files():
            # Files are known before a record of them is published, so one that is not known was never read.
            self._known = self._files()
            return Batch((), after, complete=False, memory=self._memory())
        assembly = Assembly(self._opening.name, self._opening.settings.remotes, places)
        known = self._opening.known
        units: list[UnitOfWork] = []
        beats: list[datetime] = []
        complete, stopped = self._fill(assembly, limit, beats)
        try:
            for whole in assembly.whole():
                self._follow(whole)
                units.append(self._unit(whole, known))
        except SourceStopped as error:
            stopped = error
        memory = self._memory()
        # What was whole before it is taken first.
        if stopped is not None and not units:
            raise stopped
        if stopped is not None:
            return Batch(tuple(units), units[-1].position, complete=False, memory=memory)
        position = units[-1].position if units else after
        # However much follows a transaction without its end, it is what the source waits for.
        self._health = replace(_health(assembly) if complete or not units else Health(), alarm=self._alarm())
        times = [unit.time for unit in units] + ([] if assembly.waits else beats)
        return Batch(tuple(units), position, complete, memory, max(times, default=None) if complete else None)

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

    def _follow(self, whole: Whole) -> None:
        """TableChanged if the columns of a table are not what they were; the newest of its events tells."""
        events = ((placed.remote, placed.record) for placed in whole.events)
        newest = {remote: event for remote, event in events if isinstance(event, Event) and event.layout}
        for remote, event in newest.items():
            assert remote is not None
            settings, known = self._opening.settings.table(remote), self._opening.known[remote].schema
            change = self._columns.change(settings, known, event)
            if change is not None:
                memory = None if change.memory is None else {**change.memory, _FILES: self._files()}
                raise replace(change, memory=memory).raised()
        for remote, event in newest.items():
            self._columns = self._columns.noted(remote or "", event)

    def _memory(self) -> dict[str, Any]:
        """What has to be known at the position that was read to."""
        return {**self._columns.memory, _FILES: self._files()}

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
        for stream, place in assembly.places.items():
            try:
                complete = self._fill_from(assembly, stream, place, limit, beats) and complete
            except SourceStopped as error:
                stopped = stopped or error
        return complete, stopped

    def _fill_from(self, assembly: Assembly, stream: str, place: Place, limit: int, beats: list[datetime]) -> bool:
        for number, found in enumerate(self._streams.records(stream, place)):
            if number >= limit:
                return False
            placed = self._placed(found, beats)
            if placed is None:
                continue
            if isinstance(placed.record, Event) and placed.record.operation is Operation.READ:
                raise LostPosition(self._opening.name, "the connector has copied its tables again")
            assembly.add(placed)
        return True

    def _replay(self, assembly: Assembly, state: ReplayedRows) -> datetime:
        """Everything from the newest snapshot on. The time of the last of it."""
        moment = datetime.fromtimestamp(0, UTC)
        copying = False
        for stream, place in list(assembly.places.items()):
            for found in self._streams.records(stream, place):
                placed = self._placed(found, [])
                if placed is None:
                    continue
                record = placed.record
                if isinstance(record, Event) and record.operation is Operation.READ:
                    copying = self._read_row(placed, state)
                    assembly.places[stream] = found.place
                    moment = max(moment, record.time)
                else:
                    assembly.add(placed)
        if copying:
            raise SourceDown(self._opening.name, "the connector has not finished its own snapshot yet")
        for whole in assembly.whole():
            self._reset(whole, state)
            unit = self._unit(whole, state.tables)
            moment = max(moment, unit.time)
            state.apply(unit)
        return moment

    def _reset(self, whole: Whole, state: ReplayedRows) -> None:
        for placed in whole.events:
            assert isinstance(placed.record, Event)
            self._seen(state, placed.remote or "", placed.record)

    def _seen(self, state: ReplayedRows, remote: str, event: Event) -> Event:
        """The event under present names; its columns are the newest that a copy has seen."""
        self._columns = self._columns.noted(remote, event)
        event = self._columns.present(remote, event)
        if remote in self._opening.known:
            state.reset(remote, event)
        return event

    def _read_row(self, placed: Placed, state: ReplayedRows) -> bool:
        """Whether more rows of the snapshot are to come."""
        event, remote = placed.record, placed.remote
        assert isinstance(event, Event)
        assert remote is not None
        if event.snapshot == "first":
            state.clear()
        event = self._seen(state, remote, event)
        table = state.tables[remote]
        state.rows[remote][self._row(table, event, event.after, None)] += 1
        return event.snapshot not in ("last", "false", "incremental")

    def _placed(self, found: Found, beats: list[datetime]) -> Placed | None:
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
        if not isinstance(record, Event):
            return None
        remote = next((name for name in record.names if name in self._opening.settings.remotes), None)
        if remote is None:
            return None
        if record.transaction is None and record.operation is not Operation.READ:
            what = f"an event of table '{remote}' has no transaction; set provide.transaction.metadata=true"
            raise LostPosition(self._opening.name, what)
        return Placed(found.stream, found.place, record, remote)

    def _unit(self, whole: Whole, tables: Mapping[str, SourceTable]) -> UnitOfWork:
        collected: dict[str, _Collected] = {}
        for placed in whole.events:
            assert isinstance(placed.record, Event)
            assert placed.remote is not None
            event = self._columns.present(placed.remote, placed.record)
            self._collect(collected, tables[placed.remote], event)
        times = [placed.record.time for placed in whole.events if isinstance(placed.record, Event)]
        moment = max(times, default=datetime.fromtimestamp(0, UTC))
        changes = {remote: Changes(c.before, c.after, c.replaces) for remote, c in collected.items()}
        return UnitOfWork(_text(whole.places), whole.transaction, moment, changes)

    def _collect(self, collected: dict[str, _Collected], table: SourceTable, event: Event) -> None:
        if event.operation is Operation.TRUNCATE:
            collected[table.name] = _Collected(replaces=True)
            return
        one = collected.setdefault(table.name, _Collected())
        if event.operation in (Operation.UPDATE, Operation.DELETE):
            one.before.append(self._row(table, event, self._before(table, event), None))
        if event.operation in (Operation.CREATE, Operation.UPDATE):
            one.after.append(self._row(table, event, event.after, event.before))

    def _before(self, table: SourceTable, event: Event) -> Mapping[str, Any]:
        old, names = event.before, [c.name for c in table.schema if not self._is_filled(table, c, event)]
        others = [name for name in names if name not in table.constraints.primary_key]
        if old is None or any(name not in old for name in names):
            raise LostPosition(self._opening.name, f"an old row of table '{table.name}' is not whole ({_REPAIR})")
        looks_bare = event.operation is Operation.DELETE and bool(others) and all(old[name] is None for name in others)
        if looks_bare and self._options.get("before_images") != "whole":
            what = f"an old row of table '{table.name}' has nothing but its key, so it may not be whole ({_REPAIR})"
            raise LostPosition(self._opening.name, f"{what}; if it is, set the option before_images: whole")
        return old

    def _row(
        self, table: SourceTable, event: Event, image: Mapping[str, Any] | None, old: Mapping[str, Any] | None
    ) -> Row:
        values: list[Any] = []
        for column in table.schema:
            if image is not None and self._is_filled(table, column, event):
                values.append(None)
                continue
            if image is None or column.name not in image:
                raise SchemaChanged(self._opening.name, table.name, f"a row has no column '{column.name}'")
            value = image[column.name]
            if value == UNAVAILABLE:
                value = (old or {}).get(column.name, UNAVAILABLE)
            values.append(self._value(table, column, event, value))
        return tuple(values)

    def _is_filled(self, table: SourceTable, column: Column, event: Event) -> bool:
        """Whether the event is older than a column, or newer, and rows have NULL there."""
        return table.name in self._opening.known and lacks(event, column)

    def _value(self, table: SourceTable, column: Column, event: Event, value: Any) -> Any:
        if value == UNAVAILABLE:
            raise LostPosition(
                self._opening.name, f"a large value of table '{table.name}' is not in its record ({_REPAIR})"
            )
        schema = event.schemas.get(column.name)
        try:
            return decode(value, column.type, schema, self._options)
        # A schema that is not as Connect writes it is met here, too.
        except (ValueError, ArithmeticError, LookupError, TypeError, AttributeError, RecursionError) as error:
            reason = str(error) or type(error).__name__
            raise BadValue(self._opening.name, table.name, column.name, reason, event.transaction) from None


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


def _text(places: Places) -> str:
    return json.dumps(places, sort_keys=True, separators=(",", ":"))
