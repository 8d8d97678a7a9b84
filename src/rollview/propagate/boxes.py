"""The next box of a view that is propagated table by table, or of one whose tables have come to different csns.

Law: a box changes the place of one table. Tables without changes move for nothing. Rows of a table that is not copied
are asked for as of its place, so its box needs no compensating query either. As in ``plan``, no row is read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from rollview.algebra.view import ViewPlan
from rollview.catalog import Relation, Snapshot
from rollview.core.interval import Csn, Interval
from rollview.core.phases import phase
from rollview.costs.refreshing import PastSteps, RefreshWork, refresh_seconds
from rollview.costs.sizes import size_at
from rollview.errors import EngineFailed, UsageError
from rollview.propagate.bounds import StepBound, StepLimit, bounded, by_csn, step_limit
from rollview.propagate.plan import Box, PropagateStep
from rollview.relations.algorithm import max_rows
from rollview.relations.marks import high_water_mark
from rollview.relations.moved import ChangesOf, Moved, moved
from rollview.relations.plans import plan_of, reads_rows_of
from rollview.relations.rolling import places_of

_FIRST_LOOK = 1_000
"""So many csns are looked at first for the next change of a table."""


@phase("plan")
def plan_box(
    snapshot: Snapshot,
    root: Path,
    name: str,
    target: Csn,
    changes_of: ChangesOf,
    past: PastSteps,
    due: Collection[str] | None = None,
    *,
    brief: bool = False,
) -> PropagateStep | None:
    """The next step that brings ``due`` tables, or all of them, to ``target``; None if they are there."""
    view = snapshot.get(name)
    plan, mark = plan_of(snapshot, view), high_water_mark(snapshot, view)
    newest = snapshot.moment.csn if view.until is None else min(snapshot.moment.csn, view.until - 1)
    through = min(target, newest)
    before = places_of(snapshot, view)
    _check_told(snapshot, name, before, mark)
    places = {table: _free(table, csn, newest, changes_of) for table, csn in before.items()}
    wanted = [table for table in (before if due is None else due) if places.get(table, through) < through]
    if not wanted:
        return None if places == before else _free_step(name, mark, plan, before, places)
    table = min(wanted, key=lambda one: (places[one], one))
    limit = step_limit(plan, past(), brief=brief)
    limit = replace(limit, rows=_rows_said(view, limit.rows))
    step = _bounded(table, Interval(places[table], through), changes_of, limit)
    intervals = read_over(places, table, step.interval)
    changes = {one: moved(snapshot, snapshot.get(one), root, over, changes_of) for one, over in intervals.items()}
    sizes = {one: size_at(snapshot, root, snapshot.get(one), over.after).most for one, over in intervals.items()}
    after = {**places, table: step.interval.through}
    work = _work(changes, sizes)
    return PropagateStep(
        name,
        Interval(mark, min(after.values())),
        plan.mode,
        {one: change.motion for one, change in changes.items()},
        sizes,
        work,
        f"changes of {table} over {step.interval}",
        is_linear=True,
        more=len(wanted) > 1 or step.interval.through < through,
        rows={one: change.rows for one, change in changes.items()},
        commits=step.commits,
        brief=brief,
        expected_seconds=refresh_seconds(work, past()).by_deltas,
        places=after,
        left=before,
        box=Box(table, intervals),
        asked=frozenset(one for one in places if not snapshot.get(one).is_kept) & reads_rows_of(snapshot, view),
    )


def _rows_said(view: Relation, otherwise: int) -> int:
    """A view whose places differ goes on, whatever its properties say by then."""
    with suppress(UsageError):
        return otherwise if view.definition is None else max_rows(view.definition.properties, otherwise)
    return otherwise


def came_anew(snapshot: Snapshot, name: str) -> bool:
    """Whether all rows of a table came anew behind the view's mark: what changed then is not known."""
    view = snapshot.get(name)
    mark = high_water_mark(snapshot, view)
    return any(snapshot.get(table).readable_from > mark for table in view.depends_on)


def _check_told(snapshot: Snapshot, name: str, tables: Collection[str], mark: Csn) -> None:
    for table in map(snapshot.get, tables):
        if table.readable_from > mark:
            raise EngineFailed(
                f"View '{name}' cannot go on table by table: all rows of table '{table.name}' came anew at csn "
                f"{table.readable_from}.",
                hint="Write CREATE OR REPLACE MATERIALIZED VIEW to have it anew.",
                name=name,
                csn=mark,
            )


def _free(table: str, place: Csn, newest: Csn, changes_of: ChangesOf) -> Csn:
    """As far as the table did not change."""
    if place >= newest:
        return place
    coming = by_csn(Interval(place, newest), lambda window: changes_of(table, window), _FIRST_LOOK)
    first = next((csn for csn, rows in coming if rows), None)
    return newest if first is None else first - 1


def _bounded(table: str, wanted: Interval, changes_of: ChangesOf, limit: StepLimit) -> StepBound:
    return bounded(wanted, lambda window: changes_of(table, window), limit)


def read_over(places: Mapping[str, Csn], moving: str, over: Interval) -> dict[str, Interval]:
    """The interval of each table in the box of one: what came to another behind the box's beginning carries its csn,
    and all else of it is simply there."""
    seen = {table: Interval(min(over.after, place), place) for table, place in places.items()}
    return {**seen, moving: over}


def _work(changes: Mapping[str, Moved], sizes: Mapping[str, int]) -> RefreshWork:
    csns = [csn for change in changes.values() if change.csns is not None for csn in change.csns]
    rows = sum(change.rows for change in changes.values())
    return RefreshWork(rows, sum(sizes.values()), (min(csns), max(csns)) if csns else None)


def _free_step(
    name: str, mark: Csn, plan: ViewPlan, before: Mapping[str, Csn], places: Mapping[str, Csn]
) -> PropagateStep:
    nothing = RefreshWork(0, 0, None)
    reached = Interval(mark, min(places.values()))
    return PropagateStep(name, reached, plan.mode, {}, {}, nothing, "no table changed", places=places, left=before)
