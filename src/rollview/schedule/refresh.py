"""Refresh: propagate in dependency order, then apply and publish the chosen views at one csn.

Law: a view is propagated only as far as everything it reads; what fails stops alone, with what reads it, and keeps
its last good extent; the rest is published together.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

from rollview.apply import ExtentsTogether, plan_apply, run_apply
from rollview.catalog import Lease, Part, Relation, Snapshot
from rollview.core.interval import Csn, Interval
from rollview.core.phases import Phases, measured
from rollview.core.states import Policy, ViewMode
from rollview.engine.meter import Meter
from rollview.errors import Corrupt, EngineFailed, LostLease, OutOfReach, RollviewError
from rollview.propagate import RefreshMode
from rollview.relations.reader import Reader
from rollview.relations.versions import same_columns_since
from rollview.results import ExplainedTerm, Progress, Refreshed, Rolled, ViewRefreshed, ViewRolled
from rollview.schedule.selection import views_below
from rollview.schedule.view_steps import Aim, Refresh, note_problem, propagate_view, recompute_view


def lease_name(view: str) -> str:
    return f"relation:{view}"


def refresh(
    work: Refresh,
    names: Sequence[str],
    target: Csn | None,
    *,
    mode: RefreshMode | None = None,
    apply: bool = True,
    seconds: float | None = None,
) -> Refreshed:
    """Bring the views to ``target`` (the newest csn if None). Views below them are propagated as far.

    ``mode``: for all of them, whatever their own properties say. ``seconds``: no step begins later than that, and the
    views are published together as far as all of them have come; 0: one short step of each.
    """
    work.deadline, work.brief = None if seconds is None else time.monotonic() + seconds, seconds == 0
    snapshot = work.catalog.snapshot()
    needed = _with_views_below(snapshot, names)
    with work.catalog.lease(*(lease_name(name) for name in needed)) as lease:
        csn = _target(work.catalog.moment().csn, target)
        try:
            aim = Aim(csn, frozenset(names), mode, apply, goes_on=target is None)
            tasks = {name: partial(_bring, work, lease, aim, snapshot, needed, name) for name in needed}
            work.workers.run(tasks, {name: snapshot.get(name).depends_next for name in needed})
            before = {name: snapshot.get(name).shown.through for name in names}
            now = work.catalog.snapshot()
            further = _gone_further(now, names, csn) if target is None else {}
            together = [name for name in names if name not in further]
            csn = csn if seconds is None else _reached(work, now, together, csn)
            rows = _apply(work, lease, now, together, csn) if apply else {}
            for name, own in further.items():
                now = work.catalog.snapshot()
                rows |= _apply(work, lease, now, [name], own) if apply and own is not None else {}
        except BaseException:
            for opened in work.recomputed.values():
                opened.running.give_up()
            raise
    _raise_failures(work)
    now = work.catalog.snapshot()
    done = tuple(_refreshed(work, now, name, before[name], csn, rows) for name in names)
    return Refreshed(csn, done, tuple(sorted(work.lagging)))


def _bring(work: Refresh, lease: Lease, aim: Aim, snapshot: Snapshot, needed: Sequence[str], name: str) -> None:
    work.on_progress(Progress("propagate", name, needed.index(name), len(needed)))
    with measured(work.phases.setdefault(name, Phases())):
        if work.policies.of(snapshot, snapshot.get(name)) is Policy.SNAPSHOT:
            recompute_view(work, lease, aim, name)
        else:
            propagate_view(work, lease, aim, name)


def _gone_further(now: Snapshot, names: Sequence[str], csn: Csn) -> dict[str, Csn | None]:
    """Views whose sources were quiet only after the csn that all are brought to: nothing can be read of them there.
    Each is shown at its own; what reads it follows with the next refresh, and has None."""
    inside = [view for view in map(now.get, names) if any(one.strictly_inside(csn) for one in view.coarse)]
    return {view.name: mark if (mark := view.pins[Part.DELTA].through) > csn else None for view in inside}


def _reached(work: Refresh, now: Snapshot, names: Sequence[str], target: Csn) -> Csn:
    """As far as all of the views have come, at a csn at which all can be read; those that failed, and those that read
    them, keep nobody back."""
    failed = work.failures.keys() | work.recomputed.keys()
    going = [now.get(name) for name in names if not failed & {name, *(lower.name for lower in now.below(name))}]
    reached = min([target, *(view.pins[Part.DELTA].through for view in going)])
    stretches = [stretch for view in going for stretch in view.coarse]
    while inside := [stretch.after for stretch in stretches if stretch.strictly_inside(reached)]:
        reached = min(inside)
    return reached


def _target(newest: Csn, wanted: Csn | None) -> Csn:
    """A view that is complete beyond the newest csn would leave out what gets those csns later."""
    if wanted is not None and wanted > newest:
        raise OutOfReach(f"Cannot refresh to csn {wanted}: the newest is {newest}.", csn=wanted, newest=newest)
    return newest if wanted is None else wanted


def roll(work: Refresh, names: Sequence[str], target: Csn) -> Rolled:
    """Bring the extents to ``target``, forwards or back, and publish them together; propagates nothing."""
    with work.catalog.lease(*(lease_name(name) for name in names)) as lease:
        reader = work.reader(work.catalog.snapshot())
        steps = plan_apply(reader.snapshot, work.root, names, target)
        for done, step in enumerate(steps):
            work.on_progress(Progress("apply", step.view, done, len(steps)))
        run_apply(reader, work.catalog, lease, steps, work.meters)
        before = {name: reader.snapshot.get(name).shown.through for name in names}
    after = work.catalog.snapshot()
    return Rolled(target, tuple(ViewRolled(name, before[name], target, after.get(name).shown.rows) for name in names))


def _with_views_below(snapshot: Snapshot, names: Sequence[str]) -> tuple[str, ...]:
    needed = set(names)
    for name in names:
        needed |= views_below(snapshot, snapshot.get(name))
    return tuple(view.name for view in snapshot.views() if view.name in needed)


def _apply(work: Refresh, lease: Lease, now: Snapshot, names: Sequence[str], csn: Csn) -> dict[str, int]:
    reader = work.reader(now)
    views = [reader.snapshot.get(name) for name in names]
    ready = [view.name for view in views if view.pins[Part.DELTA].through >= csn >= _floor(work, view)]
    ready = [name for name in ready if name not in work.recomputed]
    ready = [name for name in ready if name not in work.failures and not _reads_stopped(work, reader, name, ready)]
    steps = plan_apply(reader.snapshot, work.root, ready, csn)
    for done, step in enumerate(steps):
        work.expect(step.view, step.expected_seconds)
        work.on_progress(Progress("apply", step.view, done, len(steps)))

    def stop(name: str, error: RollviewError) -> None:
        work.failures[name] = error
        note_problem(work, lease, name, error.message)

    also = tuple(work.recomputed.values())
    if not steps and not also:
        return {}
    about = (reader, work.catalog, lease, work.meters, stop, work.ahead, work.phases, also)
    with ExtentsTogether(*about) as extents:
        work.workers.run({step.view: partial(extents.write, step) for step in steps})
        rows = extents.publish(steps)
    for name in rows:
        if reader.snapshot.get(name).problem is not None:
            note_problem(work, lease, name, None)
    return rows


def _floor(work: Refresh, view: Relation) -> Csn:
    """Of views that are refreshed for a while only, one may be further already, or get other columns on the way."""
    return max(view.pins[Part.EXTENT].through, same_columns_since(view)) if work.deadline is not None else 0


def _reads_stopped(work: Refresh, reader: Reader, name: str, ready: Sequence[str]) -> bool:
    """Whether the view reads one that is stopped; one that is about to be applied says so itself."""
    below = views_below(reader.snapshot, reader.snapshot.get(name)).difference(ready)
    stopped = sorted(lower for lower in below if reader.snapshot.get(lower).problem is not None)
    if stopped:
        work.failures[name] = EngineFailed(f"View '{name}' reads '{stopped[0]}', which is stopped.")
    return bool(stopped)


def _raise_failures(work: Refresh) -> None:
    if not work.failures:
        return
    first = next(iter(work.failures.values()))
    if isinstance(first, LostLease):
        raise first
    kind = Corrupt if any(isinstance(error, Corrupt) for error in work.failures.values()) else EngineFailed
    listed = "; ".join(f"'{name}': {error.message}" for name, error in work.failures.items())
    raise kind(
        f"{len(work.failures)} of the views could not be refreshed. {listed}",
        hint=first.hint or "They keep their last good extent. The other views were published.",
        views=sorted(work.failures),
    ) from first


def _interval(work: Refresh, name: str, before: Csn, csn: Csn) -> Interval:
    if name in work.steps:
        return Interval(work.began[name], work.steps[name].interval.through)
    return Interval(min(before, csn), max(before, csn))


def _refreshed(work: Refresh, now: Snapshot, name: str, before: Csn, csn: Csn, rows: dict[str, int]) -> ViewRefreshed:
    step, usage = work.steps.get(name), work.meters.setdefault(name, Meter()).total()
    recomputed = work.recomputed.get(name)
    told = recomputed.profile["reason"] if recomputed is not None else "nothing to propagate"
    held = now.get(name).pins[Part.EXTENT].rows
    otherwise = ViewMode.INCREMENTAL if recomputed is None else ViewMode.WHOLE
    mode = step.mode.shown if step is not None else otherwise
    return ViewRefreshed(
        name=name,
        interval=_interval(work, name, before, csn),
        mode=mode,
        reason=work.lagging.get(name) or (step.reason if step is not None else told),
        delta_rows=work.added.get(name, 0),
        rows=rows.get(name, held),
        actions=usage.actions,
        seconds=usage.seconds,
        files_written=usage.files_written,
        bytes_written=usage.bytes_written,
        files_read=usage.files_read,
        bytes_read=usage.bytes_read,
        phases=dict(work.phases[name].seconds),
        terms=tuple(ExplainedTerm(term.relation, term.kept, term.reason) for term in work.terms.get(name, ())),
        expected_seconds=work.expected.get(name),
    )
