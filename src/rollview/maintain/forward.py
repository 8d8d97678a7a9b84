"""States and groups advanced to a later csn, so that older deltas can be pruned or compressed.

Law: snapshot(s) + Δ(s, t] is snapshot(t), so no answer changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from rollview import relations
from rollview.catalog import Catalog, Lease, Part, Pin, Relation, Snapshot
from rollview.core.interval import Interval
from rollview.maintain.plan import Task
from rollview.publish.fold import fold
from rollview.publish.merge import GetSpark
from rollview.publish.rewrite import Files, Rewriting, Rewritten, rewrite, stored
from rollview.publish.step import published
from rollview.store.buckets import BUCKET, Buckets
from rollview.store.folder import DeltaFolder
from rollview.store.timed import delta_files, few_rows
from rollview.store.writing import BOUND

MoveOn = Callable[[str], bool]
"""A table's state to the newest csn without copying it; False where that cannot be."""


def run_fold(root: Path, catalog: Catalog, task: Task, spark: GetSpark, move_on: MoveOn) -> None:
    """A table's state to the newest csn: by its pin alone, by its source's own files, in this process, or by Spark,
    whichever will do."""
    with catalog.lease(f"relation:{task.relation}") as lease:
        if _repinned(root, catalog, lease, catalog.snapshot(), task.relation):
            return
    if move_on(task.relation):
        return
    with catalog.lease(f"relation:{task.relation}") as lease:
        snapshot = catalog.snapshot()
        if _folded_small(root, catalog, lease, snapshot, task.relation):
            return
    fold(spark(), root, catalog, task.relation)


def run_fold_groups(
    catalog: Catalog, lease: Lease, root: Path, snapshot: Snapshot, task: Task, spark: GetSpark
) -> Rewritten:
    """A summary view's groups to the csn of its extent."""
    relation, to = snapshot.get(task.relation), task.interval.through
    folder = stored(snapshot, root, relation).folder(Part.GROUPS)
    old = folder.files(relation.pins[Part.GROUPS].version)
    work = Rewriting(relation, Part.GROUPS, "fold", task.interval, old, to, to)

    def write(folder: DeltaFolder, places: Sequence[str]) -> Files:
        return folder.stage(relations.Reader(spark(), root, snapshot).groups(relation.name, to), places[0])

    return rewrite(catalog, lease, root, work, folder, write)


def _repinned(root: Path, catalog: Catalog, lease: Lease, snapshot: Snapshot, name: str) -> bool:
    """A commit to another table does not change this one; one to this table waits for the lease."""
    table, at = snapshot.get(name), snapshot.moment.csn
    pin = table.pins[Part.STATE]
    if delta_files(stored(snapshot, root, table), Interval(pin.through, at)):
        return False
    with published(catalog, lease) as publishing:
        publishing.show_pin(table.name, Pin(Part.STATE, pin.version, at, at, pin.rows))
    return True


def _folded_small(root: Path, catalog: Catalog, lease: Lease, snapshot: Snapshot, name: str) -> bool:
    table, at = snapshot.get(name), snapshot.moment.csn
    held, pin = stored(snapshot, root, table), table.pins[Part.STATE]
    rows = few_rows(held, at, BOUND)
    if rows is None:
        return False
    work = Rewriting(table, Part.STATE, "fold", Interval(pin.through, at), held.files(Part.STATE), at, at)

    def write(folder: DeltaFolder, places: Sequence[str]) -> Files:
        return _staged(folder, rows, places[0], table)

    rewrite(catalog, lease, root, work, held.folder(Part.STATE), write)
    return True


def _staged(folder: DeltaFolder, rows: pa.Table, place: str, table: Relation) -> Files:
    """So few rows are in one bucket, if in any."""
    key = table.constraints.primary_key
    if not key:
        return folder.stage(rows, place)
    bucketed = rows.append_column(BUCKET, pa.array(np.zeros(rows.num_rows, np.int32)))
    return folder.stage(bucketed, place, buckets=Buckets(key, 1), sort=key)
