"""A row of a source that no column here can hold, as a plain value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row of a source's table that came (``count`` +1) or went (-1) and has no representation here.

    ``row`` is what identifies it.
    """

    table: str
    column: str
    reason: str
    row: str
    count: int
