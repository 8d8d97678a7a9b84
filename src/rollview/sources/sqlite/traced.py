"""Captured tables as their triggers name them, whatever they and their columns are called by now.

Law: a slot of the log is one column for ever. SQLite rewrites triggers when a table or a column is called otherwise,
and drops no column that a trigger names, so what a trigger writes into a slot under another name is the same column.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rollview.core.names import same
from rollview.core.schema import Column
from rollview.sources.protocol import LayoutChange, Opening, words_of
from rollview.sources.renamed import renamed_table
from rollview.sources.settings import TableSettings
from rollview.sources.sqlite.layout import SqliteLayout, read_layout
from rollview.sources.sqlite.triggers import Names
from rollview.sources.sqlite.values import decoder, spark_type
from rollview.sources.values import constant_text
from rollview.types.spelling import widens

SLOTS = "slots"
"""In the memory: the name of each table's columns by their slots; None where the column is gone."""

_NAME = r'OLD\."((?:[^"]|"")*)"'
_LOGGED = re.compile(rf"\(count, (c\d+(?:, c\d+)*)\) VALUES \(-1, ({_NAME}(?:, {_NAME})*)\)")


@dataclass(frozen=True, slots=True)
class TracedColumn:
    """``constant``: what older rows have in it, as it stands in their entries of the log."""

    slot: int
    name: str
    declared: str
    constant: Any = None


@dataclass(frozen=True, slots=True)
class TracedTable:
    name: str
    columns: tuple[TracedColumn, ...]

    def to_json(self) -> str:
        return json.dumps([self.name, [[c.slot, c.name, c.declared, c.constant] for c in self.columns]])

    @classmethod
    def from_json(cls, text: str) -> TracedTable:
        name, columns = json.loads(text)
        return cls(name, tuple(TracedColumn(*column) for column in columns))


def trace(connection: sqlite3.Connection, names: Names) -> TracedTable | None:
    """The table that the triggers are on; None if there is none."""
    found = _trigger(connection, names)
    layout = None if found is None else read_layout(connection, found[0])
    if found is None or layout is None:
        return None
    declared = {name: type_ for name, type_, _ in layout.columns}
    constants = _constants(connection, names)
    columns = (TracedColumn(slot, name, declared[name], constants.get(slot)) for slot, name in found[1].items())
    return TracedTable(layout.name, tuple(columns))


def with_slots(layout: SqliteLayout, table: TracedTable) -> tuple[int | None, ...]:
    """Where each column of the layout stands in the log; None: nowhere yet."""
    slots = {column.name: column.slot for column in table.columns}
    return tuple(slots.get(name) for name in layout.names)


def slot_constant(value: Any, type_: str | None) -> Any:
    """What older rows have in a new column, as the log has it: their default, if a layout can tell it."""
    return None if type_ is None or _fill(value, type_) is None else value


def change_of(opening: Opening, remote: str, now: TracedTable) -> LayoutChange | None:
    """What of a table is not as it is known."""
    return _Comparison(opening, remote, now).change()


def renamed_slots(memory: Mapping[str, Any], remote: str, now: TracedTable) -> Mapping[str, Any]:
    """A source's memory, where captured columns are called otherwise here and its position is the same."""
    if remote not in memory.get(SLOTS, {}):
        return memory
    told = {column.slot: column.name for column in now.columns}
    names = [told.get(slot) for slot in range(len(memory[SLOTS][remote]))]
    return {**memory, SLOTS: {**memory[SLOTS], remote: names}}


def slots_of(opening: Opening, remote: str) -> Sequence[str | None]:
    """The columns in the order of their slots, under the names by which they are known."""
    slots: Mapping[str, Sequence[str | None]] = opening.memory.get(SLOTS, {})
    return slots.get(remote, opening.known[remote].schema.names)


@dataclass(frozen=True, slots=True)
class _Comparison:
    opening: Opening
    remote: str
    now: TracedTable

    def change(self) -> LayoutChange | None:
        before, settings = slots_of(self.opening, self.remote), self.opening.settings.table(self.remote)
        told = {column.slot: column for column in self.now.columns}
        gone, lost = [], []
        renamed: dict[str, str] = {}
        widened: dict[str, str] = {}
        for column in self.opening.known[self.remote].schema:
            now = told.get(before.index(column.name))
            if now is None or (now.name != column.name and not self._follows):
                gone.append(column.name)
                continue
            type_ = settings.types.get(column.name) or spark_type(now.declared)
            if type_ != column.type and (type_ is None or not widens(column.type, type_)):
                lost.append(column.name)
                continue
            renamed |= {column.name: now.name} if now.name != column.name else {}
            widened |= {column.name: type_} if type_ != column.type else {}
        later = renamed_table(settings, renamed)
        added = tuple(_added(column, later) for slot, column in told.items() if slot >= len(before))
        new = tuple(column for column in added if column is not None) if settings.takes_new else ()
        called = None if same(self.now.name, self.remote) or not self._has_slots else self.now.name
        if not (gone or lost or renamed or widened or new or called):
            return None
        reason = words_of([*gone, *lost], renamed, widened, new, called)
        about = (self.opening.name, self.remote, reason, (*gone, *lost))
        changes = {"renamed": tuple(renamed.items()), "widened": tuple(widened.items()), "added": new, "called": called}
        return LayoutChange(*about, **changes, copy=self._copies(lost), memory=self._memory(told))  # type: ignore[arg-type]

    @property
    def _follows(self) -> bool:
        """Whether columns keep what they are under another name."""
        return self.opening.settings.table(self.remote).follows_names and self._has_slots

    @property
    def _has_slots(self) -> bool:
        return self.remote in self.opening.memory.get(SLOTS, {})

    def _copies(self, lost: Sequence[str]) -> bool:
        """What a column of another type holds is told by a copy, if new columns are taken at all."""
        return bool(lost) and self.opening.settings.table(self.remote).takes_new

    def _memory(self, told: Mapping[int, TracedColumn]) -> Mapping[str, Any] | None:
        if not self._has_slots:
            return None
        size = max([len(slots_of(self.opening, self.remote)), *(slot + 1 for slot in told)])
        names = [told[slot].name if slot in told else None for slot in range(size)]
        others = {remote: slots for remote, slots in self.opening.memory[SLOTS].items() if remote != self.remote}
        known = self.remote if same(self.now.name, self.remote) else self.now.name
        return {**self.opening.memory, SLOTS: {**others, known: names}}


def _added(column: TracedColumn, settings: TableSettings) -> Column | None:
    type_ = settings.types.get(column.name) or spark_type(column.declared)
    return None if type_ is None else Column(column.name, type_, fill=_fill(column.constant, type_))


def _fill(value: Any, type_: str) -> str | None:
    try:
        return None if value is None else constant_text(decoder(type_)(value), type_)
    except ValueError:
        return None


def _trigger(connection: sqlite3.Connection, names: Names) -> tuple[str, dict[int, str]] | None:
    query = "SELECT tbl_name, sql FROM sqlite_schema WHERE type = 'trigger' AND name = ?"
    found = connection.execute(query, (names.triggers[-1],)).fetchone()
    told = None if found is None else _LOGGED.search(found[1])
    if found is None or told is None:
        return None
    slots = [int(slot[1:]) for slot in told[1].split(", ")]
    columns = [name.replace('""', '"') for name in re.findall(_NAME, told[2])]
    return found[0], dict(zip(slots, columns, strict=True))


def _constants(connection: sqlite3.Connection, names: Names) -> dict[int, Any]:
    """By slots: what entries hold that are older than it."""
    query = "SELECT name, dflt_value FROM pragma_table_info(?) WHERE name GLOB 'c[0-9]*' AND dflt_value IS NOT NULL"
    found = connection.execute(query, (names.log,)).fetchall()
    return {int(slot[1:]): connection.execute(f"SELECT {literal}").fetchone()[0] for slot, literal in found}
