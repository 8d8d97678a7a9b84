"""What moved in an interval, as the ledger and the names of delta files tell it: no row is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rollview.algebra.script import Motion
from rollview.catalog import ChangeCount, Relation, RelationKind, Snapshot
from rollview.core.interval import Csn, Interval
from rollview.relations.plans import plan_of
from rollview.relations.reader import changed_rows, stored_as
from rollview.relations.shared import changes_from
from rollview.relations.versions import began_anew
from rollview.store.timed import csns_of, delta_files

ChangesOf = Callable[[str, Interval], tuple[ChangeCount, ...]]
"""The ledger's counts of a table's changes over an interval."""


@dataclass(frozen=True, slots=True)
class Moved:
    """One relation's changes: how they are, how many rows, and csns between which they all lie."""

    motion: Motion
    rows: int
    csns: tuple[Csn, Csn] | None


def moved(snapshot: Snapshot, relation: Relation, root: Path, interval: Interval, changes_of: ChangesOf) -> Moved:
    if relation.kind is RelationKind.VIEW:
        return _view_moved(snapshot, relation, root, interval)
    counts = changes_of(relation.name, interval)
    deletes = any(count.deleted for count in counts)
    updates = any(count.deleted and count.updated != 0 for count in counts)
    rows = sum(count.inserted + count.deleted for count in counts)
    csns = [count.csn for count in counts]
    motion = Motion(rows > 0, deletes, updates, one_csn=len(counts) == 1)
    return Moved(motion, rows, (min(csns), max(csns)) if rows else None)


def _view_moved(snapshot: Snapshot, relation: Relation, root: Path, interval: Interval) -> Moved:
    told_by = changes_from(snapshot, relation)
    since = began_anew(told_by)
    if since is not None and since > interval.after:
        rows = changed_rows(snapshot, root, told_by, interval)
        return Moved(Motion(changed=rows > 0), rows, (interval.after + 1, interval.through) if rows else None)
    files = delta_files(stored_as(root, told_by, plan_of(snapshot, told_by).hidden), interval)
    rows = sum(file.rows for file in files)
    if not rows:
        return Moved(Motion(changed=False), 0, None)
    first, last = zip(*map(csns_of, files), strict=True)
    return Moved(Motion(), rows, (max(min(first), interval.after + 1), min(max(last), interval.through)))
