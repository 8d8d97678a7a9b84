"""Layouts are written here, and nowhere else.

Law: a layout, and the views that it stops, change in one catalog transaction, between two csns.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from rollview.catalog import Catalog, CatalogWriter, NewUnit, SourceRecord, UnitPart
from rollview.core.faults import reach
from rollview.core.interval import Csn
from rollview.core.states import SourceState, ViewState
from rollview.evolve.plan import LayoutPlan, plan_change, plan_widening, relation_of
from rollview.publish.own_copy import own_copy
from rollview.relations.folders import delta_folder, state_folder
from rollview.sources.protocol import LayoutChange, SourceTable
from rollview.sources.renamed import renamed_settings
from rollview.sources.settings import SourceSettings


def run_change(catalog: Catalog, root: Path, record: SourceRecord, change: LayoutChange) -> LayoutPlan | None:
    """What was done; None if the table cannot be read without what is gone, and then nothing was."""
    name = relation_of(record, change.table)
    with catalog.lease("definitions", "commit", f"relation:{name}") as lease:
        if change.added or change.widened:
            own_copy(catalog, root, lease, catalog.snapshot().get(name))
        with catalog.write(lease) as writer:
            plan = plan_change(writer.snapshot(), record, change)
            if plan is not None:
                plan = _followed(writer, root, record, change, plan)
    if plan is not None:
        reach("follow.written")
    return plan


def _followed(
    writer: CatalogWriter, root: Path, record: SourceRecord, change: LayoutChange, plan: LayoutPlan
) -> LayoutPlan:
    if plan.waits:
        writer.begin_wait(plan.relation, plan.waits)
    # What a table that waits has lost is gone from the next csn on: it has none of its own, unless it is the table.
    is_told = (change.keeps_all or change.position) and not plan.waits
    if (is_told or change.replaced) and not change.with_rows and not plan.copy:
        plan = replace(plan, at=_commit(writer, record, change.position))
    if change.memory is not None:
        writer.sources.set_memory(record.name, change.memory)
    if change.position is not None:
        writer.sources.advance(record.name, record.position, change.position)
    _follow_settings(writer, record, change, plan)
    if change.called is not None:
        writer.sources.call_table(record.name, change.table, change.called)
    if plan.copy:
        writer.sources.set_state(record.name, SourceState.WIDENING)
    _declare(root, writer, plan)
    _write(writer, plan)
    for view in plan.stopped:
        writer.set_state(view, ViewState.SCHEMA_CHANGED, f"{change.refused().message} This view reads what is gone.")
    return plan


def _follow_settings(writer: CatalogWriter, record: SourceRecord, change: LayoutChange, plan: LayoutPlan) -> None:
    """What the settings say of columns and tables, they say of them under their new names."""
    before = SourceSettings.from_json(record.settings)
    called = {old: new for old, new in change.renamed if old not in plan.lost}
    after = renamed_settings(before, change.table, called)
    if change.called is not None:
        after = after.called(change.table, change.called)
    if after != before:
        writer.sources.set_settings(record.name, after.to_json())


def _declare(root: Path, writer: CatalogWriter, plan: LayoutPlan) -> None:
    """For other programs that read the table: the columns and types that its files may have from now on."""
    if not plan.new and not plan.wider:
        return
    later = replace(writer.snapshot().get(plan.relation), schema=plan.schema)
    for folder in (state_folder(root, later), delta_folder(root, later)):
        folder.declare(plan.new)
        folder.retype(plan.wider)


def commit_layouts(catalog: Catalog, record: SourceRecord) -> None:
    """A csn for layouts that were to apply from the next one on, where no rows come with them."""
    with catalog.lease("commit") as lease, catalog.write(lease) as writer:
        _commit(writer, record)


def _commit(writer: CatalogWriter, record: SourceRecord, position: str | None = None) -> Csn:
    """A csn of its own for a change of columns; without a position, at the one that was read last."""
    place = position or record.position or ""
    part = UnitPart(record.name, place, place, datetime.now(UTC))
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
                _declare(root, writer, plan)
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
