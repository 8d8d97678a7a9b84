"""What a propagation step will do, before it does it.

Law: only the catalog and the lists of files in Delta logs are looked at, never a row.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path

from rollview.algebra.script import AT_ONCE_ROWS, ONE_TASK_ROWS, Motion
from rollview.algebra.summary import FEW_GROUPS, GROUPS
from rollview.algebra.terms import SMALL_SIDE_ROWS
from rollview.algebra.view import Mode, ViewPlan
from rollview.catalog import ChangeCount, OpenQueries, Relation, RelationKind, Snapshot
from rollview.core.interval import Csn, Interval
from rollview.core.phases import phase
from rollview.costs.refreshing import PastSteps, RefreshWork, refresh_seconds
from rollview.costs.sizes import size_at
from rollview.errors import OutOfReach
from rollview.propagate.bounds import FEWEST_COMMITS, StepBound, StepLimit, bounded, step_limit
from rollview.propagate.choice import RefreshMode, check_strict, choose, choose_without, mode_of
from rollview.relations.algorithm import is_compensated, waits_for_quiet
from rollview.relations.marks import told_at
from rollview.relations.moved import ChangesOf, Moved, moved
from rollview.relations.plans import (
    Circumstances,
    ClosedReferences,
    high_water_mark,
    keeps_refreshes_only,
    plan_of,
    reads_rows_of,
)
from rollview.relations.rolling import check_even, turns_of
from rollview.relations.shared import changes_from
from rollview.relations.versions import began_anew

SMALL_DELTA_ROWS = 400_000
"""Up to here the deltas are handled in one piece and sent to the executors whole, rather than shuffled."""
MOST_ASKED = 500
"""Commits of one step of a view whose algorithm asks for each of them: its sources are held so long."""
MANY_CSNS = 24
"""From here on it pays to keep track of the lives of rows, rather than to look at all rows of a key at each csn."""


@dataclass(frozen=True, slots=True)
class Box:
    """The changes of one table, and the interval over which each table is read: up to its end the rows are there,
    those behind its beginning with their csns."""

    table: str
    intervals: Mapping[str, Interval]


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
    work: RefreshWork
    reason: str
    groups_states: bool = False
    """The old state of something large is netted or grouped whole on the way."""
    ahead: bool = False
    """Tell the state at the end as well: it is about to be applied, and all groups are looked at anyway."""
    absent: frozenset[str] = frozenset()
    """Relations of which only changes can be read."""
    asked: frozenset[str] = frozenset()
    """Tables whose rows are not here, and are asked for at their sources."""
    many: bool = False
    """The changes may lie at so many csns that a key should not be looked at anew at each of them."""
    rows: Mapping[str, int] = field(default_factory=dict)
    """In the delta of each relation below."""
    is_linear: bool = False
    """No operator but the groups at the top looks at whole keys again."""
    more: bool = False
    """The view is not where it was wanted after this step: another one follows."""
    merged: bool = False
    """All its changes become one, at the csn of the last: nobody asks for a csn inside."""
    commits: int = 0
    """How many commits that changed something it takes; 0 where nobody counted."""
    brief: bool = False
    """It was to be short, whatever the view's history allows."""
    expected_seconds: float = 0.0
    places: Mapping[str, Csn] = field(default_factory=dict)
    """How far tables are then, of a view that is or was propagated table by table."""
    left: Mapping[str, Csn] = field(default_factory=dict)
    """How far they were before, if it takes the changes of one table alone, or of none."""
    queries: Mapping[str, OpenQueries] | None = None
    """By table, those that brought them there and may have to be compensated."""
    box: Box | None = None
    """It takes the changes of one table alone; ``interval`` is of the mark, which may stay where it is."""

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

    @property
    def at_once(self) -> bool:
        """All that is read is small, and the view is linear: no query costs less than the one that reads all of it."""
        small = all(self._rows_of(name) <= AT_ONCE_ROWS for name in self.motion)
        return small and self.is_linear and not self.absent and self.box is None

    def interval_of(self, name: str) -> Interval:
        """Over which a relation below is read."""
        return self.interval if self.box is None else self.box.intervals[name]

    def _rows_of(self, name: str) -> int:
        """At most so many are read of a relation, changes included."""
        return self.sizes.get(name, sys.maxsize) + self.rows.get(name, 0)

    def _limit_of(self, name: str) -> int:
        """Only what is small with its changes is small."""
        size = self.sizes[name]
        return _limit_above(size if self._rows_of(name) <= AT_ONCE_ROWS else max(size, AT_ONCE_ROWS + 1))

    def circumstances(self, *, ahead: bool, closed: ClosedReferences = frozenset()) -> Circumstances:
        """Sizes only as far as they matter, so that the next refresh like this one finds its query written.

        Where all is small, one query serves whatever moved. ``closed``: what the deltas' own rows tell, and is
        therefore not planned but looked up when the step is run.
        """
        sizes = ((name, self._limit_of(name)) for name in self.sizes)
        motion = dict.fromkeys(self.motion, Motion()) if self.at_once else self.motion
        return Circumstances(
            frozenset(motion.items()),
            self.small,
            frozenset(sizes),
            closed,
            ahead and self.ahead,
            self.absent,
            self.many,
            self.box.table if self.box is not None else None,
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
    brief: bool = False,
) -> PropagateStep | None:
    """The next step towards ``target``, or None if the view's mark is there already. ``snapshot``: as views are defined
    where the step begins.

    It takes so much work as one step should; where a table that the view reads was copied anew, it ends there, or is
    over that csn alone.
    ``mode``: what is asked for this time, whatever the view's own property says.
    """
    asked = _view_to_move(snapshot, name, target, mode)
    if asked is None:
        return None
    check_even(snapshot, asked.relation, "propagated in one step")
    past = cache(past)
    step = _next_step(snapshot, asked, changes_of, past, brief=brief)
    reads = _read_over(snapshot, root, asked, step.interval, changes_of)
    expected = refresh_seconds(reads.work, past())
    choice = choose_without(reads.absent, reads.anew, name, asked.plan, asked.mode) or choose(
        asked.plan, asked.mode, reads.work, expected, merges=asked.merges
    )
    is_last = step.interval.through == asked.through
    return PropagateStep(
        asked.relation.name,
        step.interval,
        choice.mode,
        reads.motion,
        reads.sizes,
        reads.work,
        choice.reason,
        groups_states=asked.plan.groups_states and reads.work.read_rows > SMALL_DELTA_ROWS,
        ahead=applied_next and not asked.merges and reads.few_groups and choice.mode is not Mode.WHOLE and is_last,
        absent=_names(reads.absent) - reads.asked,
        asked=reads.asked if choice.mode is not Mode.WHOLE else _names(reads.missing(step.interval.through)),
        many=(asked.plan.groups_states or asked.plan.joins_several) and _spread(reads.work) >= MANY_CSNS,
        is_linear=asked.plan.mode is not Mode.WHOLE and not asked.plan.groups_states,
        more=not is_last or asked.is_cut,
        rows={lower: change.rows for lower, change in reads.changes.items()},
        commits=step.commits,
        brief=brief,
        merged=asked.merges,
        expected_seconds=expected.recomputed if choice.mode is Mode.WHOLE else expected.by_deltas,
        places=dict.fromkeys(_moved_apart(asked.relation), step.interval.through),
    )


def _moved_apart(view: Relation) -> Iterable[str]:
    """Tables that have turns of their own, or had: a step that moves all of them counts as the turn of each."""
    return view.depends_on if turns_of(view) is not None else view.places


@dataclass(frozen=True, slots=True)
class _ViewToMove:
    """A view that is to go from ``after`` to ``through``. ``read``: what it reads of ``below``, and moves it.
    ``is_cut``: it could go further, but for a definition that begins or ends there."""

    relation: Relation
    plan: ViewPlan
    mode: RefreshMode
    below: tuple[Relation, ...]
    read: tuple[Relation, ...]
    after: Csn
    through: Csn
    states: frozenset[str]
    """Relations of which it may read rows that did not change."""
    is_cut: bool = False

    @property
    def merges(self) -> bool:
        return keeps_refreshes_only(self.relation)


def _view_to_move(snapshot: Snapshot, name: str, target: Csn, mode: RefreshMode | None) -> _ViewToMove | None:
    relation = snapshot.get(name)
    below = tuple(snapshot.get(lower) for lower in relation.depends_on)
    after = high_water_mark(snapshot, relation)
    through = min([target, *(high_water_mark(snapshot, lower) for lower in below)])
    told_by = [changes_from(snapshot, lower) for lower in below]
    ends = [one.until - 1 for one in (relation, *told_by) if one.until is not None]
    # The rows before are of another definition: what changes with it is a step of its own.
    begins = [after + 1 for one in told_by if began_anew(one) == after + 1]
    is_cut = any(csn < target for csn in (*ends, *begins))
    through = told_at(below, min([through, *ends, *begins]))
    if through <= after:
        return None
    plan, wanted = plan_of(snapshot, relation), mode_of(relation, mode)
    check_strict(name, plan, wanted)
    read = tuple(lower for lower in below if lower.name in plan.moved_by)
    states = reads_rows_of(snapshot, relation)
    return _ViewToMove(relation, plan, wanted, below, read, after, through, states, is_cut)


def _next_step(
    snapshot: Snapshot, asked: _ViewToMove, changes_of: ChangesOf, past: PastSteps, *, brief: bool
) -> StepBound:
    known = _known(asked.read, asked.after, asked.through)
    anew = _askable(asked)
    if anew is not None:
        return StepBound(anew, 0)
    # Answers show all that is captured: a view that waits for quiet sources cannot stop before that.
    if asked.plan.mode is Mode.WHOLE or asked.mode is RefreshMode.RECOMPUTE or _waits_for_quiet(asked):
        return StepBound(known, 0)
    limit = partial(_limit, asked, past, brief=brief)
    return _one_step(snapshot, asked.read, known, changes_of, limit)


def _limit(asked: _ViewToMove, past: PastSteps, *, brief: bool) -> StepLimit:
    limit = step_limit(asked.plan, past(), brief=brief)
    asks_one_by_one = _asks(asked) and is_compensated(asked.relation)
    return StepLimit(min(limit.commits, MOST_ASKED)) if asks_one_by_one else limit


def _waits_for_quiet(asked: _ViewToMove) -> bool:
    return _asks(asked) and waits_for_quiet(asked.relation)


def _asks(asked: _ViewToMove) -> bool:
    return any(not lower.is_kept for lower in asked.below)


@dataclass(frozen=True, slots=True)
class _Reads:
    """What a step reads. ``anew``: relations all rows of which came anew; ``absent``: those whose rows are not here;
    ``asked``: those of them whose rows it may need."""

    changes: Mapping[str, Moved]
    sizes: Mapping[str, int]
    work: RefreshWork
    anew: frozenset[str]
    absent: tuple[Relation, ...]
    asked: frozenset[str]
    below: tuple[Relation, ...]

    def missing(self, at: Csn) -> tuple[Relation, ...]:
        """Tables whose rows at a csn are not here."""
        return tuple(lower for lower in self.below if not lower.is_kept or lower.readable_from > at)

    @property
    def motion(self) -> Mapping[str, Motion]:
        return {name: Motion() if name in self.anew else change.motion for name, change in self.changes.items()}

    @property
    def few_groups(self) -> bool:
        return self.sizes.get(GROUPS, FEW_GROUPS + 1) <= FEW_GROUPS and self.work.delta_rows <= SMALL_DELTA_ROWS


def _read_over(snapshot: Snapshot, root: Path, asked: _ViewToMove, interval: Interval, changes_of: ChangesOf) -> _Reads:
    changes = {lower.name: moved(snapshot, lower, root, interval, changes_of) for lower in asked.read}
    sizes = {lower.name: size_at(snapshot, root, lower, asked.after).most for lower in asked.read}
    replaced = [csn for lower in asked.read for csn in lower.replaced if csn in interval]
    work = _work(changes, sizes, replaced)
    if asked.plan.summary is not None:
        sizes[GROUPS] = size_at(snapshot, root, asked.relation, asked.after).most
    anew = frozenset(lower.name for lower in asked.read if any(csn in interval for csn in lower.replaced))
    absent = tuple(lower for lower in asked.below if not lower.is_kept or lower.readable_from > asked.after)
    return _Reads(changes, sizes, work, anew, absent, _names(absent) & asked.states, asked.below)


def _names(relations: Iterable[Relation]) -> frozenset[str]:
    return frozenset(relation.name for relation in relations)


def _askable(asked: _ViewToMove) -> Interval | None:
    """Where all rows of an asked table came anew, older ones are gone from its source too: in one step to there. That
    step reads all rows of every table, so it ends where they can be read."""
    tables = [lower for lower in asked.below if lower.kind is RelationKind.TABLE]
    anew = {lower.name: [csn for csn in lower.replaced if csn > asked.after] for lower in tables}
    if not any(anew[name] for name in anew.keys() & asked.states):
        return None
    ends = [csn for csns in anew.values() for csn in csns]
    if max(ends) <= asked.through:
        return Interval(asked.after, max(ends))
    raise OutOfReach(
        f"View '{asked.relation.name}' cannot be brought to csn {asked.through}: rows of what it reads came anew at "
        f"csn {max(ends)}, and older ones are not here.",
        hint=f"Refresh it to csn {max(ends)} or later.",
        name=asked.relation.name,
        csn=asked.through,
    )


def _known(below: Sequence[Relation], after: Csn, through: Csn) -> Interval:
    """As far as all that changed is known, or the one csn at which it is not."""
    replaced = sorted(csn for lower in below for csn in lower.replaced if after < csn <= through)
    if not replaced:
        return Interval(after, through)
    return Interval(after, max(after + 1, replaced[0] - 1))


def _one_step(
    snapshot: Snapshot,
    read: Sequence[Relation],
    wanted: Interval,
    changes_of: ChangesOf,
    limit: Callable[[], StepLimit],
) -> StepBound:
    if wanted.through - wanted.after <= FEWEST_COMMITS:
        return StepBound(wanted, 0)
    tables = {table for lower in read for table in snapshot.tables_of(lower)}

    def changes_in(window: Interval) -> list[ChangeCount]:
        return [count for table in tables for count in changes_of(table, window)]

    step = bounded(wanted, changes_in, limit())
    end = _readable(read, step.interval.through, wanted.through)
    return StepBound(Interval(wanted.after, end), step.commits)


def _readable(read: Sequence[Relation], csn: Csn, through: Csn) -> Csn:
    """The first csn from here on at which nothing that is read is inside a coarse stretch."""
    inside = [stretch for lower in read for stretch in lower.coarse if stretch.strictly_inside(csn)]
    return csn if csn >= through or not inside else _readable(read, min(through, inside[0].through), through)


def _work(changes: Mapping[str, Moved], sizes: Mapping[str, int], replaced: Sequence[Csn]) -> RefreshWork:
    """``replaced``: csns at which all rows of something came anew, be they none."""
    csns = [*replaced, *(csn for change in changes.values() if change.csns is not None for csn in change.csns)]
    rows = sum(change.rows for change in changes.values())
    return RefreshWork(rows, sum(sizes.values()), (min(csns), max(csns)) if csns else None)


def _spread(work: RefreshWork) -> int:
    """At most so many csns lie between the first and the last change."""
    return work.csns[1] - work.csns[0] if work.csns is not None else 0


_LIMITS = {AT_ONCE_ROWS, FEW_GROUPS, SMALL_SIDE_ROWS, ONE_TASK_ROWS}


def _limit_above(rows: int) -> int:
    return next((limit for limit in sorted(_LIMITS) if rows <= limit), sys.maxsize)
