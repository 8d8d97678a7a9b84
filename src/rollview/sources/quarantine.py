"""Rows that cannot be represented.

Law: where a source may quarantine, a table is the source's table without the rows that have no representation, and
those are kept by what identifies them, with the count by which they came or went, and the position. A row that comes
and goes again leaves a sum of zero. Elsewhere the first such row stops the source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from rollview.catalog import BadRow, CatalogWriter
from rollview.errors import BadValue
from rollview.sources.protocol import Changes, Opening, Rows, SourceTable, UnitOfWork
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


def sift(unit: UnitOfWork, tables: Mapping[str, SourceTable]) -> UnitOfWork:
    """The unit without the rows that no Arrow column of the table's types can hold."""
    bad = list(unit.quarantined)
    changes = {}
    for name, change in unit.changes.items():
        before = sift_rows(tables[name], change.before, -1, bad)
        after = sift_rows(tables[name], change.after, +1, bad)
        changes[name] = Changes(before, after, change.replaces, change.spools)
    return replace(unit, changes=changes, quarantined=tuple(bad))


def sift_rows(table: SourceTable, rows: Rows, count: int, bad: list[BadRow]) -> Rows:
    if isinstance(rows, pa.Table | Section):
        return rows
    unfit = unfit_places(rows, table.schema)
    for place, (column, reason) in unfit.items():
        row = dict(zip(table.schema.names, rows[place], strict=True))
        bad.append(BadRow(table.name, column, reason, identified(table, row), count))
    return [row for place, row in enumerate(rows) if place not in unfit] if unfit else rows


def note_quarantine(
    writer: CatalogWriter, source: str, relations: Mapping[str, str], units: Sequence[UnitOfWork]
) -> None:
    """Part of the transaction that publishes the units. A table that is replaced has no old rows left anywhere."""
    for unit in units:
        for remote, change in unit.changes.items():
            if change.replaces:
                writer.sources.clear_quarantine(relations[remote])
        for bad in unit.quarantined:
            writer.sources.quarantine(source, relations[bad.table], unit.position, bad)


def tables_of(relations: Mapping[str, Any]) -> dict[str, SourceTable]:
    """Captured relations as the source's own tables."""
    return {remote: SourceTable(remote, r.schema, r.constraints) for remote, r in relations.items()}
