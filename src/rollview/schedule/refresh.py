"""Refresh: propagate in dependency order, then apply and publish the chosen views at one csn.

Law: a view is propagated only as far as everything it reads; what fails stops alone, with what reads it, and keeps
its last good extent; the rest is published together.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rollview.algebra import script
from rollview.apply import plan_apply, run_apply
from rollview.capture.asking import SourceLookup
from rollview.catalog import Catalog, Lease, Part, Pin, Snapshot
from rollview.core.interval import Csn, Interval
from rollview.core.phases import Phases, measured
from rollview.core.states import Policy, ViewMode
from rollview.costs.steps import past_steps
from rollview.engine import session
from rollview.engine.meter import Meter
from rollview.errors import (
    Corrupt,
    EngineFailed,
    EnvironmentFault,
    LostLease,
    OutOfReach,
    Retryable,
    RollviewError,
    SourceStopped,
)
from rollview.propagate import PropagateStep, RefreshMode, plan_propagate, run_propagate
from rollview.propagate.adapt import plan_adapt, run_adapt
from rollview.propagate.asked import stand_ins
from rollview.propagate.recompute import log_recompute, plan_recompute
from rollview.publish.step import OpenStep
from rollview.relations.ahead import Ahead
from rollview.relations.policies import Policies
from rollview.relations.reader import Reader, StandIn
from rollview.relations.versions import before_next_step
from rollview.results import ExplainedTerm, Progress, Refreshed, Rolled, ViewRefreshed, ViewRolled
from rollview.schedule.selection import views_below

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OnProgress = Callable[[Progress], None]


def lease_name(view: str) -> str:
    return f"relation:{view}"


@dataclass(slots=True)
class Refresh:
    """One refresh in progress: what it works on, what it has cost, what went wrong."""

    spark: SparkSession
    root: Path
    catalog: Catalog
    on_progress: OnProgress
    meters: dict[str, Meter] = field(default_factory=dict)
    steps: dict[str, PropagateStep] = field(default_factory=dict)
    began: dict[str, Csn] = field(default_factory=dict)
    expected: dict[str, float] = field(default_factory=dict)
    added: dict[str, int] = field(default_factory=dict)
    ahead: dict[str, Ahead] = field(default_factory=dict)
    terms: dict[str, tuple[script.TermNote, ...]] = field(default_factory=dict)
    phases: dict[str, Phases] = field(default_factory=dict)
    failures: dict[str, RollviewError] = field(default_factory=dict)
    lagging: dict[str, str] = field(default_factory=dict)
    """Views that went no further because a source could not be asked, and why."""
    recomputed: dict[str, OpenStep] = field(default_factory=dict)
    policies: Policies = field(default_factory=Policies)
    deadline: float | None = None

    def expect(self, name: str, seconds: float) -> None:
        self.expected[name] = self.expected.get(name, 0.0) + seconds

    def is_late(self) -> bool:
        return self.deadline is not None and time.monotonic() > self.deadline

    def reader(
        self,
        snapshot: Snapshot,
        meter: Meter | None = None,
        step: PropagateStep | None = None,
        asked: Mapping[str, StandIn] | None = None,
    ) -> Reader:
        """``step``: what it is for. Work on few rows Spark does faster with fewer preparations. ``asked``: rows that
        are read in place of states."""
        spark = self.spark
        if step is not None and step.shuffles_little:
            spark = session.for_few_rows(spark) if step.at_once else session.for_small_work(spark)
        return Reader(spark, self.root, snapshot, meter, asked)


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
    views are published together as far as all of them have come.
    """
    work.deadline = None if seconds is None else time.monotonic() + seconds
    snapshot = work.catalog.snapshot()
    needed = _with_views_below(snapshot, names)
    with work.catalog.lease(*(lease_name(name) for name in needed)) as lease:
        csn = _target(work.catalog.snapshot().moment.csn, target)
        try:
            for done, name in enumerate(needed):
                work.on_progress(Progress("propagate", name, done, len(needed)))
                with measured(work.phases.setdefault(name, Phases())):
                    if work.policies.of(snapshot, snapshot.get(name)) is Policy.SNAPSHOT:
                        _snapshot(work, lease, name, csn, asked=name in names, apply=apply)
                    else:
                        _propagate(work, lease, name, csn, mode=mode, applied_next=apply and name in names)
            before = {name: snapshot.get(name).pins[Part.EXTENT].through for name in names}
            csn = csn if seconds is None else _reached(work, names, csn)
            rows = _apply(work, lease, names, csn) if apply else {}
        except BaseException:
            for opened in work.recomputed.values():
                opened.running.give_up()
            raise
    _raise_failures(work)
    now = work.catalog.snapshot()
    return Refreshed(csn, tuple(_refreshed(work, now, name, before[name], csn, rows) for name in names))


def _reached(work: Refresh, names: Sequence[str], target: Csn) -> Csn:
    """As far as all of the views have come, at a csn at which all can be read; those that failed, and those that read
    them, keep nobody back."""
    now = work.catalog.snapshot()
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
        before = {name: reader.snapshot.get(name).pins[Part.EXTENT].through for name in names}
    after = work.catalog.snapshot()
    return Rolled(
        target, tuple(ViewRolled(name, before[name], target, after.get(name).pins[Part.EXTENT].rows) for name in names)
    )


def _with_views_below(snapshot: Snapshot, names: Sequence[str]) -> tuple[str, ...]:
    needed = set(names)
    for name in names:
        needed |= views_below(snapshot, snapshot.get(name))
    return tuple(view.name for view in snapshot.views() if view.name in needed)


def _propagate(
    work: Refresh, lease: Lease, name: str, csn: Csn, *, mode: RefreshMode | None, applied_next: bool
) -> None:
    try:
        while _step(work, lease, name, csn, mode=mode, applied_next=applied_next) and not work.is_late():
            pass
    except (EngineFailed, Corrupt) as error:
        work.failures[name] = error
        _note_problem(work, lease, name, error.message)


def _snapshot(work: Refresh, lease: Lease, name: str, csn: Csn, *, asked: bool, apply: bool) -> None:
    """A view that is recomputed when it is asked for, and not because another reads it. Where one does, or a
    subscriber, the difference becomes its delta, so that those can follow."""
    snapshot = work.catalog.snapshot()
    if not asked:
        return
    if (
        snapshot.get(name).pending
        or snapshot.readers(name)
        or any(one.view == name for one in work.catalog.subscribers())
    ):
        _propagate(work, lease, name, csn, mode=RefreshMode.RECOMPUTE, applied_next=apply)
        return
    at = plan_recompute(snapshot, name, csn) if apply else None
    if at is None:
        return
    meter = work.meters.setdefault(name, Meter())
    try:
        work.recomputed[name] = log_recompute(work.reader(snapshot, meter), work.catalog, lease, name, at, meter)
    except (EngineFailed, Corrupt) as error:
        work.failures[name] = error
        _note_problem(work, lease, name, error.message)


def _step(work: Refresh, lease: Lease, name: str, csn: Csn, *, mode: RefreshMode | None, applied_next: bool) -> bool:
    """Whether another step follows."""
    snapshot = before_next_step(work.catalog.snapshot(), name)
    meter = work.meters.setdefault(name, Meter())
    if any(lower in work.failures for lower in snapshot.get(name).depends_next):
        return False
    adapt = plan_adapt(work.catalog.snapshot(), name, csn)
    if adapt is not None:
        run_adapt(work.reader(work.catalog.snapshot(), meter), work.catalog, lease, adapt, meter)
        work.began.setdefault(name, adapt.at - 1)
        return True
    changes, past = work.catalog.changes, partial(past_steps, work.catalog, name)
    step = plan_propagate(snapshot, work.root, name, csn, changes, past, mode=mode, applied_next=applied_next)
    if step is None:
        return False
    with closing(SourceLookup(work.catalog, work.root)) as lookup:
        try:
            step, asked = _asked(work, snapshot, step, lookup)
        except (Retryable, SourceStopped, EnvironmentFault) as error:
            # The view stays where it is, and the next refresh asks again.
            work.lagging[name] = error.message
            lookup.release(error.message)
            return False
        work.steps[name] = step
        work.began.setdefault(name, step.interval.after)
        work.expect(name, step.expected_seconds)
        reader = work.reader(snapshot, meter, step, asked)
        done = run_propagate(reader, work.catalog, lease, step, meter)
    work.added[name], work.terms[name] = work.added.get(name, 0) + done.added, done.terms
    if done.ahead is not None:
        work.ahead[name] = done.ahead
    if reader.snapshot.get(name).problem is not None and _failed_in(work, name) == "propagate":
        _note_problem(work, lease, name, None)
    return step.more


def _asked(
    work: Refresh, snapshot: Snapshot, step: PropagateStep, lookup: SourceLookup
) -> tuple[PropagateStep, Mapping[str, StandIn]]:
    """What the step reads in place of states that are not here; how much that is, is known only now."""
    if not step.asked or not step.moves:
        return step, {}
    found = stand_ins(work.reader(snapshot), step, lookup)
    lookup.release()
    sizes = {name: one.rows.num_rows for name, one in found.items() if one.place is None}
    return replace(step, sizes={**step.sizes, **sizes}), found


def _failed_in(work: Refresh, name: str) -> str | None:
    """The kind of the step in which a stopped view failed."""
    return next((step.kind for step in work.catalog.steps(name, 1, "failed")), None)


def _note_problem(work: Refresh, lease: Lease, name: str, problem: str | None) -> None:
    with work.catalog.write(lease) as writer:
        writer.set_problem(name, problem)


def _apply(work: Refresh, lease: Lease, names: Sequence[str], csn: Csn) -> dict[str, int]:
    reader = work.reader(work.catalog.snapshot())
    pins = {name: reader.snapshot.get(name).pins for name in names}
    # Of views that are refreshed for a while only, one may be further already.
    ready = [name for name in names if pins[name][Part.DELTA].through >= csn >= _floor(work, pins[name])]
    ready = [name for name in ready if name not in work.recomputed]
    ready = [name for name in ready if name not in work.failures and not _reads_stopped(work, reader, name, ready)]
    steps = plan_apply(reader.snapshot, work.root, ready, csn)
    for done, step in enumerate(steps):
        work.expect(step.view, step.expected_seconds)
        work.on_progress(Progress("apply", step.view, done, len(steps)))

    def stop(name: str, error: RollviewError) -> None:
        work.failures[name] = error
        _note_problem(work, lease, name, error.message)

    also = tuple(work.recomputed.values())
    if not steps and not also:
        return {}
    rows = run_apply(reader, work.catalog, lease, steps, work.meters, stop, work.ahead, work.phases, also)
    for name in rows:
        if reader.snapshot.get(name).problem is not None:
            _note_problem(work, lease, name, None)
    return rows


def _floor(work: Refresh, pins: Mapping[Part, Pin]) -> Csn:
    return pins[Part.EXTENT].through if work.deadline is not None else 0


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
