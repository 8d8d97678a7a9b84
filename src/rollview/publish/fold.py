"""A table's state moved forward to the newest csn.

Law: state(s) + Δ(s, t] is state(t), so folding changes no answer. The delta stays as it is: every csn in reach stays in
reach.

A state moves when its delta has outgrown it, or, in the background, when looking past its pending changes has cost as
much as moving it: whoever rents until the rent has come to the price, and buys then, never pays more than twice.
It does not move past views that are far behind: they would have to read the changes back from it.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rollview.catalog import Catalog, Part, Pin, Relation, RelationKind, Snapshot, Step
from rollview.core.interval import Interval
from rollview.errors import RollviewError
from rollview.publish.bulk import find_bulk_update, keep_as_state
from rollview.publish.rewrite import Files, Rewriting, rewrite
from rollview.relations.reader import Reader, stored_as
from rollview.store.buckets import Buckets
from rollview.store.folder import DeltaFolder
from rollview.store.timed import delta_files, only_inserts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LEAST = 100_000
SHARE = 2
MOST = 1_000_000
"""More changes than this are not sent to where a table's rows are read."""
BUCKET_ROWS = 250_000
READS = 8
"""A read of all rows past one per cent of changes takes a third longer, and a fold as long as about three reads."""
READ_SHARE = 200
"""Fewer changes than one in so many rows are read past for nothing."""

_log = logging.getLogger(__name__)


def fold_if_it_pays(spark: SparkSession, root: Path, catalog: Catalog, name: str) -> bool:
    """Fold when what the delta changes has grown beyond half of the rest, and where a commit has changed most rows.
    Never raises: it is as good unfolded."""
    try:
        snapshot = catalog.snapshot()
        table = snapshot.find(name)
        if table is None or table.kind is not RelationKind.TABLE or keeps_former(table):
            return False
        bulk = find_bulk_update(snapshot, catalog, root, table)
        if bulk is not None and keep_as_state(spark, root, catalog, table.name):
            return True
        return pays(snapshot, root, table) and fold(spark, root, catalog, table.name)
    except RollviewError as error:
        _log.warning("table '%s' not folded: %s", name, error.message)
        return False


def fold_if_often_read(spark: SparkSession, root: Path, catalog: Catalog, name: str) -> bool:
    """Fold when views were recomputed so often past the pending changes that it has cost as much. Never raises."""
    try:
        snapshot = catalog.snapshot()
        table = snapshot.find(name)
        if table is None or table.kind is not RelationKind.TABLE or not often_read(snapshot, catalog, root, table):
            return False
        return fold(spark, root, catalog, table.name)
    except RollviewError as error:
        _log.warning("table '%s' not folded: %s", name, error.message)
        return False


def leaves_behind(snapshot: Snapshot, table: Relation, going: Collection[str]) -> bool:
    """Whether the newest csn is further than the state is from the first csn that a view among ``going`` reads next."""
    newest, state = snapshot.moment.csn, table.pins[Part.STATE].through
    views = [snapshot.get(name) for name in going if snapshot.find(name) is not None]
    marks = [view.pins[Part.DELTA].through for view in views if table.name in snapshot.tables_below(view)]
    first = min(marks, default=newest)
    return newest - first > first - state


def is_large(table: Relation) -> bool:
    """Whether it matters how its rows are read."""
    state = table.pins[Part.STATE]
    return state.is_kept and state.rows + table.pins[Part.DELTA].rows > LEAST


def often_read(snapshot: Snapshot, catalog: Catalog, root: Path, table: Relation) -> bool:
    state = table.pins[Part.STATE]
    if not is_large(table) or keeps_former(table) or snapshot.moment.csn == state.through:
        return False
    rest, costly = _pending(snapshot, root, table)
    if costly < rest / READ_SHARE:
        return False
    if any(file.linked for file in stored_as(root, table).files(Part.STATE)):
        # Its source's own files are not copied for the sake of speed; capture moves it on.
        return False
    # A refresh is one step that propagates and one that applies.
    steps = [step for view in snapshot.readers(table.name) for step in catalog.steps(view.name, 2 * READS, "done")]
    return sum(1 for step in steps if _read_past(step, state)) >= READS


def _read_past(step: Step, state: Pin) -> bool:
    """Whether a view was recomputed at a csn after the state's."""
    return step.profile.get("mode") == "whole" and step.interval.through > state.through


def pays(snapshot: Snapshot, root: Path, table: Relation) -> bool:
    state = table.pins[Part.STATE]
    if not state.is_kept or keeps_former(table):
        return False
    if snapshot.moment.csn == state.through or table.pins[Part.DELTA].rows <= LEAST:
        return False
    rest, costly = _pending(snapshot, root, table)
    if not table.constraints.primary_key:
        return costly > max(LEAST, rest / SHARE)
    return costly > max(LEAST, min(MOST, rest / SHARE))


def _pending(snapshot: Snapshot, root: Path, table: Relation) -> tuple[int, int]:
    """Rows that are read as they are, and those of changes that cost more.

    With a key, rows that only come are read as those of the state are; what costs is to look up what goes.
    """
    state = table.pins[Part.STATE]
    files = delta_files(stored_as(root, table), Interval(state.through, snapshot.moment.csn))
    is_plain = bool(table.constraints.primary_key)
    plain = sum(file.rows for file in files if is_plain and only_inserts(file))
    return state.rows + plain, sum(file.rows for file in files) - plain


def keeps_former(table: Relation) -> bool:
    """Whether csns are in reach at which it had a column that was dropped since: its state tells that one's values."""
    after = table.pins[Part.DELTA].after
    return any(after < dropped and table.pins[Part.STATE].through < dropped for _, dropped in table.former)


def fold(spark: SparkSession, root: Path, catalog: Catalog, name: str) -> bool:
    with catalog.lease(f"relation:{name}") as lease:
        snapshot = catalog.snapshot()
        table = snapshot.get(name)
        old, at = table.pins[Part.STATE], snapshot.moment.csn
        folder = stored_as(root, table).folder(Part.STATE)
        removed = folder.files(old.version)
        work = Rewriting(table, Part.STATE, "fold", Interval(old.through, at), removed, at, at)

        def write(folder: DeltaFolder, places: Sequence[str]) -> Files:
            rows = Reader(spark, root, snapshot).rows(name, at)
            return folder.stage(rows, places[0], buckets=buckets(table), sort=table.constraints.primary_key)

        rewrite(catalog, lease, root, work, folder, write)
    return True


def buckets(table: Relation) -> Buckets | None:
    """By primary key, so that a lookup of few keys reads few files; a power of two, so that buckets split in halves."""
    key = table.constraints.primary_key
    if not key:
        return None
    most = sum(pin.rows for pin in table.pins.values())
    count = 1
    while count * BUCKET_ROWS < most:
        count *= 2
    return Buckets(key, count)
