"""A propagation step, done: compute, stage, log, publish."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as sf

from rollview.algebra.script import TermNote
from rollview.algebra.summary import GROUPS
from rollview.algebra.view import Mode
from rollview.catalog import Catalog, CatalogWriter, Lease, Part, Pin
from rollview.core.interval import Csn, Interval
from rollview.core.names import COUNT, CSN
from rollview.core.phases import phase
from rollview.costs.refreshing import TOOK
from rollview.engine.meter import Meter, Usage
from rollview.errors import EngineFailed, StaleStep
from rollview.propagate.bounds import BRIEF
from rollview.propagate.closed import closed_references
from rollview.propagate.compensated import ToldDelta
from rollview.propagate.joined import joined_by
from rollview.propagate.plan import PropagateStep
from rollview.publish.step import NewVersion, OpenStep, RunningStep, Shown, given_up_on_failure, recorded
from rollview.relations.ahead import Ahead, ahead_of, delta_of
from rollview.relations.joined import JOINED, JoinedQueries
from rollview.relations.plans import ClosedReferences, propagation_of
from rollview.relations.prepared_query import prepared_query
from rollview.relations.reader import Reader
from rollview.relations.shared import changes_from
from rollview.store.datafile import DataFile
from rollview.store.folder import DeltaFolder
from rollview.store.multiset import net, signed
from rollview.store.timed import delta_files
from rollview.store.writing import BOUND, as_stored, collect, named_failures, stage, stage_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LABEL = "propagate"


@dataclass(frozen=True, slots=True)
class Propagated:
    """Rows added to the view delta, and the state at the end of the interval where that came along."""

    added: int
    terms: tuple[TermNote, ...] = ()
    ahead: Ahead | None = None


@dataclass(frozen=True, slots=True)
class Computed:
    """A step whose files are staged and named by no version yet: steps after it may be computed before it is published.

    ``seconds``: what that took; ``usage``: what this step alone has cost.
    """

    step: PropagateStep
    running: RunningStep
    folder: DeltaFolder
    files: tuple[DataFile, ...]
    coarse: tuple[Interval, ...]
    done: Propagated
    seconds: float
    usage: Usage
    joined: JoinedQueries


def run_propagate(reader: Reader, catalog: Catalog, lease: Lease, step: PropagateStep, meter: Meter) -> Propagated:
    computed = compute_propagate(reader, catalog, lease, step, meter)
    return publish_propagate(computed, reader.snapshot.get(step.view).pins[Part.DELTA], lease)


def log_propagate(
    reader: Reader, catalog: Catalog, lease: Lease, step: PropagateStep, meter: Meter
) -> tuple[Propagated, OpenStep]:
    """The same up to its publication, which is left to the caller. ``reader``: of a snapshot in which all that the view
    reads has come as far as the step."""
    computed = compute_propagate(reader, catalog, lease, step, meter)
    with given_up_on_failure(computed.running):
        return computed.done, _log(computed, reader.snapshot.get(step.view).pins[Part.DELTA])


def compute_propagate(
    reader: Reader,
    catalog: Catalog,
    lease: Lease,
    step: PropagateStep,
    meter: Meter,
    told: ToldDelta | None = None,
) -> Computed:
    """The step recorded, and its files staged. ``told``: the view's changes, where an algorithm has told them."""
    place, began = DeltaFolder.new_folder(), time.monotonic()
    paths = (f"{reader.snapshot.get(step.view).folder}/delta/{place}",)
    with (
        meter.part() as own,
        recorded(catalog, lease, reader.root, step.view, "propagate", step.interval, paths) as running,
    ):
        reader = reader.metered(own).seen_by(step.view).over(step.box.intervals if step.box is not None else {})
        folder = reader.stored(step.view).folder("delta")
        joined = joined_by(step, reader.snapshot.get(step.view).depends_on)
        running.begun()
        if told is not None:
            files = stage_table(folder, told.rows, place, own, LABEL)
            running.computed()
            usage, done = own.of(LABEL), Propagated(sum(file.rows for file in files))
            return Computed(
                step, running, folder, files, told.coarse, done, time.monotonic() - began, usage, told.joined or joined
            )
        closed = closed_in(reader, step)
        # One that shares another's delta only moves its mark.
        view = reader.snapshot.get(step.view)
        stores = step.moves and changes_from(reader.snapshot, view) is view
        files, ahead = _computed(reader, step, closed, (folder, place), own, running) if stores else ((), None)
        done = Propagated(sum(file.rows for file in files), _terms(reader, step, closed), ahead)
        usage = own.of(LABEL) + own.of("stage")
        took = time.monotonic() - began
        return Computed(step, running, folder, files, _coarse(reader, step), done, took, usage, joined)


def publish_propagate(computed: Computed, pin: Pin, lease: Lease) -> Propagated:
    """``pin``: of the view's delta, which ends where the step begins."""
    with given_up_on_failure(computed.running):
        opened = _log(computed, pin)
        with computed.running.publish(lease, opened.profile) as publishing:
            _check_still(publishing.writer, computed)
            publishing.show_step(opened)
    return computed.done


def _check_still(writer: CatalogWriter, computed: Computed) -> None:
    """A step belongs to one definition of its view, and comes after one csn."""
    step = computed.step
    if not writer.ends_at(step.view, computed.folder.root.parent.name, step.interval.after):
        raise StaleStep(step.view)


def _log(computed: Computed, pin: Pin) -> OpenStep:
    step = computed.step
    assert pin.through == step.interval.after, "steps are published in the order of their csns"
    new = NewVersion(step.view, Part.DELTA, computed.folder, pin, computed.files)
    (logged,) = computed.running.log([new], {"view": step.view, "interval": str(step.interval)})
    profile = {"mode": step.mode.value, "reason": step.reason, **_profile(computed), TOOK: computed.seconds}
    shown = (Shown(logged, pin.after, step.interval.through),)
    return OpenStep(
        computed.running, step.view, profile, shown, computed.coarse, places=step.places, queries=step.queries
    )


def closed_in(reader: Reader, step: PropagateStep) -> ClosedReferences:
    """What the keys in the deltas tell. They are read here, because a plan reads no rows."""
    if step.mode is Mode.WHOLE or step.at_once or step.box is not None:
        return frozenset()
    relations = [reader.snapshot.get(name) for name in step.motion]
    with phase("keys"):
        return closed_references(relations, step.motion, step.rows, reader.root, step.interval)


def _terms(reader: Reader, step: PropagateStep, closed: ClosedReferences = frozenset()) -> tuple[TermNote, ...]:
    if not step.moves or step.mode is Mode.WHOLE:
        return ()
    return propagation_of(reader.plan(step.view), step.circumstances(ahead=True, closed=closed)).terms


def _computed(
    reader: Reader,
    step: PropagateStep,
    closed: ClosedReferences,
    where: tuple[DeltaFolder, str],
    meter: Meter,
    running: RunningStep,
) -> tuple[tuple[DataFile, ...], Ahead | None]:
    folder, place = where
    # Analysing a query can fail as well as running it, and hurts no other view.
    with named_failures("compute the view's changes"):
        collected = collected_ahead(reader, step, closed, meter) if step.ahead else None
        if collected is None:
            with _view_delta(reader, step, closed) as rows:
                files = stage(folder, rows, place, meter, LABEL, expected=step.work.delta_rows)
    ahead = None
    if collected is not None:
        summary = reader.plan(step.view).summary
        assert summary is not None
        files = stage_table(folder, delta_of(summary, collected), place, meter, LABEL)
        ahead = ahead_of(summary, reader.snapshot.get(step.view).schema, collected, step.interval.through)
    running.computed()
    _count_reads(reader, step, meter)
    return files, ahead


def collected_ahead(reader: Reader, step: PropagateStep, closed: ClosedReferences, meter: Meter) -> pa.Table | None:
    """None if it is too large, or if a row of the view cannot be computed: that is for applying to say."""
    try:
        with _propagation(reader, step, closed, ahead=True) as rows:
            return collect(rows, meter, LABEL)
    except EngineFailed:
        return None


def collected_changes(reader: Reader, step: PropagateStep, closed: ClosedReferences, meter: Meter) -> pa.Table | None:
    """The view's changes, without writing them; None as above."""
    try:
        with _propagation(reader, step, closed, ahead=False) as rows:
            typed = as_stored(rows, reader.stored(step.view).folder("delta").schema)
            return collect(typed.limit(BOUND + 1), meter, LABEL)
    except EngineFailed:
        return None


@contextmanager
def _view_delta(reader: Reader, step: PropagateStep, closed: ClosedReferences) -> Iterator[DataFrame]:
    """The stored columns with ``_count`` and ``_csn``, to be used before the block ends."""
    if step.mode is Mode.WHOLE:
        yield _difference(reader, step)
        return
    with _propagation(reader, step, closed, ahead=False) as changes:
        yield _as_one(reader, step, changes) if step.merged else changes


def _as_one(reader: Reader, step: PropagateStep, changes: DataFrame) -> DataFrame:
    """The net effect, at the csn of the last change."""
    hidden, schema = reader.plan(step.view).hidden, reader.snapshot.get(step.view).schema
    return net(changes, hidden or schema, apart=True).withColumn(CSN, sf.lit(_last_csn(step)).cast("bigint"))


@contextmanager
def _propagation(reader: Reader, step: PropagateStep, closed: ClosedReferences, *, ahead: bool) -> Iterator[DataFrame]:
    plan = reader.plan(step.view)
    propagation = propagation_of(plan, step.circumstances(ahead=ahead, closed=closed))
    groups_of = step.view if plan.summary else None
    with (
        prepared_query(reader, propagation, step.interval, groups_of) if step.shuffles_little else nullcontext() as rows
    ):
        if rows is not None:
            yield rows
            return
        held = {} if plan.summary is None else {GROUPS: reader.groups(step.view, step.interval.after)}
        yield reader.run(propagation, step.interval, held, small=step.small)


def _difference(reader: Reader, step: PropagateStep) -> DataFrame:
    """Recomputed at the end, minus what was there at the start: one change, at the csn of the last."""
    plan, end = reader.plan(step.view), step.interval.through
    if plan.summary is None:
        schema, new = reader.snapshot.get(step.view).schema, reader.run_at(plan.recomputation(), end)
        old = reader.rows(step.view, step.interval.after)
    else:
        schema, new = plan.summary.schema, reader.run_at(plan.first_groups(), end)
        old = reader.groups(step.view, step.interval.after)
    change = signed(new).unionAll(signed(old).withColumn(COUNT, -sf.col(COUNT)))
    return net(change, schema).withColumn(CSN, sf.lit(_last_csn(step)).cast("bigint"))


def _last_csn(step: PropagateStep) -> Csn:
    return step.interval.through if step.work.csns is None else step.work.csns[1]


def _coarse(reader: Reader, step: PropagateStep) -> tuple[Interval, ...]:
    """The stretches inside which the view's delta says nothing: its own if it is one change, and those it reads."""
    below = (reader.snapshot.get(lower) for lower in reader.snapshot.get(step.view).depends_on)
    stretches = [stretch for relation in below for stretch in relation.coarse if stretch.overlaps(step.interval)]
    if (step.merged or step.mode is Mode.WHOLE) and step.work.csns is not None:
        first, last = step.work.csns
        stretches.extend([Interval(first - 1, last)] if first < last else [])
    return tuple(stretches)


def _count_reads(reader: Reader, step: PropagateStep, meter: Meter) -> None:
    for lower, motion in step.motion.items():
        if motion.changed:
            files = delta_files(reader.stored(lower), step.interval_of(lower))
            meter.read(LABEL, len(files), sum(file.size for file in files))


def _profile(computed: Computed) -> dict[str, object]:
    step = computed.step
    read = {"delta_rows_read": step.work.delta_rows, "read_rows": step.work.read_rows, "commits": step.commits}
    told = {**read, "delta_rows": computed.done.added, "expected_seconds": step.expected_seconds}
    joined = {JOINED: computed.joined.to_json()}
    return {**told, **joined, **({BRIEF: True} if step.brief else {}), **computed.usage.to_json()}
