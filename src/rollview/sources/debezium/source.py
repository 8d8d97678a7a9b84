"""Debezium's change events as a source.

Law: the first copy is the newest snapshot that the connector took and all whole transactions after it; then each whole
transaction is a unit of work. Rows that go are told whole, or the source stops.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

from rollview.core.references import resolve
from rollview.core.schema import Column, Constraints, Schema
from rollview.errors import BadValue, LostPosition, SchemaChanged, SourceDown, SourceStopped, Unreadable
from rollview.sources.debezium.assembly import Assembly, Placed, Places, Whole
from rollview.sources.debezium.records import Event, Heartbeat, Operation, TransactionEnd, UnknownRecordError, parse
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
    LeavesNothing,
    Opening,
    Row,
    Rows,
    SourceTable,
    UnitOfWork,
)
from rollview.sources.settings import OPEN_ALARM, TableSettings
from rollview.sources.values import as_rows

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
        return tuple(map(_described, self._opening.settings.tables))

    @contextmanager
    def first_copy(self) -> Iterator[FirstCopy]:
        tables = {table.name: table for table in self.tables()}
        places = dict(self._streams.start())
        self._streams.check(places, None)
        assembly = Assembly(self._opening.name, self._opening.settings.remotes, places)
        state = _State(self._opening.name, tables)
        moment = self._replay(assembly, state)

        def rows(remote: str) -> Iterator[Rows]:
            yield list(state.rows[remote].elements())

        memory = {**self._opening.memory, _FILES: self._files()}
        yield FirstCopy(_text(assembly.places), moment, tuple(tables.values()), rows, memory)

    def read(self, after: str, limit: int) -> Batch:
        places = {**self._streams.start(), **json.loads(after)}
        self._streams.check(places, self._known)
        memory = {**self._opening.memory, _FILES: self._files()}
        if self._brings_files():
            # Files are known before a record of them is published, so one that is not known was never read.
            self._known = self._files()
            return Batch((), after, complete=False, memory=memory)
        assembly = Assembly(self._opening.name, self._opening.settings.remotes, places)
        known = self._opening.known
        units: list[UnitOfWork] = []
        beats: list[datetime] = []
        complete, stopped = self._fill(assembly, limit, beats)
        try:
            units.extend(self._unit(whole, known) for whole in assembly.whole())
        except SourceStopped as error:
            stopped = error
        # What was whole before it is taken first.
        if stopped is not None and not units:
            raise stopped
        if stopped is not None:
            return Batch(tuple(units), units[-1].position, complete=False, memory=memory)
        position = units[-1].position if units else after
        # However much follows a transaction without its end, it is what the source waits for.
        self._health = _health(assembly) if complete or not units else Health()
        times = [unit.time for unit in units] + ([] if assembly.waits else beats)
        return Batch(tuple(units), position, complete, memory, max(times, default=None) if complete else None)

    def health(self) -> Health:
        return self._health

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

    def _replay(self, assembly: Assembly, state: _State) -> datetime:
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
            unit = self._unit(whole, state.tables)
            moment = max(moment, unit.time)
            state.apply(unit)
        return moment

    def _read_row(self, placed: Placed, state: _State) -> bool:
        """Whether more rows of the snapshot are to come."""
        event, remote = placed.record, placed.remote
        assert isinstance(event, Event)
        assert remote is not None
        if event.snapshot == "first":
            state.clear()
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
            self._collect(collected, tables[placed.remote], placed.record)
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
        old, names = event.before, table.schema.names
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
            if image is None or column.name not in image:
                raise SchemaChanged(self._opening.name, table.name, f"a row has no column '{column.name}'")
            value = image[column.name]
            if value == UNAVAILABLE:
                value = (old or {}).get(column.name, UNAVAILABLE)
            values.append(self._value(table, column, event, value))
        return tuple(values)

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


class _State:
    """Rows as a bag, while events are replayed."""

    def __init__(self, source: str, tables: Mapping[str, SourceTable]) -> None:
        self.tables = tables
        self._source = source
        self.rows: dict[str, Counter[Row]] = {remote: Counter() for remote in tables}

    def clear(self) -> None:
        for bag in self.rows.values():
            bag.clear()

    def apply(self, unit: UnitOfWork) -> None:
        for remote, changes in unit.changes.items():
            bag = self.rows[remote]
            if changes.replaces:
                bag.clear()
            bag.update(as_rows(changes.after))
            bag.subtract(as_rows(changes.before))
            if any(count < 0 for count in bag.values()):
                what = f"a row of table '{remote}' goes that never came: the events do not begin with a snapshot"
                raise LostPosition(self._source, what)
            for row in [row for row, count in bag.items() if not count]:
                del bag[row]


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


def _described(table: TableSettings) -> SourceTable:
    columns = tuple(Column(name, type_.lower()) for name, type_ in table.types.items())
    key = tuple(table.key)
    return SourceTable(table.remote, Schema(columns), Constraints(key, (), key))


def _place_told(found: Found) -> str:
    where = "the record that ends at " + ", ".join(map(str, found.place))
    return f"{where} of stream '{found.stream}'" if found.stream else where


def _beginning(data: bytes | None) -> str:
    return (data or b"")[:_SHOWN].decode("utf-8", "replace")


def _text(places: Places) -> str:
    return json.dumps(places, sort_keys=True, separators=(",", ":"))
