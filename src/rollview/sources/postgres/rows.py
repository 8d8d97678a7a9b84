"""Row messages one by one: slower than by columns, and it tells which value of which row has no representation.

Law: a large value that an update left alone is taken from the old row. A row is whole, or the position is lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rollview.core.bad_row import BadRow
from rollview.errors import LostPosition
from rollview.sources.postgres.announced import AnnouncedLayout
from rollview.sources.postgres.messages import UNCHANGED, Image, RowMessage, Unchanged
from rollview.sources.protocol import Opening, Row
from rollview.sources.quarantine import Sieve


@dataclass(frozen=True, slots=True)
class RowReader:
    """Of one table in one transaction, which is at ``position``; ``bad``: what it puts aside."""

    opening: Opening
    layout: AnnouncedLayout
    position: str
    bad: list[BadRow]

    def come(self, message: RowMessage) -> Sequence[Row]:
        return () if message.after is None else self._decoded(_filled(message.after, message.before), +1)

    def gone(self, message: RowMessage) -> Sequence[Row]:
        if message.before is not None and not message.is_key:
            return self._decoded(message.before, -1)
        if message.after is None or message.before is not None:
            raise LostPosition(self.opening.name, f"an old row of table '{self.layout.remote}' is not whole")
        return ()

    def _decoded(self, image: Image, count: int) -> Sequence[Row]:
        """The row; nothing if it is put aside."""
        values: list[Any] = []
        schema = self.layout.table.schema
        told = zip(self.layout.places, self.layout.decoders, self.layout.values, strict=True)
        for place, decode, constant in told:
            if place is None:
                values.append(constant.as_py())
                continue
            text = image[place]
            try:
                values.append(None if text is None else decode(_text(text)))
            except (ValueError, ArithmeticError, KeyError) as error:
                row = {c.name: image[p] for c, p in zip(schema, self.layout.places, strict=True) if p is not None}
                column = schema.columns[len(values)].name
                sieve = Sieve(self.opening, self.bad)
                sieve.refuse(self.layout.table, column, str(error), self.position, row, count)
                return ()
        return (tuple(values),)


def _filled(after: Image, before: Image | None) -> Image:
    """An unchanged large value is in the old row."""
    if UNCHANGED not in after:
        return after
    old = before or (UNCHANGED,) * len(after)
    return tuple(before if value is UNCHANGED else value for value, before in zip(after, old, strict=True))


def _text(value: str | Unchanged) -> str:
    if isinstance(value, Unchanged):
        raise ValueError("a large value that the log does not hold")
    return value
