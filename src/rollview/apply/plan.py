"""What bringing a set of extents to one csn will do, before it is done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rollview.catalog import Part, Pin, Relation, Snapshot
from rollview.core.interval import Csn, Interval
from rollview.costs.reading import roll_seconds
from rollview.relations.plans import check_reachable, plan_of
from rollview.relations.reader import changed_rows, stored_as
from rollview.relations.shared import changes_from
from rollview.store.buckets import REWRITE_ROWS
from rollview.store.timed import Stored, delta_files

FOLD_ROWS = 2_000
"""Groups are written anew when their delta has outgrown them and this."""


@dataclass(frozen=True, slots=True)
class ApplyStep:
    """One view from the csn of its extent to another, forwards or back. The extent is that of the definition which
    holds where it goes: another definition's stays as it is."""

    view: str
    before: Csn
    after: Csn
    change_rows: int
    by_bucket: bool
    fold_groups: bool
    expected_seconds: float = 0.0

    @property
    def between(self) -> Interval:
        return Interval(min(self.before, self.after), max(self.before, self.after))


def plan_apply(snapshot: Snapshot, root: Path, names: Sequence[str], target: Csn) -> tuple[ApplyStep, ...]:
    """One step per view that is not there yet; refuses if one of them cannot go there."""
    relations = [snapshot.get(name) for name in names]
    for relation in relations:
        check_reachable(snapshot, relation, target, rolling=True)
    then = snapshot.at(target)
    moved = [then.get(relation.name) for relation in relations if relation.shown.through != target]
    return tuple(_step(then, root, relation, target) for relation in moved)


def _csn(relation: Relation) -> Csn:
    return relation.pins[Part.EXTENT].through


def _step(snapshot: Snapshot, root: Path, relation: Relation, target: Csn) -> ApplyStep:
    told_by = changes_from(snapshot, relation)
    stored = stored_as(root, told_by, plan_of(snapshot, told_by).hidden)
    between = Interval(min(_csn(relation), target), max(_csn(relation), target))
    changes = changed_rows(snapshot, root, told_by, between)
    extent = relation.pins[Part.EXTENT]
    return ApplyStep(
        relation.name,
        extent.through,
        target,
        changes,
        by_bucket=extent.rows > REWRITE_ROWS and relation.at(extent.through).schema == relation.schema,
        fold_groups=Part.GROUPS in relation.pins and _groups_pay(relation.pins[Part.GROUPS], stored, target),
        expected_seconds=roll_seconds(snapshot, root, relation, target),
    )


def _groups_pay(groups: Pin, stored: Stored, target: Csn) -> bool:
    if target <= groups.through:
        return False
    since = sum(file.rows for file in delta_files(stored, Interval(groups.through, target)))
    return since > max(FOLD_ROWS, 2 * groups.rows)
