"""What a propagation step will do, before it does it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rollview.algebra.script import ONE_TASK_ROWS, Motion
from rollview.algebra.summary import FEW_GROUPS, GROUPS
from rollview.algebra.terms import SMALL_SIDE_ROWS
from rollview.algebra.view import Mode
from rollview.catalog import Relation, RelationKind, Snapshot
from rollview.core.interval import Csn, Interval
from rollview.core.phases import phase
from rollview.propagate.choice import PastSteps, RefreshMode, RefreshWork, check_strict, choose, choose_without, mode_of
from rollview.propagate.closed import closed_references
from rollview.propagate.moved import ChangesOf, Moved, moved
from rollview.relations.plans import Circumstances, high_water_mark, plan_of
from rollview.relations.reader import stored_as
from rollview.store.timed import delta_files

SMALL_DELTA_ROWS = 400_000
"""Up to here the deltas are handled in one piece and sent to the executors whole, rather than shuffled."""


@dataclass(frozen=True, slots=True)
class PropagateStep:
    """One view over one interval. Nothing moved: only the mark moves.

    ``work``: the rows in the deltas it reads and in all that it reads, and the csns between which the changes lie.
    """

    view: str
    interval: Interval
    mode: Mode
    motion: Mapping[str, Motion]
    sizes: Mapping[str, int]
    closed: frozenset[tuple[str, str]]
    work: RefreshWork
    reason: str
    groups_states: bool = False
    """The old state of something large is netted or grouped whole on the way."""
    ahead: bool = False
    """Tell the state at the end as well: it is about to be applied, and all groups are looked at anyway."""
    absent: frozenset[str] = frozenset()
    """Relations of which only changes can be read."""
    more: bool = False
    """The view is not where it was wanted after this step: another one follows."""

    @property
    def moves(self) -> bool:
        return any(motion.changed for motion in self.motion.values())

    @property
    def small(self) -> bool:
        return self.work.delta_rows <= SMALL_DELTA_ROWS

    @property
    def shuffles_little(self) -> bool:
        """A few rows are all that moves between executors: no state is grouped whole."""
        return self.small and self.mode is not Mode.WHOLE and not self.groups_states

    def circumstances(self, *, ahead: bool) -> Circumstances:
        """Sizes only as far as they matter, so that the next refresh like this one finds its query written."""
        sizes = ((name, _limit_above(rows)) for name, rows in self.sizes.items())
        return Circumstances(
            frozenset(self.motion.items()), self.small, frozenset(sizes), self.closed, ahead and self.ahead, self.absent
        )


@phase("plan")
def plan_propagate(
    snapshot: Snapshot,
    root: Path,
    name: str,
    target: Csn,
    changes_of: ChangesOf,
    past: PastSteps,
    *,
    mode: RefreshMode | None = None,
    applied_next: bool = False,
) -> PropagateStep | None:
    """The step that brings the view's mark to ``target``, or None if it is there already.

    Where a table that the view reads was copied anew, it is a step up to there, or over that csn alone.
    ``mode``: what is asked for this time, whatever the view's own property says.
    """
    relation = snapshot.get(name)
    below = [snapshot.get(lower) for lower in relation.depends_on]
    after = high_water_mark(snapshot, relation)
    through = min([target, *(high_water_mark(snapshot, lower) for lower in below)])
    if through <= after:
        return None
    plan, wanted = plan_of(snapshot, relation), mode_of(relation, mode)
    check_strict(name, plan, wanted)
    read = [lower for lower in below if lower.name in plan.moved_by]
    interval = _told(read, after, through)
    changes = {lower.name: moved(snapshot, lower, root, interval, changes_of) for lower in read}
    anew = frozenset(lower.name for lower in read if any(csn in interval for csn in lower.replaced))
    motion = {lower: Motion() if lower in anew else change.motion for lower, change in changes.items()}
    sizes = {lower.name: _size(snapshot, lower, root, after) for lower in read}
    work = _work(changes, sizes)
    absent = {lower.name: lower for lower in below if not lower.is_kept or lower.told_from > after}
    choice = choose_without(absent.values(), anew, name, plan, wanted) or choose(plan, wanted, work, past)
    if plan.summary is not None:
        sizes[GROUPS] = _size(snapshot, relation, root, after)
    rows = {lower: change.rows for lower, change in changes.items()}
    few = sizes.get(GROUPS, FEW_GROUPS + 1) <= FEW_GROUPS and work.delta_rows <= SMALL_DELTA_ROWS
    return PropagateStep(
        relation.name,
        interval,
        choice.mode,
        motion,
        sizes,
        closed_references(read, motion, rows, root, interval) if choice.mode is not Mode.WHOLE else frozenset(),
        work,
        choice.reason,
        groups_states=plan.groups_states and work.read_rows > SMALL_DELTA_ROWS,
        ahead=applied_next and few and choice.mode is not Mode.WHOLE and interval.through == through,
        absent=frozenset(absent),
        more=interval.through < through,
    )


def _told(below: Sequence[Relation], after: Csn, through: Csn) -> Interval:
    """As far as all that changed is known, or the one csn at which it is not."""
    untold = sorted(csn for lower in below for csn in lower.replaced if after < csn <= through)
    if not untold:
        return Interval(after, through)
    return Interval(after, max(after + 1, untold[0] - 1))


def _work(changes: Mapping[str, Moved], sizes: Mapping[str, int]) -> RefreshWork:
    csns = [csn for change in changes.values() if change.csns is not None for csn in change.csns]
    rows = sum(change.rows for change in changes.values())
    return RefreshWork(rows, sum(sizes.values()), (min(csns), max(csns)) if csns else None)


def _size(snapshot: Snapshot, relation: Relation, root: Path, at: Csn) -> int:
    """At most so many rows are read of it at a csn: its stored rows, and the changes on the way from there."""
    hidden = plan_of(snapshot, relation).hidden if relation.kind is RelationKind.VIEW else None
    stored = stored_as(root, relation, hidden)
    way = Interval(min(stored.snapshot_csn, at), max(stored.snapshot_csn, at))
    return stored.pins[stored.snapshot_part].rows + sum(file.rows for file in delta_files(stored, way))


def _limit_above(rows: int) -> int:
    return next((limit for limit in sorted((FEW_GROUPS, SMALL_SIDE_ROWS, ONE_TASK_ROWS)) if rows <= limit), sys.maxsize)
