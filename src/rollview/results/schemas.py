"""Which columns tables and views have had, by csn."""

from __future__ import annotations

from dataclasses import dataclass

from rollview.core.interval import Csn
from rollview.results.answer import Result


@dataclass(frozen=True, slots=True)
class ColumnEntry(Result):
    """What column ``id`` of a relation was from csn ``since`` on and before ``until``; None: it still is.

    ``new_name``: what it was called next. ``older_rows``: the constant that rows from before it have in it.
    """

    relation: str
    id: int
    column: str
    type: str
    since: Csn
    until: Csn | None
    new_relation: str | None = None
    new_name: str | None = None
    older_rows: str | None = None


@dataclass(frozen=True, slots=True)
class SchemaLog(Result):
    """All columns that relations have had, in the order in which they began."""

    entries: tuple[ColumnEntry, ...]


@dataclass(frozen=True, slots=True)
class SchemaAt(Result):
    """The columns of one relation at a csn."""

    name: str
    csn: Csn
    columns: tuple[ColumnEntry, ...]
