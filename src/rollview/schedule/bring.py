"""A view brought along with a commit that is not visible yet.

Law: what a view computes is computed from the catalog as the commit will leave it, so the csn of its changes is the
commit's. A view that fails stops alone, with what reads it; a needed one stops the commit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from rollview.apply import plan_apply
from rollview.apply.run import log_apply
from rollview.catalog import Catalog, ChangeCount, Lease, Snapshot
from rollview.core.interval import Interval
from rollview.core.raised import unexpected_error
from rollview.core.states import Policy
from rollview.costs.steps import past_steps
from rollview.engine import session
from rollview.engine.meter import Meter
from rollview.errors import LostLease, NotFollowed, RollviewError
from rollview.propagate import PropagateStep, plan_propagate
from rollview.propagate.run import log_propagate
from rollview.publish.following import Upcoming, as_published
from rollview.publish.step import Along, OpenStep
from rollview.publish.workplace import Workplace
from rollview.relations.ahead import Ahead
from rollview.relations.policies import is_stopped
from rollview.relations.reader import Reader
from rollview.relations.versions import before_next_step, check_defined


@dataclass(slots=True)
class Bringing:
    """``snapshot``: the catalog as it will be, as far as views are brought along."""

    place: Workplace
    upcoming: Upcoming
    lease: Lease
    snapshot: Snapshot
    opened: list[OpenStep] = field(default_factory=list)
    behind: dict[str, str | None] = field(default_factory=dict)

    @property
    def along(self) -> Along:
        return Along(tuple(self.opened), dict(self.behind))

    def bring(self, name: str, *, needed: bool) -> None:
        if self.behind.keys() & set(self.snapshot.get(name).depends_on):
            self.behind[name] = None
            return
        before = self.snapshot, len(self.opened)
        try:
            if needed and is_stopped(self.snapshot, name):
                raise NotFollowed(name, self.snapshot.get(name).problem or "it is stopped")
            self._propagate_and_apply(name)
        except LostLease:
            raise
        except Exception as error:
            told = unexpected_error(error)
            if needed and isinstance(error, RollviewError):
                raise error if isinstance(error, NotFollowed) else NotFollowed(name, error.message) from error
            if needed:
                raise
            self._leave(name, told, *before)

    def _leave(self, name: str, error: RollviewError, snapshot: Snapshot, opened: int) -> None:
        for step in self.opened[opened:]:
            step.running.give_up()
        del self.opened[opened:]
        self.snapshot, self.behind[name] = snapshot, error.message

    def _propagate_and_apply(self, name: str) -> None:
        check_defined(self.snapshot.get(name), self.snapshot.moment.csn)
        meter, ahead = Meter(), None
        applied = self.place.policies.of(self.snapshot, self.snapshot.get(name)) is Policy.IMMEDIATE
        while (step := self._next(name, applied)) is not None:
            ahead = self._propagate(step, meter)
        csn = self.snapshot.moment.csn
        if applied and self.snapshot.get(name).shown.through < csn:
            for one in plan_apply(self.snapshot, self.place.data, [name], csn):
                reader = self._reader(meter)
                self._add(log_apply(reader, self.place.catalog, self.lease, one, meter, ahead))

    def _next(self, name: str, applied: bool) -> PropagateStep | None:
        changes, past = (
            partial(_changes, self.place.catalog, self.upcoming),
            partial(past_steps, self.place.catalog, name),
        )
        csn, snapshot = self.snapshot.moment.csn, before_next_step(self.snapshot, name)
        return plan_propagate(snapshot, self.place.data, name, csn, changes, past, applied_next=applied)

    def _propagate(self, step: PropagateStep, meter: Meter) -> Ahead | None:
        reader = self._reader(meter, small=step.shuffles_little).as_of(step.interval.after + 1)
        done, opened = log_propagate(reader, self.place.catalog, self.lease, step, meter)
        self._add(opened)
        return done.ahead

    def _add(self, opened: OpenStep) -> None:
        self.opened.append(opened)
        coarse = [(opened.relation, stretch) for stretch in opened.coarse]
        self.snapshot = as_published(self.snapshot, self.snapshot.moment.csn, opened.shown, coarse)

    def _reader(self, meter: Meter, *, small: bool = False) -> Reader:
        spark = session.for_small_work(self.place.spark) if small else self.place.spark
        return Reader(spark, self.place.data, self.snapshot, meter)


def _changes(catalog: Catalog, upcoming: Upcoming, name: str, interval: Interval) -> tuple[ChangeCount, ...]:
    """Of the ledger, and of what is about to be in it."""
    own = tuple(one for one in upcoming.changes if one.relation == name and one.csn in interval)
    return (*catalog.changes(name, interval), *own)
