"""How rows of a table are read: by the layout that the log announced for them.

Law: each of our columns is found by its number in what was announced; so no value ever lands in another column. A
layout of which our columns are not known to be what they were ends the reading before its transaction. What is followed
then is remembered with the layouts that came before it in the same transaction: its rows are read again, each by its
own layout, as rows of the layout that it ends with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from rollview.errors import LostPosition, SchemaChanged
from rollview.sources.postgres.altered import TableComparison, numbers_of
from rollview.sources.postgres.identity import Facts, Layout, Told, aligned, facts, learned, recorded_layout
from rollview.sources.postgres.layout import PgTable, full_name
from rollview.sources.postgres.messages import RelationMessage
from rollview.sources.postgres.values import Decode, decoder
from rollview.sources.protocol import LayoutChange, Opening, SourceTable
from rollview.types.arrow import arrow_type, constant

FORMER = "former"
"""The layouts that rows had in a transaction before the one that is known, and where it is."""


@dataclass(frozen=True, slots=True)
class AnnouncedLayout:
    """For each of our columns its place in the message, its type there, and how its text is read. A column that came
    later in the same transaction has no place, and its constant in ``values``."""

    message: RelationMessage
    table: SourceTable
    places: tuple[int | None, ...]
    type_oids: tuple[int, ...]
    decoders: tuple[Decode, ...]
    values: tuple[pa.Scalar, ...]

    @property
    def remote(self) -> str:
        return self.table.name


class Announcements:
    """The layouts of one table, in the order in which a reading meets them. ``table``: as it is now, or None where it
    is taken to be as it was recorded."""

    def __init__(self, opening: Opening, remote: str, table: PgTable | None) -> None:
        self._opening, self._remote, self._table = opening, remote, table
        self._recorded: Facts = opening.memory["tables"][remote]
        self._last = recorded_layout(self._recorded)
        self._begun: tuple[int, int] | None = None

    def announced(self, message: RelationMessage, at: int) -> AnnouncedLayout:
        """``at``: where the transaction is in which the message came."""
        if message.identity != "f":
            repair = f"ALTER TABLE {full_name(self._remote)} REPLICA IDENTITY FULL;"
            what = f"table '{self._remote}' does not log whole old rows any more; run {repair}"
            raise LostPosition(self._opening.name, what)
        former = self._former(message, at)
        self._last = self._followed(message, at) if former is None else former
        return self._placed(message, self._last)

    def _former(self, message: RelationMessage, at: int) -> Layout | None:
        """The layout, if it is one of those that came before what is known, and came in this order."""
        told = self._recorded.get(FORMER)
        if told is None or told["at"] != at:
            return None
        layouts = [tuple(map(Told.from_json, one)) for one in told["layouts"]]
        begun = self._begun[1] if self._begun is not None and self._begun[0] == at else 0
        for place in range(begun, len(layouts)):
            if _listed(layouts[place]) == _announced(message):
                self._begun = (at, place + 1)
                return layouts[place]
        self._begun = (at, len(layouts))
        return None

    def _followed(self, message: RelationMessage, at: int) -> Layout:
        """The layout, if our columns are what they were."""
        if self._table is None:
            if self._last and _listed(self._last) == _announced(message):
                return self._last
            raise SchemaChanged(self._opening.name, self._remote, "the log announces other columns")
        layout = aligned(message.columns, self._recorded, facts(self._table))
        comparison = TableComparison(self._opening, self._remote, self._recorded, self._table)
        change = comparison.change(layout)
        if change is not None:
            raise replace(change, with_rows=True, memory=self._memory(comparison, layout, at, change)).raised()
        self._recorded = learned(self._recorded, layout)
        return layout

    def _memory(
        self, comparison: TableComparison, layout: Layout, at: int, change: LayoutChange
    ) -> Mapping[str, Any] | None:
        if change.copy:
            return None
        told = self._recorded.get(FORMER)
        before = list(told["layouts"]) if told is not None and told["at"] == at else []
        former = {"at": at, "layouts": [*before, [one.to_json() for one in self._last]]}
        tables = self._opening.memory["tables"]
        learned_now = {**comparison.memory(layout, change), FORMER: former}
        return {**self._opening.memory, "tables": {**tables, self._remote: learned_now}}

    def _placed(self, message: RelationMessage, layout: Layout) -> AnnouncedLayout:
        table = self._opening.known[self._remote]
        numbers = numbers_of(table, self._opening.memory["tables"][self._remote])
        present = {one.number: place for place, one in enumerate(layout)}
        places = tuple(present.get(numbers[name]) for name in table.schema.names)
        oids = tuple(0 if place is None else layout[place].type_oid for place in places)
        decoders = tuple(decoder(column.type) for column in table.schema)
        values = tuple(constant(column.fill, arrow_type(column.type, column.name)) for column in table.schema)
        return AnnouncedLayout(message, table, places, oids, decoders, values)


def _listed(layout: Layout) -> list[tuple[str, int, int]]:
    return [(one.name, one.type_oid, one.modifier) for one in layout]


def _announced(message: RelationMessage) -> list[tuple[str, int, int]]:
    return [(column.name, column.type_oid, column.modifier) for column in message.columns]
