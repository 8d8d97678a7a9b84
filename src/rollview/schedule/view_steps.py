"""One view, step by step towards a csn.

Law: steps are published in the order of their csns, each with its mark. Those that read nothing of the view itself may
be computed by other workers before the ones below them are published, also while the view gets the rows of another
definition at the csn before them; if one fails, those after it are thrown away. A step is published only where the view
has the definition that it was computed by, and ends where it begins; otherwise it is done again.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rollview.algebra import script
from rollview.algebra.view import Mode
from rollview.capture.asking import SourceLookup
from rollview.capture.raw_answers import RawLookup
from rollview.catalog import Catalog, Lease, Part, Snapshot
from rollview.core.interval import Csn, Interval
from rollview.core.phases import Phases, add_phases, measured
from rollview.costs.steps import past_steps
from rollview.engine import session
from rollview.engine.meter import Meter
from rollview.errors import Corrupt, EngineFailed, EnvironmentFault, Retryable, RollviewError, SourceStopped, StaleStep
from rollview.propagate import PropagateStep, RefreshMode, plan_propagate
from rollview.propagate.adapt import AdaptStep, adapted, plan_adapt, run_adapt
from rollview.propagate.asked import stand_ins
from rollview.propagate.boxes import came_anew, plan_box
from rollview.propagate.compensated import told_delta
from rollview.propagate.queries import queried_delta, rolled_delta
from rollview.propagate.recompute import log_recompute, plan_recompute
from rollview.propagate.run import Computed, Propagated, compute_propagate, publish_propagate
from rollview.publish.following import as_published, followers
from rollview.publish.step import LoggedVersion, OpenStep, Shown
from rollview.relations.ahead import Ahead
from rollview.relations.algorithm import is_by_queries, is_compensated, publish_within
from rollview.relations.marks import high_water_mark
from rollview.relations.open_queries import goes_by_queries, newest_seen
from rollview.relations.plans import plan_of
from rollview.relations.policies import Policies
from rollview.relations.reader import Reader, StandIn
from rollview.relations.rolling import is_uneven, turns_of
from rollview.relations.versions import before_next_step, redefined
from rollview.results import Progress
from rollview.schedule.workers import Begun, Workers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OnProgress = Callable[[Progress], None]

_MOST_STALE = 3
"""So often are steps begun again that another process, or a user, has made stale."""


@dataclass(slots=True)
class Refresh:
    """One refresh in progress: what it works on, what it has cost, what went wrong. By view, so that several threads
    may work on several views."""

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
    takes: bool = False
    """What sources have committed may get csns on the way, because no source waits for another."""
    deadline: float | None = None
    brief: bool = False
    """One short step of each view, whatever its history allows."""
    parallel: int = 1
    due: Mapping[str, frozenset[str]] | None = None
    """Tables whose changes have their turn, of views that go table by table; None: all of them."""

    @property
    def workers(self) -> Workers:
        return Workers(self.spark, self.parallel)

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


@dataclass(frozen=True, slots=True)
class Aim:
    """Where a refresh goes: ``mode`` and ``apply`` are those of the views that were ``asked`` for."""

    csn: Csn
    asked: frozenset[str]
    mode: RefreshMode | None
    apply: bool
    goes_on: bool = False
    """To the newest csn, whichever that is by then."""


def propagate_view(work: Refresh, lease: Lease, aim: Aim, name: str) -> None:
    """As far as what it reads has come. If it fails it stops there, and so does what reads it."""
    snapshot = work.catalog.snapshot()
    if any(lower in work.failures for lower in snapshot.get(name).depends_next):
        return
    try:
        if work.due is not None and name not in work.due and turns_of(snapshot.get(name)):
            return
        _ViewSteps(work, lease, aim, name, work.meters.setdefault(name, Meter()), snapshot).run()
    except (EngineFailed, Corrupt) as error:
        _stop(work, lease, name, error)


def recompute_view(work: Refresh, lease: Lease, aim: Aim, name: str) -> None:
    """A view that is recomputed when it is asked for, and not because another reads it. Where one does, or a
    subscriber, the difference becomes its delta, so that those can follow."""
    snapshot = work.catalog.snapshot()
    if name not in aim.asked:
        return
    is_read = snapshot.readers(name) or any(one.view == name for one in work.catalog.subscribers())
    if is_read or snapshot.get(name).pending:
        propagate_view(work, lease, replace(aim, mode=RefreshMode.RECOMPUTE), name)
        return
    at = plan_recompute(snapshot, name, aim.csn) if aim.apply else None
    if at is None:
        return
    meter = work.meters.setdefault(name, Meter())
    try:
        work.recomputed[name] = log_recompute(work.reader(snapshot, meter), work.catalog, lease, name, at, meter)
    except (EngineFailed, Corrupt) as error:
        _stop(work, lease, name, error)


def note_problem(work: Refresh, lease: Lease, name: str, problem: str | None) -> None:
    with work.catalog.write(lease) as writer:
        writer.set_problem(name, problem)


def _stop(work: Refresh, lease: Lease, name: str, error: RollviewError) -> None:
    work.failures[name] = error
    note_problem(work, lease, name, error.message)


@dataclass(slots=True)
class _ViewSteps:
    """``coming``: steps that are planned and not published, one after another; ``last``: the last that was planned.
    ``catalog``: in it the view is where the first of them begins; ``snapshot``: the same with the view as it is defined
    from there on, to the end if it ``keeps_definition``."""

    work: Refresh
    lease: Lease
    aim: Aim
    name: str
    meter: Meter
    catalog: Snapshot
    snapshot: Snapshot = field(init=False)
    keeps_definition: bool = True
    has_begun: bool = False
    last: PropagateStep | None = None
    stale: int = 0
    coming: deque[Begun[tuple[Computed, Phases] | None]] = field(default_factory=deque)

    def run(self) -> None:
        try:
            self._look_at(self.catalog)
            while not self._is_over() and self._take_step():
                pass
        except BaseException:
            self._throw_away()
            raise

    def _take_step(self) -> bool:
        """Whether the view went on, or what was computed of it has to be done again."""
        try:
            if not self._adapt() and not self._plan():
                return False
            self.has_begun = True
            if self.coming:
                self._publish_first()
        except StaleStep:
            self.stale += 1
            if self.stale > _MOST_STALE:
                raise
            self._begin_again()
        return True

    def _begin_again(self) -> None:
        """What was computed for a view that is not there any more is thrown away."""
        self._throw_away()
        self.coming.clear()
        self.last = None
        self._look_at(self.work.catalog.snapshot())

    def _look_at(self, catalog: Snapshot) -> None:
        view = catalog.get(self.name)
        mark = high_water_mark(catalog, view)
        self.keeps_definition = all(csn <= mark for csn in redefined(catalog, view))
        self.catalog, self.snapshot = catalog, before_next_step(catalog, self.name)

    def _is_over(self) -> bool:
        """Whether nothing follows what was published: the view has arrived, or it is late."""
        if self.coming or not self.has_begun:
            return False
        return self.name in self.work.lagging or self.work.is_late() or (self.last is not None and not self.last.more)

    def _adapt(self) -> bool:
        """Whether the view got the rows of its next definition, for which all steps before it are published."""
        step = None if self.coming else plan_adapt(self.catalog, self.name, self.aim.csn)
        if step is None:
            return False
        adapting = self.work.workers.begin(partial(self._run_adapt, step, self.catalog))
        if self.work.parallel > 1:
            self._begin_beyond(step)
        add_phases(self.work.phases[self.name], adapting.result())
        self.work.began.setdefault(self.name, step.at - 1)
        self._look_at(self.work.catalog.snapshot())
        return True

    def _run_adapt(self, step: AdaptStep, catalog: Snapshot) -> Phases:
        took = Phases()
        with measured(took):
            run_adapt(self.work.reader(catalog, self.meter), self.work.catalog, self.lease, step, self.meter)
        return took

    def _begin_beyond(self, step: AdaptStep) -> None:
        """What may be computed of the csns after the view's next definition while it gets its rows."""
        if any(csn > step.at for csn in redefined(self.catalog, self.catalog.get(self.name))):
            return
        self._look_at(adapted(self.catalog, step))
        while self._goes_on() and (following := self._next()) is not None and not self._reads_itself(following):
            self._begin(following)

    def _plan(self) -> bool:
        """Begin what may be computed now. Whether anything is to be published."""
        while self._goes_on() and (step := self._next()) is not None:
            if self.coming and self._reads_itself(step):
                break
            self._begin(step)
        return bool(self.coming)

    def _begin(self, step: PropagateStep) -> None:
        self.last = step
        self.coming.append(self.work.workers.begin(partial(self._compute, step, self.snapshot)))

    def _goes_on(self) -> bool:
        """Whether another step may be planned before the first of those that are coming is published."""
        if self.last is None:
            return True
        if not self.last.more or self.work.is_late():
            return False
        if not self.coming:
            return True
        return len(self.coming) < self.work.parallel and self.keeps_definition and not self._reads_itself(self.last)

    def _reads_itself(self, step: PropagateStep) -> bool:
        """Of groups, and of what is recomputed, the state before is read. What asks sources asks for one step at a
        time."""
        has_groups = plan_of(self.snapshot, self.snapshot.get(self.name)).summary is not None
        return step.mode is Mode.WHOLE or bool(step.asked) or has_groups or step.box is not None

    def _next(self) -> PropagateStep | None:
        changes, past = self.work.catalog.changes, partial(past_steps, self.work.catalog, self.name)
        applied_next = self.aim.apply and self.name in self.aim.asked
        about = (self._expected(), self.work.root, self.name, self.aim.csn, changes, past)
        due, view = self._due(), self.snapshot.get(self.name)
        by_queries = goes_by_queries(self.snapshot, view)
        one_by_one = (due is not None or by_queries) and not came_anew(self.snapshot, self.name)
        if one_by_one or is_uneven(self.snapshot, view):
            goal = self._seen() if by_queries and due is None else self.aim.csn
            return plan_box(*about[:3], goal, *about[4:], due, brief=self.work.brief)
        return plan_propagate(*about, mode=self.aim.mode, applied_next=applied_next, brief=self.work.brief)

    def _seen(self) -> Csn:
        """What queries on tables as they are see in this refresh."""
        return max(self.aim.csn, newest_seen(self.snapshot, self.snapshot.get(self.name)))

    def _due(self) -> frozenset[str] | None:
        """The tables to be brought to the target; None: all of them."""
        return None if self.work.due is None else self.work.due.get(self.name)

    def _expected(self) -> Snapshot:
        """With the mark where it will be when all that is coming is published."""
        if not self.coming or self.last is None:
            return self.snapshot
        pin = self.snapshot.get(self.name).pins[Part.DELTA]
        moved = Shown(
            LoggedVersion(self.name, Part.DELTA, pin.version, pin.rows), pin.after, self.last.interval.through
        )
        return as_published(self.snapshot, self.snapshot.moment.csn, [moved])

    def _compute(self, step: PropagateStep, snapshot: Snapshot) -> tuple[Computed, Phases] | None:
        """None if a source could not be asked: the view stays where it is, and the next refresh asks again."""
        took = Phases()
        if step.asked and step.moves and step.mode is not Mode.WHOLE and is_compensated(snapshot.get(self.name)):
            with measured(took):
                computed = self._told(step, snapshot)
            return None if computed is None else (computed, took)
        if goes_by_queries(snapshot, snapshot.get(self.name)) and (step.box is not None or not step.moves):
            with measured(took):
                computed = self._rolled(step, snapshot)
            return None if computed is None else (computed, took)
        with measured(took), closing(SourceLookup(self.work.catalog, self.work.root)) as lookup:
            try:
                step, asked = self._asked(step, snapshot, lookup)
            except (Retryable, SourceStopped, EnvironmentFault) as error:
                self.work.lagging[self.name] = error.message
                lookup.release(error.message)
                return None
            reader = self.work.reader(snapshot, self.meter, step, asked)
            return compute_propagate(reader, self.work.catalog, self.lease, step, self.meter), took

    def _told(self, step: PropagateStep, snapshot: Snapshot) -> Computed | None:
        """What the view's algorithm publishes, as far as it comes."""
        reader = self.work.reader(snapshot, self.meter)
        with closing(RawLookup(self.work.catalog, self.work.root)) as lookup:
            try:
                if is_by_queries(snapshot.get(self.name)):
                    told = queried_delta(reader, step, lookup)
                else:
                    due, goes_on = self._is_due(step, snapshot), self._goes_beyond(step, snapshot)
                    told = told_delta(reader, step, lookup, due=due, goes_on=goes_on)
            except (Retryable, SourceStopped, EnvironmentFault) as error:
                self.work.lagging[self.name] = error.message
                lookup.release(error.message)
                return None
            lookup.release(told.problem)
        if told.problem is not None:
            self.work.lagging[self.name] = told.problem
        places = dict.fromkeys(step.places, told.through)
        reached = replace(step, interval=Interval(step.interval.after, told.through), places=places)
        return compute_propagate(reader, self.work.catalog, self.lease, reached, self.meter, told)

    def _rolled(self, step: PropagateStep, snapshot: Snapshot) -> Computed | None:
        """The changes of one table, by a query on the others as they are and what compensates for it."""
        reader = self.work.reader(snapshot, self.meter)
        with closing(SourceLookup(self.work.catalog, self.work.root)) as lookup:
            try:
                told, queries = rolled_delta(reader, step, lookup, self._seen())
            except (Retryable, SourceStopped, EnvironmentFault) as error:
                self.work.lagging[self.name] = error.message
                lookup.release(error.message)
                return None
        reached = replace(step, interval=Interval(step.interval.after, told.through), queries=queries)
        return compute_propagate(reader, self.work.catalog, self.lease, reached, self.meter, told)

    def _is_due(self, step: PropagateStep, snapshot: Snapshot) -> bool:
        """Whether the view has waited for quiet sources as long as it may."""
        definition = snapshot.get(self.name).definition
        within = None if definition is None else publish_within(definition.properties)
        since = self.work.catalog.oldest_change(step.motion, step.interval)
        return within is not None and since is not None and self.work.catalog.now() - since >= within

    def _goes_beyond(self, step: PropagateStep, snapshot: Snapshot) -> bool:
        """Whether what sources commit while they are asked may get csns at once: not where other sources or views have
        to come along."""
        if not self.aim.goes_on or not self.work.takes or snapshot.get(self.name).until is not None:
            return False
        sources = {snapshot.get(table).source for table in step.motion}
        tables = [table.name for table in snapshot.tables() if table.source in sources]
        return not followers(self.work.policies, snapshot, tables, strict=False).views

    def _asked(
        self, step: PropagateStep, snapshot: Snapshot, lookup: SourceLookup
    ) -> tuple[PropagateStep, Mapping[str, StandIn]]:
        """What the step reads in place of states that are not here; how much that is, is known only now."""
        if not step.asked or not step.moves:
            return step, {}
        found = stand_ins(self.work.reader(snapshot), step, lookup)
        lookup.release()
        sizes = {name: one.rows.num_rows for name, one in found.items() if one.place is None}
        return replace(step, sizes={**step.sizes, **sizes}), found

    def _publish_first(self) -> None:
        # Beside the other workers, not only waiting for them.
        any(step.do_here() for step in self.coming)
        computed_in = self.coming[0].result()
        if computed_in is None:
            self.coming.popleft()
            return
        computed, took = computed_in
        add_phases(self.work.phases[self.name], took)
        view, step = self.snapshot.get(self.name), computed.step
        done = publish_propagate(computed, view.pins[Part.DELTA], self.lease)
        self.coming.popleft()
        self._note(step, done)
        if view.problem is not None and _failed_in(self.work, self.name) == "propagate":
            note_problem(self.work, self.lease, self.name, None)
        if step.more:
            self._look_at(self.work.catalog.snapshot())

    def _note(self, step: PropagateStep, done: Propagated) -> None:
        work, name = self.work, self.name
        work.steps[name] = step
        work.began.setdefault(name, step.interval.after)
        work.expect(name, step.expected_seconds)
        work.added[name], work.terms[name] = work.added.get(name, 0) + done.added, done.terms
        if done.ahead is not None:
            work.ahead[name] = done.ahead

    def _throw_away(self) -> None:
        # Those that nobody has begun first, so that none of them is begun meanwhile.
        for done in [one.find_result() for one in reversed(self.coming)]:
            if done is not None:
                done[0].running.give_up()


def _failed_in(work: Refresh, name: str) -> str | None:
    """The kind of the step in which a stopped view failed."""
    return next((step.kind for step in work.catalog.steps(name, 1, "failed")), None)
