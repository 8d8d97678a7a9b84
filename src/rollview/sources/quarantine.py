"""Rows that cannot be represented.

Law: where a source may quarantine, what it gives is its tables without the rows that have no representation; those are
put aside by what identifies them, with the count by which they came or went. Elsewhere the first such row stops the
source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from rollview.core.bad_row import BadRow
from rollview.errors import BadValue
from rollview.sources.protocol import Opening, Rows, SourceTable
from rollview.sources.sections import Section
from rollview.sources.values import unfit_places

_LONGEST = 200


@dataclass(slots=True)
class Sieve:
    """What a reading of a source has put aside so far."""

    opening: Opening
    found: list[BadRow] = field(default_factory=list)

    def refuse(
        self, table: SourceTable, column: str, reason: str, position: str | None, row: Mapping[str, Any], count: int
    ) -> None:
        """Put the row aside, or stop the source."""
        if not self.opening.settings.quarantines:
            raise BadValue(self.opening.name, table.name, column, reason, position)
        self.found.append(BadRow(table.name, column, reason, identified(table, row), count))

    def take(self) -> tuple[BadRow, ...]:
        taken, self.found = tuple(self.found), []
        return taken


def identified(table: SourceTable, row: Mapping[str, Any]) -> str:
    """By its key, or by all that it holds."""
    columns = table.constraints.primary_key or table.schema.names
    return ", ".join(f"{name}={str(row.get(name))[:_LONGEST]}" for name in columns)


def sift_rows(table: SourceTable, rows: Rows, count: int, bad: list[BadRow]) -> Rows:
    if isinstance(rows, pa.Table | Section):
        return rows
    unfit = unfit_places(rows, table.schema)
    for place, (column, reason) in unfit.items():
        row = dict(zip(table.schema.names, rows[place], strict=True))
        bad.append(BadRow(table.name, column, reason, identified(table, row), count))
    return [row for place, row in enumerate(rows) if place not in unfit] if unfit else rows
