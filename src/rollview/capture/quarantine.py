"""Rows that cannot be represented, kept.

Law: what is put aside of a unit of work is in the catalog from the transaction on that publishes the unit. A row that
comes and goes again leaves a sum of zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rollview.catalog import CatalogWriter
from rollview.sources.protocol import Changes, SourceTable, UnitOfWork
from rollview.sources.quarantine import sift_rows


def sift(unit: UnitOfWork, tables: Mapping[str, SourceTable]) -> UnitOfWork:
    """The unit without the rows that no Arrow column of the table's types can hold."""
    bad = list(unit.quarantined)
    changes = {}
    for name, change in unit.changes.items():
        before = sift_rows(tables[name], change.before, -1, bad)
        after = sift_rows(tables[name], change.after, +1, bad)
        changes[name] = Changes(before, after, change.replaces, change.spools)
    return replace(unit, changes=changes, quarantined=tuple(bad))


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
