"""What the schema blocks of events say of a table's columns.

Law: a column is its name, or the name that a user has said to be its new one. The block of the newest event is
remembered with the position, so what a block has and the one before it had not is new, and what was left out all along
is no new column. Nothing is taken whose values in older rows nobody tells: an added column has NULL there, or is told
by a copy of the connector that shows it in every row; one whose type changed values, or that may have been dropped and
added again, is left out.

A statement that the connector has met says more, in its place before the rows that it is about: what is the same column
under another name, what is another one under the same, and which constant older rows have in a new one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rollview.core.names import same
from rollview.core.schema import Column, Constraints, Schema
from rollview.sources.debezium.assembly import Placed
from rollview.sources.debezium.records import Event
from rollview.sources.debezium.statements import TableStatement
from rollview.sources.debezium.types import ColumnSchema, is_null_before, type_of
from rollview.sources.protocol import GONE, SAID, LayoutChange, SourceTable, words_of
from rollview.sources.settings import NewColumns, TableSettings
from rollview.types.spelling import widens

Block = Mapping[str, str]
"""The columns of an event in order, with Spark's types; what has none there is told in Connect's words."""

_BLOCKS = "blocks"
"""In the memory, by tables: the columns of the newest event, as pairs."""
_BEGUN = "begun"
"""In the memory, by tables: the columns that events had at the first copy, whether or not settings declare them."""
_CALLED = "called"
"""In the memory, by tables: the present names of columns that settings and older events have under former ones."""
_TOLD = "told"
"""In the memory, by tables: type and constant of columns that a statement has added; without a type, nobody can tell
what older rows have there."""
_WHOLE_NUMBERS = ("tinyint", "smallint", "int", "bigint")


def block_of(schemas: Mapping[str, ColumnSchema]) -> Block:
    return {name: type_of(schema) or f"{schema.get('type')} {schema.get('name')}" for name, schema in schemas.items()}


def _is_type(told: str) -> bool:
    return " " not in told


def lacks(event: Event, column: Column) -> bool:
    """Whether the event says that its table does not have the column, or has another one under its name."""
    told = event.layout
    if not told or column.name not in told:
        return bool(told)
    type_ = type_of(told[column.name])
    # The type of a column that came later is that of blocks, which settings do not declare otherwise.
    return column.late and not (type_ is not None and _fits(type_, column.type))


def _fits(told: str, type_: str) -> bool:
    return told == type_ or widens(told, type_) or {told, type_} <= set(_WHOLE_NUMBERS)


def table_after(table: SourceTable, change: LayoutChange | None) -> SourceTable:
    """The table as it is after a change."""
    if change is None:
        return table
    called, wider = dict(change.renamed), dict(change.widened)
    kept = [column for column in table.schema if column.name not in change.gone]
    columns = [replace(c, name=called.get(c.name, c.name), type=wider.get(c.name, c.type)) for c in kept]
    return SourceTable(table.name, Schema((*columns, *change.added)), table.constraints.renamed(called))


@dataclass(frozen=True, slots=True)
class BlockColumns:
    """``memory``: of the position that is read from; ``new``: what becomes of columns that a table gets later."""

    source: str
    memory: Mapping[str, Any]
    new: NewColumns

    def described(
        self, settings: TableSettings, known: SourceTable | None, copied: Collection[str] = ()
    ) -> SourceTable:
        """The table as it is known, with what settings declare beside that and a copy tells in all rows."""
        called, had = self._called(settings.remote), self._block(settings.remote) or {}
        declared = {called.get(name, name): type_.lower() for name, type_ in settings.types.items()}
        if known is None:
            key = tuple(called.get(name, name) for name in settings.key)
            columns = tuple(Column(name, type_) for name, type_ in declared.items())
            return SourceTable(settings.remote, Schema(columns), Constraints(key, (), key))
        others = [name for name in declared if name in had and name in copied and known.schema.find(name) is None]
        new = tuple(Column(name, had[name] if _is_type(had[name]) else declared[name]) for name in others)
        return replace(known, schema=Schema((*known.schema.columns, *new)))

    def present(self, remote: str, event: Event) -> Event:
        """The same event under the present names of its columns."""
        called = self._called(remote)
        if not called:
            return event
        before, after = (None if one is None else _renamed(one, called) for one in (event.before, event.after))
        return replace(event, before=before, after=after, schemas=_renamed(event.schemas, called))

    def present_in(self, placed: Placed) -> Placed:
        event = placed.record
        return replace(placed, record=self.present(placed.remote or "", event)) if isinstance(event, Event) else placed

    def noted(self, remote: str, event: Event) -> BlockColumns:
        """With the columns of the newest event of a table."""
        pairs = _pairs(block_of(event.layout))
        if not pairs or pairs == self.memory.get(_BLOCKS, {}).get(remote):
            return self
        return replace(self, memory=self._with(_BLOCKS, remote, pairs))

    def after(self, remote: str, told: TableStatement) -> BlockColumns:
        """Everything that is remembered of the table's columns, under the names that they have after a statement."""
        place = {name.lower(): number for number, name in enumerate(told.types)}
        memory = dict(self.memory)

        def put(key: str, value: Any) -> None:
            others = {name: one for name, one in self.memory.get(key, {}).items() if name != remote}
            memory[key] = {**others, told.called or remote: value}

        if (block := self._block(remote)) is not None:
            pairs = [(told.now(name), type_) for name, type_ in block.items()]
            pairs = [(name, type_) for name, type_ in pairs if name is not None]
            put(_BLOCKS, sorted(([*pair] for pair in pairs), key=lambda pair: place.get(pair[0].lower(), len(place))))
        if (begun := self.memory.get(_BEGUN, {}).get(remote)) is not None:
            put(_BEGUN, [now for name in begun if (now := told.now(name)) is not None])
        own = {own: now for own, name in self._called(remote).items() if (now := told.now(name)) is not None}
        put(_CALLED, own)
        known = {now: one for name, one in self._told(remote).items() if (now := told.now(name)) is not None}
        new = {name: [one.type if one.is_constant else None, one.fill] for name, one in told.added.items()}
        put(_TOLD, {**known, **new})
        said = self.memory.get(SAID, {}).get(remote)
        if said is not None:
            put(SAID, {old: new for old, new in said.items() if told.now(old) == old})
        return replace(self, memory=memory)

    def copied(self, missing: Collection[str]) -> BlockColumns:
        """After a copy, which has found all tables but these."""
        memory = {key: value for key, value in self.memory.items() if key != GONE}
        return replace(self, memory={**memory, GONE: sorted(missing)} if missing else memory)

    def with_newest(self, seen: BlockColumns) -> BlockColumns:
        """With what a copy has seen last: the columns of each table, and what statements have added."""
        blocks = {**self.memory.get(_BLOCKS, {}), **seen.memory.get(_BLOCKS, {})}
        told = {remote: {**self._told(remote), **new} for remote, new in seen.memory.get(_TOLD, {}).items()}
        memory = {**self.memory, _BLOCKS: blocks} if blocks else self.memory
        return replace(self, memory={**memory, _TOLD: {**self.memory.get(_TOLD, {}), **told}} if told else memory)

    def begun(self) -> BlockColumns:
        """After the first copy: what its events have beside the columns that settings declare is no new column."""
        names = {remote: [name for name, _ in pairs] for remote, pairs in self.memory.get(_BLOCKS, {}).items()}
        return replace(self, memory={**self.memory, _BEGUN: names})

    def left_out(self, remote: str, known: Schema) -> tuple[str, ...]:
        """Columns that came later than the first copy, and are not here."""
        begun = self.memory.get(_BEGUN, {}).get(remote)
        there = () if begun is None else self._block(remote) or ()
        return tuple(name for name in there if name not in begun and known.find(name) is None)

    def change(
        self, settings: TableSettings, known: Schema, event: Event, copied: Collection[str] = ()
    ) -> LayoutChange | None:
        """What is another in the table by an event of it. ``copied``: columns that a copy tells in all rows."""
        if not event.layout or (not copied and self._is_as_before(settings.remote, known, event)):
            return None
        renamed = self._said(settings.remote, known, event)
        columns = self._calling(settings.remote, renamed) if renamed else self
        called = Schema(tuple(replace(c, name=renamed.get(c.name, c.name)) for c in known))
        late = set(copied).intersection(self.left_out(settings.remote, known))
        found = _Difference(called, columns._block(settings.remote), block_of(event.layout), late)
        own = {new: old for old, new in renamed.items()}
        gone = tuple(own.get(name, name) for name in found.gone())
        widened = {own.get(name, name): type_ for name, type_ in found.widened()}
        added = tuple(columns._added(settings, found, event, copied))
        if not (gone or widened or added or renamed):
            return None
        about = (self.source, settings.remote, words_of(gone, renamed, widened, added))
        if self.new is NewColumns.STOP:
            return LayoutChange(*about)
        memory = columns._without(settings.remote, set(found.gone())).noted(settings.remote, event).memory
        names, types = tuple(renamed.items()), tuple(widened.items())
        return LayoutChange(*about, gone, renamed=names, widened=types, added=added, with_rows=True, memory=memory)

    def stated(
        self, settings: TableSettings, known: Schema, told: TableStatement
    ) -> tuple[BlockColumns, LayoutChange | None]:
        """What is remembered after a statement about a table, and what is another in it."""
        called = {c.name: new for c in known for old, new in told.renamed if same(c.name, old)}
        taken = [new for new in called.values() if not _among(new, called)]
        gone = tuple(c.name for c in known if _among(c.name, (*told.dropped, *taken)) and c.name not in called)
        columns = self.after(settings.remote, told)
        if not (called or gone or told.called):
            return columns, None
        about = (self.source, settings.remote, words_of(gone, called, {}, (), told.called))
        if self.new is NewColumns.STOP:
            return columns, LayoutChange(*about)
        parts: dict[str, Any] = {"renamed": tuple(called.items()), "called": told.called, "memory": columns.memory}
        return columns, LayoutChange(*about, gone, **parts)

    def _told(self, remote: str) -> Mapping[str, Sequence[str | None]]:
        told: Mapping[str, Sequence[str | None]] = self.memory.get(_TOLD, {}).get(remote, {})
        return told

    def _is_as_before(self, remote: str, known: Schema, event: Event) -> bool:
        pairs = _pairs(block_of(event.layout))
        return pairs == self.memory.get(_BLOCKS, {}).get(remote) and not any(lacks(event, c) for c in known)

    def _added(
        self, settings: TableSettings, found: _Difference, event: Event, copied: Collection[str]
    ) -> Iterator[Column]:
        if self.new is NewColumns.IGNORE or not settings.takes_new:
            return
        for name in found.added():
            type_, told = type_of(event.layout[name]), self._told(settings.remote).get(name)
            if type_ is None:
                continue
            if name in copied or (told is None and is_null_before(event.layout[name])):
                yield Column(name, type_)
            elif told is not None and told[0] is not None and _fits(told[0], type_):
                yield Column(name, type_, fill=told[1])

    def _said(self, remote: str, known: Schema, event: Event) -> dict[str, str]:
        """Columns that events have under the new name that a user has said of them."""
        said: Mapping[str, str] = self.memory.get(SAID, {}).get(remote, {})
        had = self._block(remote) or {}
        return {
            old: new
            for old, new in said.items()
            if old in known.names and known.find(new) is None and new in event.layout
            if old not in event.layout and new not in had
        }

    def _calling(self, remote: str, renamed: Mapping[str, str]) -> BlockColumns:
        called = {own: renamed.get(now, now) for own, now in self._called(remote).items()} | dict(renamed)
        said = {old: new for old, new in self.memory[SAID][remote].items() if old not in renamed}
        had = {renamed.get(name, name): type_ for name, type_ in (self._block(remote) or {}).items()}
        columns = replace(self, memory=self._with(_CALLED, remote, called))
        columns = replace(columns, memory=columns._with(SAID, remote, said))
        return replace(columns, memory=columns._with(_BLOCKS, remote, _pairs(had))) if had else columns

    def _without(self, remote: str, gone: Collection[str]) -> BlockColumns:
        """A former name of a column that is gone may be another column's."""
        called = {own: now for own, now in self._called(remote).items() if now not in gone}
        return self if called == self._called(remote) else replace(self, memory=self._with(_CALLED, remote, called))

    def _called(self, remote: str) -> Mapping[str, str]:
        called: Mapping[str, str] = self.memory.get(_CALLED, {}).get(remote, {})
        return called

    def _block(self, remote: str) -> Block | None:
        """None: no event has told it yet."""
        pairs = self.memory.get(_BLOCKS, {}).get(remote)
        return None if pairs is None else dict(pairs)

    def _with(self, key: str, remote: str, value: Any) -> Mapping[str, Any]:
        return {**self.memory, key: {**self.memory.get(key, {}), remote: value}}


@dataclass(frozen=True, slots=True)
class _Difference:
    """Between the columns that are held and those of an event; ``had``: those of the event before it."""

    known: Schema
    had: Block | None
    now: Block
    late: Collection[str] = ()
    """Columns that were new once, and were left out then."""

    def gone(self) -> Iterator[str]:
        moved = self._moved()
        for column in self.known:
            if column.name not in self.now or column.name in moved or not self._holds(column):
                yield column.name

    def widened(self) -> Iterator[tuple[str, str]]:
        gone = set(self.gone())
        for column in self.known:
            if column.name not in gone and self._retyped(column) and widens(column.type, self.now[column.name]):
                yield column.name, self.now[column.name]

    def added(self) -> Iterator[str]:
        for name in self.now:
            is_new = self.had is not None and name not in self.had
            if (is_new or name in self.late) and self.known.find(name) is None:
                yield name

    def _retyped(self, column: Column) -> bool:
        return self.had is not None and self.had.get(column.name, self.now[column.name]) != self.now[column.name]

    def _holds(self, column: Column) -> bool:
        """Whether the column, or a wider one, still has all values as they are at the source."""
        if self.had is None or not self._retyped(column):
            return True
        old, new = self.had[column.name], self.now[column.name]
        if old in _WHOLE_NUMBERS and new in _WHOLE_NUMBERS:
            return column.type in _WHOLE_NUMBERS
        fits = (
            _is_type(old)
            and _is_type(new)
            and (new == column.type or widens(new, column.type) or widens(column.type, new))
        )
        return fits and widens(old, new)

    def _moved(self) -> set[str]:
        """Columns that come after others now that they came before: new ones come last, whatever they are called."""
        if self.had is None:
            return set()
        place = {name: number for number, name in enumerate(self.now)}
        common = [name for name in self.had if name in place]
        return {one for number, one in enumerate(common) for other in common[number:] if place[other] < place[one]}


def _renamed(values: Mapping[str, Any], called: Mapping[str, str]) -> dict[str, Any]:
    """A name that an event has beside the present one is another column's."""
    return {name if called.get(name, name) in values else called[name]: value for name, value in values.items()}


def _among(name: str, names: Iterable[str]) -> bool:
    return any(same(name, other) for other in names)


def _pairs(block: Block) -> Sequence[Sequence[str]]:
    return [[name, type_] for name, type_ in block.items()]
