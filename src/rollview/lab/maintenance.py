"""Ways to maintain a six-way join, as transactions on a virtual clock.

Law: what a transaction asks for, and when, decides what it costs; what it reads decides what the view shows. Both come
from one run. Data updates are maintained by TxnWrap (``versioned``) and SWEEP (``swept``), or on copies in the view's
own engine under locks (``locked``); schema changes by TxnWrap (``adapted``) and DyDa (``redone``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random

from rollview.lab.service_times import RECORDED, ROWS, SLOWNESS, ServiceTimes
from rollview.lab.virtual_clock import (
    ClockRun,
    HostRequest,
    InTurn,
    Opened,
    Steps,
    TableLock,
    TimedTransaction,
    simulate,
)
from rollview.lab.wrappers import (
    RELATIONS,
    SourceUpdate,
    UnversionedSources,
    ViewRow,
    Wrapper,
    random_updates,
    versioned_delta,
)

VIEW = "view"
_SAMPLES = 12
_UNEVEN = 0.5
"""A query takes up to so much more or less than the mean, as its rows lie on disk."""


@dataclass(frozen=True, slots=True)
class TestBed:
    """``hosts``: over which the six relations are spread; 0 is the view's own engine. ``delay``: milliseconds for 20
    bytes, of rows with 40. ``share``: size of a wrapper, of the whole relation."""

    __test__ = False

    hosts: int = 3
    delay: float = 0.0
    share: float = 1.0
    times: ServiceTimes = field(default_factory=lambda: RECORDED.slower(SLOWNESS))
    seed: int = 1

    def host(self, relation: int) -> str:
        return VIEW if self.hosts == 0 else f"source {relation % self.hosts}"

    def ask(self, relation: int, service: float, random: Random) -> HostRequest:
        uneven = 1 + _UNEVEN * (2 * random.random() - 1)
        return HostRequest(self.host(relation), service * uneven, 0.0 if self.hosts == 0 else 2 * self.delay)


def sweep_order(relation: int) -> tuple[int, ...]:
    """To the left, then to the right."""
    return (*range(relation - 1, -1, -1), *range(relation + 1, RELATIONS))


@dataclass(slots=True)
class VersionedWorld:
    """Wrappers with all versions, and the view's changes so far."""

    bed: TestBed
    updates: Sequence[SourceUpdate]
    cleans: bool = True
    wrappers: list[Wrapper] = field(default_factory=list)
    shown: Counter[ViewRow] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.wrappers = [Wrapper(round(ROWS * self.bed.share)) for _ in range(RELATIONS)]
        for one in self.updates:
            self.wrappers[one.relation].update(one)

    def versioned(self, place: int) -> Steps:
        """TxnWrap: every relation as of the TxnID; committed in the order of the TxnIDs."""
        one, times, random = self.updates[place], self.bed.times, Random(f"{self.bed.seed} {place}")
        for relation in sweep_order(one.relation):
            rows = self.wrappers[relation].size
            yield self.bed.ask(relation, times.versioned * rows / ROWS, random)
        change = versioned_delta(self.wrappers, one)
        yield InTurn()
        yield HostRequest(VIEW, times.write)
        self.shown.update(change)
        if self.cleans:
            self.wrappers[one.relation].clean_up(one.key, one.local)

    def adapted(self, place: int) -> Steps:
        """A schema change: the definition while nobody else maintains (figure 10), then all rows, beside the others."""
        times, random = self.bed.times, Random(f"{self.bed.seed} schema {place}")
        yield HostRequest(VIEW, times.write)
        yield Opened()
        for relation in range(RELATIONS):
            yield self.bed.ask(relation, times.whole_versioned * self.bed.share, random)
        yield HostRequest(VIEW, times.adapt * self.bed.share)
        yield InTurn()
        yield HostRequest(VIEW, times.write)


def run_versioned(
    bed: TestBed, updates: int, threads: int, *, serial: bool = False, schema_changes: int = 0
) -> ClockRun:
    """``schema_changes``: scattered evenly among the updates."""
    world = VersionedWorld(bed, random_updates(Random(bed.seed), updates, ROWS))
    work = [TimedTransaction(partial(world.versioned, place)) for place in range(updates)]
    for number in range(schema_changes, 0, -1):
        place = updates * number // (schema_changes + 1)
        work.insert(place, TimedTransaction(partial(world.adapted, number), alone=True))
    return simulate(work, threads, 0.0 if serial else bed.times.hand_over)


def run_locked(bed: TestBed, updates: int, threads: int) -> ClockRun:
    """Self-maintenance: copies in the view's engine. A transaction writes a copy, then one query locks and reads the
    others, and the view is written."""

    def locked(one: SourceUpdate, place: int) -> Steps:
        random = Random(f"{bed.seed} {place}")
        yield TableLock(one.relation, exclusive=True)
        yield HostRequest(VIEW, bed.times.write)
        for relation in sweep_order(one.relation):
            yield TableLock(relation, exclusive=False)
        for relation in sweep_order(one.relation):
            yield bed.ask(relation, bed.times.plain, random)
        yield HostRequest(VIEW, bed.times.write)

    made = random_updates(Random(bed.seed), updates, ROWS)
    work = [TimedTransaction(partial(locked, one, place)) for place, one in enumerate(made)]
    return simulate(work, threads, bed.times.hand_over)


@dataclass(slots=True)
class SweptWorld:
    """Sources without versions. ``compensates``: off, to see what is wrong then."""

    bed: TestBed
    updates: Sequence[SourceUpdate]
    compensates: bool = True
    shown: Counter[ViewRow] = field(default_factory=Counter)

    def swept(self, place: int) -> Steps:
        """SWEEP: each answer is compensated for what it shows too early."""
        sources, one, random = UnversionedSources(self.updates), self.updates[place], Random(f"{self.bed.seed} {place}")
        values = {one.relation: one.value}
        for relation in sweep_order(one.relation):
            now = yield self.bed.ask(relation, self.bed.times.plain, random)
            values[relation] = sources.answer(relation, one.key, now)
            concurrent = sources.concurrent(one, relation, now)
            if concurrent and self.compensates:
                values[relation] = sources.compensated(values[relation], one, relation, concurrent)
                yield HostRequest(VIEW, self.bed.times.compensate * len(concurrent))
        yield HostRequest(VIEW, self.bed.times.write)
        old = sources.before(one)
        for value, count in ((old, -1), (one.value, 1)):
            row = values | {one.relation: value}
            self.shown[one.key, *(row[relation] for relation in range(RELATIONS))] += count


def cost_of_one(bed: TestBed, concurrent: int, *, swept: bool) -> float:
    """The mean over some updates, each while so many others are committed before its first answer."""
    taken = []
    for number in range(_SAMPLES):
        seeded = replace(bed, seed=bed.seed + number)
        made = random_updates(Random(seeded.seed), concurrent + 1, ROWS)
        world = SweptWorld(seeded, made) if swept else VersionedWorld(seeded, made, cleans=False)
        steps = world.swept if isinstance(world, SweptWorld) else world.versioned
        taken.append(simulate([TimedTransaction(partial(steps, 0))], 1).mean)
    return sum(taken) / len(taken)


@dataclass(frozen=True, slots=True)
class SchemaRun:
    """Milliseconds for all of the schema changes, those of them that were thrown away, and how often that was."""

    total: float
    aborted: float
    aborts: int


def run_schema_changes(bed: TestBed, changes: int, interval: float, *, redone: bool) -> SchemaRun:
    """One after another. ``redone``: DyDa, whose query breaks at a relation that has changed since it began; all that
    was read is thrown away and read again. TxnWrap reads the version that it needs, and never breaks."""
    random, times = Random(bed.seed), bed.times
    changed = [(number * interval, random.randrange(RELATIONS)) for number in range(changes)]
    whole = times.whole if redone else times.whole_versioned
    now = spent = lost = 0.0
    aborts = 0
    for at, _ in changed:
        now = began = max(now, at)
        relation = 0
        while relation < RELATIONS:
            if redone and any(one == relation and began < then <= now for then, one in changed):
                lost, aborts = lost + now - began, aborts + 1
                spent, began, relation = spent + now - began, now, 0
                continue
            now += bed.ask(relation, whole * bed.share, random).service
            relation += 1
        now += times.adapt * bed.share + times.write
        spent += now - began
    return SchemaRun(spent, lost, aborts)
