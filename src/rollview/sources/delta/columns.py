"""The columns of a Delta table's version, and what another version made of them.

Law: where a table maps its columns, a column is its field id and the name that it has in files, whatever it is called;
elsewhere it is its name. A type that holds every value of the old one keeps the column; any other type makes a new one.
What an older file holds under the name of a new column is not read as its value.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from rollview.core.names import fault_in_name
from rollview.core.schema import Column, Schema
from rollview.sources.files.formats import spelled
from rollview.sources.protocol import SAID, LayoutChange, words_of
from rollview.sources.renamed import renamed_table
from rollview.sources.settings import TableSettings
from rollview.types.spelling import widens

COLUMNS = "columns"
"""In a source's memory, by tables: what its columns are by their names."""

_MODE = "delta.columnMapping.mode"
_ID = "delta.columnMapping.id"
_PHYSICAL = "delta.columnMapping.physicalName"


@dataclass(frozen=True, slots=True)
class DeltaColumn:
    """``physical``: its name in files. ``id``: its field id, if the table maps its columns. ``by_id``: files are asked
    for it by that."""

    name: str
    type: str
    physical: str
    id: int | None = None
    by_id: bool = False

    def is_one_with(self, other: DeltaColumn) -> bool:
        """A table that begins to map its columns keeps their names in files, so those prove it there."""
        return self.physical == other.physical and (self.id == other.id or None in (self.id, other.id))


def mapping_mode(table: DeltaTable) -> str:
    return table.metadata().configuration.get(_MODE) or "none"


def columns_of(table: DeltaTable) -> tuple[DeltaColumn, ...]:
    mode, schema = mapping_mode(table), table.schema()
    told = [field.metadata if mode != "none" else {} for field in schema.fields]
    fields = zip(pa.schema(schema.to_arrow()), told, strict=True)
    return tuple(
        DeltaColumn(one.name, spelled(one), about.get(_PHYSICAL, one.name), about.get(_ID), mode == "id")
        for one, about in fields
    )


@dataclass(frozen=True, slots=True)
class Remembered:
    """The columns of a table as they were when it was last found changed; ``memory``: of the whole source."""

    source: str
    remote: str
    known: Schema
    settings: TableSettings
    memory: Mapping[str, Any]

    def column(self, name: str) -> DeltaColumn:
        """What a captured column is at the source. One that nothing was noted of is its name."""
        type_ = next(column.type for column in self.known if column.name == name)
        physical, number = self.memory.get(COLUMNS, {}).get(self.remote, {}).get(name, (name, None))
        return DeltaColumn(name, type_, physical, number)

    def located(self, there: Sequence[DeltaColumn]) -> Located:
        """Each captured column, and what has its values in a version; nothing if that has none of them."""
        return tuple((column, self._found(column, there)) for column in self.known)

    def change(self, old: Sequence[DeltaColumn], now: Sequence[DeltaColumn]) -> LayoutChange | None:
        """What the version with columns ``now``, after one with ``old``, makes of the captured ones."""
        met = self._met(now)
        said = self._said(now, met)
        met |= said
        gone = tuple(column.name for column in self.known if column.name not in met)
        called = {name: one.name for name, one in met.items() if one.name != name}
        types = {column.name: column.type for column in self.known}
        wider = {name: one.type for name, one in met.items() if one.type != types[name]}
        added = tuple(Column(one.name, one.type) for one in self._new(old, now, met, called))
        # Under the name that a user has said, older files do not have the column: a copy tells all values.
        copy, new = bool(said), () if said else added
        if not (gone or called or wider or added):
            return None
        return LayoutChange(
            self.source,
            self.remote,
            words_of(gone, called, wider, added),
            gone,
            renamed=tuple(called.items()),
            widened=tuple(wider.items()),
            added=new,
            copy=copy,
            with_rows=True,
            memory=noted(self.memory, self.remote, now, said),
        )

    def _found(self, column: Column, there: Sequence[DeltaColumn]) -> DeltaColumn | None:
        own = self.column(column.name)
        return next((one for one in there if own.is_one_with(one) and _holds(one.type, column.type)), None)

    def _met(self, now: Sequence[DeltaColumn]) -> dict[str, DeltaColumn]:
        """What captured columns are now, by their names here."""
        pairs = [(own, one) for own in map(self.column, self.known.names) for one in now if own.is_one_with(one)]
        return {own.name: one for own, one in pairs if _holds(own.type, one.type)}

    def _said(self, now: Sequence[DeltaColumn], met: Mapping[str, DeltaColumn]) -> dict[str, DeltaColumn]:
        """Columns that are not there, and that a user has said to be there under another name."""
        said: Mapping[str, str] = self.memory.get(SAID, {}).get(self.remote, {})
        free = {one.name: one for one in now if one not in met.values()}
        lost = [column for column in self.known if column.name in said and column.name not in met]
        pairs = [(column, free.get(said[column.name])) for column in lost]
        return {column.name: one for column, one in pairs if one is not None and _holds(column.type, one.type)}

    def _new(
        self,
        old: Sequence[DeltaColumn],
        now: Sequence[DeltaColumn],
        met: Mapping[str, DeltaColumn],
        called: Mapping[str, str],
    ) -> Iterator[DeltaColumn]:
        """Columns that the version brings, and those that have another type than the column that they were."""
        settings = renamed_table(self.settings, called)
        captured = [self.column(name) for name in self.known.names]
        for one in now:
            if one in met.values() or fault_in_name(one.name) is not None or not settings.takes(one.name):
                continue
            is_retyped = any(own.is_one_with(one) for own in captured)
            if is_retyped or not any(one.is_one_with(other) for other in old):
                yield one


Located = tuple[tuple[Column, DeltaColumn | None], ...]
"""Captured columns, each with the one of a version that has its values."""


def noted(
    memory: Mapping[str, Any], remote: str, columns: Sequence[DeltaColumn], said: Collection[str]
) -> dict[str, Any]:
    """A source's memory, where a table has these columns; ``said``: what needs no more to be known of former names."""
    own = {one.name: [one.physical, one.id] for one in columns}
    waiting = {old: new for old, new in memory.get(SAID, {}).get(remote, {}).items() if old not in said}
    return {
        **memory,
        COLUMNS: {**memory.get(COLUMNS, {}), remote: own},
        SAID: {**memory.get(SAID, {}), remote: waiting},
    }


def renamed_memory(memory: Mapping[str, Any], remote: str, called: Mapping[str, str]) -> dict[str, Any]:
    """A source's memory, where captured columns are called otherwise here and its position is the same: versions that
    are not read yet have them by what they were."""
    own = dict(memory.get(COLUMNS, {}).get(remote, {}))
    before = {old: own.pop(old, [old, None]) for old in called}
    moved = {new: before[old] for old, new in called.items()}
    return {**memory, COLUMNS: {**memory.get(COLUMNS, {}), remote: own | moved}}


def _holds(old: str, new: str) -> bool:
    return old == new or widens(old, new)
