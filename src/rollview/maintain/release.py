"""Rows of a captured table that no refresh ever reads.

Law: a view that is linear in a table is kept by the table's changes alone. Of a table of which only what views need has
to be here, and all of whose views are such, no rows are kept. Should its source replace all of its rows, nobody can
say what changed: the views are then recomputed at that csn from the new rows, so all else that they read is kept.
"""

from __future__ import annotations

from pathlib import Path

from rollview.catalog import NOT_KEPT, Catalog, Lease, Part, Pin, Relation, RelationKind, Snapshot
from rollview.core.interval import Interval
from rollview.publish.rewrite import Files, Rewritten
from rollview.publish.step import recorded
from rollview.relations.maintenance import needs_rows_of
from rollview.relations.plans import reads_rows_of


def readers_of_changes(snapshot: Snapshot, table: Relation, asked: frozenset[str]) -> tuple[str, ...]:
    """The views over the table, if none of them will ever read its rows here; nothing if one may, or if there is none.
    ``asked``: tables whose rows stay at their sources."""
    views = snapshot.readers(table.name)
    reads = (_reads_changes(snapshot, view, table, asked) for view in views)
    return tuple(view.name for view in views) if all(reads) else ()


def _reads_changes(snapshot: Snapshot, view: Relation, table: Relation, asked: frozenset[str]) -> bool:
    """A view that is stopped may go on otherwise than it was. One that asks needs nothing else to be here."""
    waits = view.state is not None or view.problem is not None or view.pending is not None
    if waits or table.name in needs_rows_of(snapshot, view, asked):
        return False
    mark = view.pins[Part.DELTA].through
    if table.name in asked or table.name in reads_rows_of(snapshot, view):
        return table.readable_from <= mark
    tables = [one for one in map(snapshot.get, view.depends_on) if one.kind is RelationKind.TABLE]
    return all(one.is_kept and one.readable_from <= mark for one in tables)


def run_release(catalog: Catalog, lease: Lease, root: Path, table: Relation, files: Files) -> Rewritten:
    """The files go when nobody can be reading them any more."""
    at = table.pins[Part.STATE].through
    with (
        recorded(catalog, lease, root, table.name, "release", Interval(at, at), ()) as step,
        step.publish(lease, {"files_replaced": len(files)}) as publishing,
    ):
        publishing.show_pin(table.name, Pin(Part.STATE, NOT_KEPT, at, at, 0))
    return Rewritten((), files)
