"""How rows of a table are read: by the layout that the log announced for them.

Law: each of our columns is found by name in what was announced, and is what it was when it was recorded; so no value
ever lands in another column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rollview.core.schema import Column
from rollview.errors import LostPosition, SchemaChanged
from rollview.sources.postgres.layout import full_name
from rollview.sources.postgres.messages import RelationMessage
from rollview.sources.postgres.values import Decode, decoder, spark_type
from rollview.sources.protocol import Opening, SourceTable


@dataclass(frozen=True, slots=True)
class AnnouncedLayout:
    """For each of our columns its place in the message, its type there, and how its text is read."""

    message: RelationMessage
    table: SourceTable
    places: tuple[int, ...]
    type_oids: tuple[int, ...]
    decoders: tuple[Decode, ...]

    @property
    def remote(self) -> str:
        return self.table.name


def announced(opening: Opening, remote: str, message: RelationMessage) -> AnnouncedLayout:
    if message.identity != "f":
        repair = f"ALTER TABLE {full_name(remote)} REPLICA IDENTITY FULL;"
        raise LostPosition(opening.name, f"table '{remote}' does not log whole old rows any more; run {repair}")
    known: Mapping[str, Any] = opening.memory["tables"][remote]["columns"]
    table = opening.known[remote]
    told = {column.name: (column.type_oid, column.modifier) for column in message.columns}
    gone = tuple(c.name for c in table.schema if not is_same(c, known[c.name], told.get(c.name)))
    if gone:
        what = f"columns that are gone or have another type: {', '.join(gone)}"
        raise SchemaChanged(opening.name, remote, what, gone=gone)
    present = {column.name: place for place, column in enumerate(message.columns)}
    places = tuple(present[name] for name in table.schema.names)
    oids = tuple(told[name][0] for name in table.schema.names)
    return AnnouncedLayout(message, table, places, oids, tuple(decoder(column.type) for column in table.schema))


def is_same(column: Column, recorded: Sequence[Any], told: tuple[int, int] | None) -> bool:
    """Whether a column of this type and modifier holds what it held when it was recorded."""
    if told is None or told[0] != recorded[0]:
        return False
    # Only the digits of a decimal are in the modifier and in our type as well.
    derived = recorded[1] == told[1] or not column.type.startswith("decimal")
    return derived or spark_type(told[0], told[1], "b", None) == column.type
