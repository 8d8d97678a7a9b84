"""A source's table has other columns than it had.

Law: a captured table keeps the columns that mean the same before and after; a projection of a timed relation is timed,
so without the others it is right at every csn. Views that name one of the others are stopped where they are, with the
views that read those; all others go on. Nothing that came after the change is read by the layout before it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from sqlglot import exp

from rollview.algebra.text import parse_one
from rollview.algebra.used import columns_used
from rollview.capture.in_place import own_copy
from rollview.capture.stored_rows import delta_folder, state_folder
from rollview.catalog import SCHEMA_CHANGED, Catalog, CatalogWriter, Relation, Snapshot
from rollview.catalog import Source as Record
from rollview.core.names import same
from rollview.core.schema import Constraints, Schema
from rollview.errors import SchemaChanged, UsageError
from rollview.relations.plans import plan_of
from rollview.sources.protocol import SourceTable
from rollview.sources.settings import SourceSettings


def follow(catalog: Catalog, record: Record, change: SchemaChanged) -> str:
    """What was done, as one sentence; the error itself if the table cannot be read without what is gone."""
    name = next(table.relation for table in record.tables if table.remote == change.table)
    with catalog.lease("definitions", "commit", f"relation:{name}") as lease, catalog.write(lease) as writer:
        snapshot = writer.snapshot()
        relation = snapshot.get(name)
        gone = tuple(c.name for c in relation.schema if any(same(c.name, other) for other in change.gone))
        schema = Schema(tuple(column for column in relation.schema if column.name not in gone))
        constraints = _kept(relation.constraints, (*gone, *change.unsure))
        if (
            not len(schema)
            or restricts_by(record, change.table, gone)
            or (schema == relation.schema and constraints == relation.constraints)
        ):
            raise change
        position, csn = record.position or "", snapshot.moment.csn + 1
        writer.sources.set_layout(relation.name, schema, constraints, position, csn, change.reason)
        stopped = stopped_by(snapshot, relation, gone)
        for view in stopped:
            writer.set_state(view, SCHEMA_CHANGED, f"{change.message} This view reads what is gone.")
    return _told(change, relation, gone, stopped)


def widen(catalog: Catalog, root: Path, record: Record, table: SourceTable, position: str) -> tuple[str, ...]:
    """Columns that the source has and we do not are here from the next csn on, NULL in all that came before.

    Views that exist do not see them. A column that was here before cannot come back: old files still hold it.
    """
    name = next(one.relation for one in record.tables if one.remote == table.name)
    with catalog.lease("definitions", "commit", f"relation:{name}") as lease:
        if any(catalog.snapshot().get(name).schema.find(column.name) is None for column in table.schema):
            own_copy(catalog, root, lease, catalog.snapshot().get(name))
        with catalog.write(lease) as writer:
            return _widened(writer, root, name, table, position)


def _widened(writer: CatalogWriter, root: Path, name: str, table: SourceTable, position: str) -> tuple[str, ...]:
    snapshot = writer.snapshot()
    relation = snapshot.get(name)
    new = tuple(column for column in table.schema if relation.schema.find(column.name) is None)
    former = {column.name.lower() for layout in relation.layouts for column in layout.schema}
    back = [column.name for column in new if column.name.lower() in former]
    if back:
        raise UsageError(
            f"Column '{back[0]}' of table '{name}' was captured before, and lost; it cannot come back.",
            hint="Remove the source and add it again.",
        )
    if new:
        schema = Schema((*relation.schema.columns, *new))
        told = f"taken as well: {', '.join(column.name for column in new)}"
        widened = replace(relation, schema=schema)
        for folder in (state_folder(root, widened), delta_folder(root, widened)):
            folder.declare(new)
        about = (position, snapshot.moment.csn + 1, told)
        writer.sources.set_layout(relation.name, schema, relation.constraints, *about)
    return tuple(column.name for column in new)


def restricts_by(record: Record, remote: str, gone: Iterable[str]) -> bool:
    """Whether nobody can tell any more which rows are captured."""
    rows = SourceSettings.from_json(record.settings).table(remote).rows
    named = {column.name.lower() for column in parse_one(rows).find_all(exp.Column)} if rows else set()
    return any(name.lower() in named for name in gone)


def stopped_by(snapshot: Snapshot, relation: Relation, gone: Iterable[str]) -> tuple[str, ...]:
    """The views that name one of the columns, and the views above those."""
    lost = {name.lower() for name in gone}
    stopped: set[str] = set()
    for view in snapshot.views():
        if view.state == SCHEMA_CHANGED:
            continue
        used = columns_used(plan_of(snapshot, view).outline.resolved) if relation.name in view.depends_on else {}
        if used.get(relation.name.lower(), frozenset()) & lost or stopped.intersection(view.depends_on):
            stopped.add(view.name)
    return tuple(sorted(stopped))


def unkept(promised: Constraints, now: Constraints) -> tuple[str, ...]:
    """Columns of which less is promised than before."""
    key = promised.primary_key if promised.primary_key != now.primary_key else ()
    return (*key, *(name for name in promised.not_null if name not in now.not_null))


def _kept(constraints: Constraints, unsure: tuple[str, ...]) -> Constraints:
    """What is still promised of the columns that are left."""

    def is_sure(columns: Iterable[str]) -> bool:
        return not any(same(column, other) for column in columns for other in unsure)

    return Constraints(
        constraints.primary_key if is_sure(constraints.primary_key) else (),
        tuple(key for key in constraints.unique if is_sure(key)),
        tuple(column for column in constraints.not_null if is_sure((column,))),
        tuple(key for key in constraints.foreign_keys if is_sure(key.columns)),
    )


def _told(change: SchemaChanged, relation: Relation, gone: tuple[str, ...], stopped: tuple[str, ...]) -> str:
    left = f"; left out here: {', '.join(gone)}" if gone else ""
    views = f"; stopped: {', '.join(stopped)}" if stopped else "; no view is affected"
    return f"table '{relation.name}': {change.reason}{left}{views}"
