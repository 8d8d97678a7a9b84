"""What a propagation step will do, before it does it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rollview.algebra.rules.block import SMALL_SIDE_ROWS
from rollview.algebra.script import Motion
from rollview.algebra.summary import FEW_GROUPS, GROUPS
from rollview.algebra.view import Mode
from rollview.catalog import ChangeCount, Part, Relation, RelationKind, Snapshot
from rollview.core.interval import Csn, Interval
from rollview.core.phases import phase
from rollview.propagate.closed import closed_references
from rollview.store.plans import Circumstances, high_water_mark, plan_of
from rollview.store.reader import stored_as
from rollview.store.timed import delta_files

SMALL_DELTA_ROWS = 100_000
"""Up to here the deltas are handled in one piece and sent to the executors whole, rather than shuffled."""

ChangesOf = Callable[[str, Interval], tuple[ChangeCount, ...]]
"""The ledger's counts of a table's changes over an interval."""


@dataclass(frozen=True, slots=True)
class PropagateStep:
    """One view over one interval. ``delta_rows``: rows in the deltas it reads. Nothing moved: only the mark moves."""

    view: str
    interval: Interval
    mode: Mode
    motion: Mapping[str, Motion]
    sizes: Mapping[str, int]
    closed: frozenset[tuple[str, str]]
    delta_rows: int
    reason: str
    groups_states: bool = False
    """The old state of something large is netted or grouped whole on the way."""
    ahead: bool = False
    """Tell the state at the end as well: it is about to be applied, and all groups are looked at anyway."""

    @property
    def moves(self) -> bool:
        return any(motion.changed for motion in self.motion.values())

    @property
    def small(self) -> bool:
        return self.delta_rows <= SMALL_DELTA_ROWS

    @property
    def shuffles_little(self) -> bool:
        """A few rows are all that moves between executors: no state is grouped whole."""
        return self.small and self.mode is not Mode.WHOLE and not self.groups_states

    def circumstances(self, *, ahead: bool) -> Circumstances:
        """Sizes only as far as they matter, so that the next refresh like this one finds its query written."""
        sizes = ((name, _limit_above(rows)) for name, rows in self.sizes.items())
        return Circumstances(
            frozenset(self.motion.items()), self.small, frozenset(sizes), self.closed, ahead and self.ahead
        )


@phase("plan")
def plan_propagate(
    snapshot: Snapshot,
    root: Path,
    name: str,
    target: Csn,
    changes_of: ChangesOf,
    *,
    recompute: bool = False,
    applied_next: bool = False,
) -> PropagateStep | None:
    """The step that brings the view's mark to ``target``, or None if it is there already."""
    relation = snapshot.get(name)
    after = high_water_mark(snapshot, relation)
    through = min([target, *(high_water_mark(snapshot, snapshot.get(lower)) for lower in relation.depends_on)])
    if through <= after:
        return None
    interval = Interval(after, through)
    plan = plan_of(snapshot, relation)
    below = [snapshot.get(lower) for lower in relation.depends_on]
    motions = {lower.name: _motion(snapshot, lower, root, interval, changes_of) for lower in below}
    mode = Mode.WHOLE if recompute and plan.summary is None else plan.mode
    reason = plan.outline.whole_because or ("asked for" if mode is not plan.mode else "deltas only")
    motion = {lower: motion for lower, (motion, _) in motions.items()}
    rows = {lower: rows for lower, (_, rows) in motions.items()}
    sizes = {lower.name: _size(lower) for lower in below} | ({GROUPS: _size(relation)} if plan.summary else {})
    few = sizes.get(GROUPS, FEW_GROUPS + 1) <= FEW_GROUPS and sum(rows.values()) <= SMALL_DELTA_ROWS
    return PropagateStep(
        relation.name,
        interval,
        mode,
        motion,
        sizes,
        closed_references(below, motion, rows, root, interval),
        sum(rows.values()),
        reason,
        groups_states=plan.groups_states and sum(_size(lower) for lower in below) > SMALL_DELTA_ROWS,
        ahead=applied_next and few,
    )


def _size(relation: Relation) -> int:
    """At most as many rows as all that is stored of it."""
    groups, delta = relation.pins.get(Part.GROUPS), relation.pins[Part.DELTA]
    if groups is not None and groups.through == delta.through:
        return groups.rows
    return sum(pin.rows for part, pin in relation.pins.items() if part is not Part.EXTENT or groups is None)


def _limit_above(rows: int) -> int:
    return next((limit for limit in sorted((FEW_GROUPS, SMALL_SIDE_ROWS)) if rows <= limit), sys.maxsize)


def _motion(
    snapshot: Snapshot, relation: Relation, root: Path, interval: Interval, changes_of: ChangesOf
) -> tuple[Motion, int]:
    if relation.kind is RelationKind.VIEW:
        hidden = plan_of(snapshot, relation).hidden
        rows = sum(file.rows for file in delta_files(stored_as(root, relation, hidden), interval))
        return Motion(changed=rows > 0), rows
    counts = changes_of(relation.name, interval)
    deletes = any(count.deleted for count in counts)
    updates = any(count.deleted and count.updated != 0 for count in counts)
    rows = sum(count.inserted + count.deleted for count in counts)
    return Motion(rows > 0, deletes, updates, one_csn=len(counts) == 1), rows
