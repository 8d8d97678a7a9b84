"""What the schema blocks of events say of a table's columns.

Law: a column is its name, or the name that a user has said to be its new one. The block of the newest event is
remembered with the position, so what a block has and the one before it had not is new, and what was left out all along
is no new column. Nothing is taken whose values in older rows nobody tells: an added column has NULL there, or is told
by a copy of the connector that shows it in every row; one whose type changed values, or that may have been dropped and
added again, is left out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rollview.core.schema import Column, Constraints, Schema
from rollview.sources.debezium.records import Event
from rollview.sources.debezium.types import ColumnSchema, is_null_before, type_of
from rollview.sources.protocol import SAID, LayoutChange, SourceTable, words_of
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

    def noted(self, remote: str, event: Event) -> BlockColumns:
        """With the columns of the newest event of a table."""
        pairs = _pairs(block_of(event.layout))
        if not pairs or pairs == self.memory.get(_BLOCKS, {}).get(remote):
            return self
        return replace(self, memory=self._with(_BLOCKS, remote, pairs))

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

    def _is_as_before(self, remote: str, known: Schema, event: Event) -> bool:
        pairs = _pairs(block_of(event.layout))
        return pairs == self.memory.get(_BLOCKS, {}).get(remote) and not any(lacks(event, c) for c in known)

    def _added(
        self, settings: TableSettings, found: _Difference, event: Event, copied: Collection[str]
    ) -> Iterator[Column]:
        if self.new is NewColumns.IGNORE or not settings.takes_new:
            return
        for name in found.added():
            type_ = type_of(event.layout[name])
            if type_ is not None and (name in copied or is_null_before(event.layout[name])):
                yield Column(name, type_)

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


def _pairs(block: Block) -> Sequence[Sequence[str]]:
    return [[name, type_] for name, type_ in block.items()]
