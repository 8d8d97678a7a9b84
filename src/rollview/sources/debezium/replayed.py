"""The events of a copy, replayed.

Law: rows are in the columns that their table has after the last event. What an event's table does not have is NULL in
all rows that came until then, or the constant that a statement gave them. Statements tell what columns were called
before; an event of a table that was emptied later is not read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from rollview.errors import LostPosition
from rollview.sources.debezium.assembly import Placed, Stated, Whole
from rollview.sources.debezium.columns import BlockColumns, block_of, lacks
from rollview.sources.debezium.reached import ReadSoFar
from rollview.sources.debezium.records import Event
from rollview.sources.debezium.rows import EventRows, filled
from rollview.sources.debezium.statements import TableStatement
from rollview.sources.protocol import Row, SourceTable, UnitOfWork
from rollview.sources.values import as_rows

_IN_PIECES = "incremental"
"""A row that the connector copies between others that change."""
RENAMED = "has another name since the connector copied it; have the connector copy its tables again"


@dataclass(slots=True)
class SnapshotRows:
    """The rows of the connector's newest copy."""

    rows: list[Placed] = field(default_factory=list)
    _running: set[tuple[str, str | None]] = field(default_factory=set)

    @property
    def is_open(self) -> bool:
        """Whether more rows of it are to come."""
        first = [event.time for event in self._whole() if event.snapshot == "first"]
        last = [event.time for event in self._whole() if event.snapshot in ("last", "false")]
        return any(self._whole()) and (not last or max(first, default=max(last)) > max(last))

    def add(self, placed: Placed) -> bool:
        """Whether everything that its stream had before is in the copy."""
        assert isinstance(placed.record, Event)
        stream, flag = placed.stream, placed.record.snapshot
        is_whole = flag != _IN_PIECES
        about = (stream, placed.remote)
        if is_whole and flag == "first":
            self.rows = [one for one in self.rows if one.stream != stream]
        elif is_whole and (flag.startswith("first") or about not in self._running):
            self.rows = [one for one in self.rows if (one.stream, one.remote) != about]
        self._running.add(about)
        if flag.startswith("last"):
            self._running.discard(about)
        self.rows.append(placed)
        return is_whole

    def leave_out(self, copied: Iterable[Placed]) -> None:
        """Rows of an older copy: what came after them is in the newest, which has none of their stream."""
        last = {one.stream: one.place[0] for one in copied}
        self.rows = [one for one in self.rows if one.place[0] > last.get(one.stream, -1)]

    @property
    def pieces(self) -> list[Placed]:
        return [one for one in self.rows if isinstance(one.record, Event) and one.record.snapshot == _IN_PIECES]

    @property
    def whole(self) -> list[Placed]:
        """Without those that were copied in pieces."""
        return [one for one in self.rows if isinstance(one.record, Event) and one.record.snapshot != _IN_PIECES]

    def _whole(self) -> Iterator[Event]:
        return (one.record for one in self.whole if isinstance(one.record, Event))

    def ends_in(self, stream: str) -> None:
        self._running = {one for one in self._running if one[0] != stream}


@dataclass(frozen=True, slots=True)
class Copy:
    """The rows of a snapshot and what follows them; ``at``: up to where."""

    rows: Sequence[Placed]
    steps: Sequence[Whole | Stated]
    at: ReadSoFar

    def newest(self) -> tuple[dict[str, Event], dict[str, set[str]]]:
        """By tables: the newest event, and its columns if all events have just these; under the names after them."""
        newest: dict[str, Event] = {}
        blocks: dict[str, set[tuple[tuple[str, str], ...]]] = {}
        for event, remote in self._present():
            if event.layout:
                newest[remote] = event
                blocks.setdefault(remote, set()).add(tuple(block_of(event.layout).items()))
        return newest, {
            remote: set(newest[remote].layout) if len(one) == 1 else set() for remote, one in blocks.items()
        }

    def _present(self) -> Iterator[tuple[Event, str]]:
        names = FormerNames(step.told for step in self.steps if isinstance(step, Stated))
        for step in (self.rows, *self.steps):
            if isinstance(step, Stated):
                names.passed(step.told)
                continue
            for placed in map(names.present, step.events if isinstance(step, Whole) else step):
                if placed is not None and isinstance(placed.record, Event):
                    yield placed.record, placed.remote or ""


class ReplayedRows:
    """Rows as a bag, while events are replayed. ``missing``: tables that are not there any more."""

    def __init__(self, source: str, tables: Mapping[str, SourceTable]) -> None:
        self.tables = tables
        self.source = source
        self.missing: set[str] = set()
        self.rows: dict[str, Counter[Row]] = {remote: Counter() for remote in tables}
        self._lacking: dict[str, set[int]] = {}

    def reset(self, remote: str, event: Event) -> None:
        """All rows have what older rows have in a column that their table did not have until this event, or does not
        have any more: a name may have been that of several columns."""
        if not event.layout:
            return
        columns = self.tables[remote].schema.columns
        lacking = {place for place, column in enumerate(columns) if lacks(event, column)}
        changed = lacking ^ self._lacking.get(remote, set())
        self._lacking[remote] = lacking
        if not changed:
            return
        fills = {place: filled(columns[place]) for place in changed}
        bag: Counter[Row] = Counter()
        for row, count in self.rows[remote].items():
            bag[tuple(fills.get(place, value) for place, value in enumerate(row))] += count
        self.rows[remote] = bag

    def apply(self, unit: UnitOfWork) -> None:
        for remote, changes in unit.changes.items():
            bag = self.rows[remote]
            if changes.replaces:
                bag.clear()
            bag.update(as_rows(changes.after))
            bag.subtract(as_rows(changes.before))
            if any(count < 0 for count in bag.values()):
                what = f"a row of table '{remote}' goes that never came: the events do not begin with a snapshot"
                raise LostPosition(self.source, what)
            for row in [row for row, count in bag.items() if not count]:
                del bag[row]

    def state(self, told: TableStatement) -> None:
        if told.is_new and told.if_gone and told.remote not in self.missing:
            return
        if told.unclear is not None:
            raise LostPosition(self.source, unclear(told))
        if told.moved:
            raise LostPosition(self.source, f"table '{told.remote}' {RENAMED}")
        if told.emptied:
            self.rows[told.remote].clear()
        if told.is_gone:
            self.missing.add(told.remote)
        if told.is_new:
            self.missing.discard(told.remote)


def unclear(told: TableStatement) -> str:
    return f"table '{told.remote}': {told.unclear}; have the connector copy its tables again"


class FormerNames:
    """What columns will be called after all statements that are still to come."""

    def __init__(self, statements: Iterable[TableStatement]) -> None:
        self._left: dict[str, list[TableStatement]] = {}
        for told in statements:
            self._left.setdefault(told.remote, []).append(told)

    def passed(self, told: TableStatement) -> None:
        self._left[told.remote].remove(told)

    def present(self, placed: Placed) -> Placed | None:
        """The same event under those names; None if its rows are gone by then."""
        left = self._left.get(placed.remote or "", ())
        if not left:
            return placed
        if any(told.emptied and not told.if_gone for told in left):
            return None
        event = placed.record
        assert isinstance(event, Event)
        images = (None if one is None else _called(one, left) for one in (event.before, event.after))
        before, after = images
        return replace(placed, record=replace(event, before=before, after=after, schemas=_called(event.schemas, left)))


def _called(values: Mapping[str, Any], statements: Sequence[TableStatement]) -> dict[str, Any]:
    for told in statements:
        values = {now: value for name, value in values.items() if (now := told.now(name)) is not None}
    return dict(values)


class Replay:
    """``moment``: of the last event; ``columns``: with what the copy has seen of them."""

    def __init__(self, rows: EventRows, columns: BlockColumns, state: ReplayedRows, known: Collection[str]) -> None:
        self.columns = columns
        self.moment = datetime.fromtimestamp(0, UTC)
        self._rows, self._state, self._known = rows, state, known
        self._seen = replace(columns, memory={})

    def run(self, copy: Copy) -> Replay:
        names = FormerNames(step.told for step in copy.steps if isinstance(step, Stated))
        for placed in copy.rows:
            self._copy(placed, names)
        for step in copy.steps:
            if isinstance(step, Stated):
                names.passed(step.told)
                self._state.state(step.told)
                self._seen = self._seen.after(step.told.remote, step.told)
            else:
                self._replay(step, names)
        self.columns = self.columns.with_newest(self._seen)
        return self

    def _copy(self, placed: Placed, names: FormerNames) -> None:
        event = self._read(placed, names)
        if event is None:
            return
        remote = placed.remote or ""
        self._state.rows[remote][self._rows.row(self._state.tables[remote], event, event.after, None)] += 1

    def _replay(self, whole: Whole, names: FormerNames) -> None:
        events = [(placed, self._read(placed, names)) for placed in whole.events]
        left = tuple(replace(placed, record=event) for placed, event in events if event is not None)
        unit = self._rows.unit(replace(whole, events=left), self._state.tables)
        self.moment = max(self.moment, unit.time)
        self._state.apply(unit)

    def _read(self, placed: Placed, names: FormerNames) -> Event | None:
        """The event under present names; its columns are the newest that a copy has seen."""
        event, remote = placed.record, placed.remote or ""
        assert isinstance(event, Event)
        self._seen = self._seen.noted(remote, event)
        self.moment = max(self.moment, event.time)
        now = names.present(placed)
        if now is None:
            return None
        assert isinstance(now.record, Event)
        event = self.columns.present(remote, now.record)
        if remote in self._known:
            self._state.reset(remote, event)
        return event
