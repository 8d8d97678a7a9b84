"""Layouts are written here, and nowhere else.

Law: a layout, and the views that it stops, change in one catalog transaction, between two csns.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from rollview.catalog import Catalog, CatalogWriter, NewUnit, SourceRecord, UnitPart
from rollview.core.interval import Csn
from rollview.core.states import ViewState
from rollview.evolve.plan import LayoutPlan, plan_change, plan_widening, relation_of
from rollview.publish.own_copy import own_copy
from rollview.relations.folders import delta_folder, state_folder
from rollview.sources.protocol import LayoutChange, SourceTable


def run_change(catalog: Catalog, record: SourceRecord, change: LayoutChange) -> LayoutPlan | None:
    """What was done; None if the table cannot be read without what is gone, and then nothing was."""
    name = relation_of(record, change.table)
    with catalog.lease("definitions", "commit", f"relation:{name}") as lease, catalog.write(lease) as writer:
        plan = plan_change(writer.snapshot(), record, change)
        if plan is not None:
            if change.renamed:
                plan = replace(plan, at=_commit(writer, record))
            if change.memory is not None:
                writer.sources.set_memory(record.name, change.memory)
            _write(writer, plan)
            reason = f"{change.refused().message} This view reads what is gone."
            for view in plan.stopped:
                writer.set_state(view, ViewState.SCHEMA_CHANGED, reason)
    return plan


def _commit(writer: CatalogWriter, record: SourceRecord) -> Csn:
    """A csn of its own for a change of names, at the position that was read last."""
    part = UnitPart(record.name, record.position or "", record.position or "", datetime.now(UTC))
    return writer.commit_units([NewUnit((part,), (), record.latest)]).csn


def run_widening(
    catalog: Catalog, root: Path, record: SourceRecord, table: SourceTable, position: str
) -> LayoutPlan | None:
    """What was done; None if the source has no column that is not here."""
    name = relation_of(record, table.name)
    with catalog.lease("definitions", "commit", f"relation:{name}") as lease:
        if any(catalog.snapshot().get(name).schema.find(column.name) is None for column in table.schema):
            own_copy(catalog, root, lease, catalog.snapshot().get(name))
        with catalog.write(lease) as writer:
            plan = plan_widening(writer.snapshot(), name, table, position)
            if plan is not None:
                widened = replace(writer.snapshot().get(name), schema=plan.schema)
                for folder in (state_folder(root, widened), delta_folder(root, widened)):
                    folder.declare(plan.new)
                _write(writer, plan)
    return plan


def begin_layout(writer: CatalogWriter, name: str, position: str, reason: str) -> None:
    """The first layout of a table, from the next csn on."""
    snapshot = writer.snapshot()
    relation = snapshot.get(name)
    at = snapshot.moment.csn + 1
    _write(writer, LayoutPlan(name, relation.schema, relation.constraints, position, at, reason))


def note_rows(writer: CatalogWriter, position: str, rows: Iterable[tuple[str, str]]) -> None:
    """Of tables of which not simply all is here: which rows, from the newest csn on at least."""
    snapshot = writer.snapshot()
    for relation, condition in ((snapshot.get(name), condition) for name, condition in rows):
        about = (position, snapshot.moment.csn, f"rows: {condition or 'all'}")
        _write(writer, LayoutPlan(relation.name, relation.schema, relation.constraints, *about))


def activate_layouts(writer: CatalogWriter, csn: Csn) -> None:
    """Layouts of a csn that was not committed apply from ``csn`` on."""
    writer.sources.activate_layouts(csn)


def _write(writer: CatalogWriter, plan: LayoutPlan) -> None:
    about = (plan.position, plan.at, plan.reason)
    writer.sources.set_layout(plan.relation, plan.schema, plan.constraints, *about)
