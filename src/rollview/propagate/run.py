"""A propagation step, done: compute, stage, log, publish."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as sf

from rollview.algebra.script import TermNote
from rollview.algebra.summary import GROUPS
from rollview.algebra.view import Mode
from rollview.catalog import Catalog, Lease, Part
from rollview.core.interval import Csn, Interval
from rollview.core.names import COUNT, CSN
from rollview.core.phases import phase
from rollview.engine.meter import Meter
from rollview.errors import EngineFailed
from rollview.propagate.closed import closed_references
from rollview.propagate.plan import PropagateStep
from rollview.publish.step import NewVersion, OpenStep, RunningStep, Shown, recorded
from rollview.relations.ahead import Ahead, ahead_of, delta_of
from rollview.relations.plans import ClosedReferences, propagation_of
from rollview.relations.prepared_query import prepare_query
from rollview.relations.reader import Reader
from rollview.relations.shared import changes_from
from rollview.store.datafile import DataFile
from rollview.store.folder import DeltaFolder
from rollview.store.multiset import net, signed
from rollview.store.timed import delta_files
from rollview.store.writing import collect, named_failures, stage, stage_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LABEL = "propagate"


@dataclass(frozen=True, slots=True)
class Propagated:
    """Rows added to the view delta, and the state at the end of the interval where that came along."""

    added: int
    terms: tuple[TermNote, ...] = ()
    ahead: Ahead | None = None


def run_propagate(reader: Reader, catalog: Catalog, lease: Lease, step: PropagateStep, meter: Meter) -> Propagated:
    with _recorded(reader, catalog, lease, step) as (running, place):
        done, opened = _logged(reader, step, meter, running, place)
        with running.publish(lease, opened.profile) as publishing:
            publishing.show_step(opened)
    return done


def log_propagate(
    reader: Reader, catalog: Catalog, lease: Lease, step: PropagateStep, meter: Meter
) -> tuple[Propagated, OpenStep]:
    """The same up to its publication, which is left to the caller. ``reader``: of a snapshot in which all that the view
    reads has come as far as the step."""
    with _recorded(reader, catalog, lease, step) as (running, place):
        return _logged(reader, step, meter, running, place)


@contextmanager
def _recorded(reader: Reader, catalog: Catalog, lease: Lease, step: PropagateStep) -> Iterator[tuple[RunningStep, str]]:
    place = DeltaFolder.new_folder()
    paths = (f"{reader.snapshot.get(step.view).folder}/delta/{place}",)
    with recorded(catalog, lease, reader.root, step.view, "propagate", step.interval, paths) as running:
        yield running, place


def _logged(
    reader: Reader, step: PropagateStep, meter: Meter, running: RunningStep, place: str
) -> tuple[Propagated, OpenStep]:
    reader = reader.seen_by(step.view)
    folder, pin = reader.stored(step.view).folder("delta"), reader.snapshot.get(step.view).pins[Part.DELTA]
    running.begun()
    closed = closed_in(reader, step)
    # One that shares another's delta only moves its mark.
    view = reader.snapshot.get(step.view)
    stores = step.moves and changes_from(reader.snapshot, view) is view
    files, ahead = _computed(reader, step, closed, (folder, place), meter, running) if stores else ((), None)
    new = NewVersion(step.view, Part.DELTA, folder, pin, files)
    (logged,) = running.log([new], {"view": step.view, "interval": str(step.interval)})
    added = sum(file.rows for file in files)
    profile = {"mode": step.mode.value, "reason": step.reason, **_profile(meter, step, added)}
    shown = (Shown(logged, pin.after, step.interval.through),)
    opened = OpenStep(running, step.view, profile, shown, _coarse(reader, step))
    return Propagated(added, _terms(reader, step, closed), ahead), opened


def closed_in(reader: Reader, step: PropagateStep) -> ClosedReferences:
    """What the keys in the deltas tell. They are read here, because a plan reads no rows."""
    if not step.moves or step.mode is Mode.WHOLE or step.at_once:
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
        collected = _collected_ahead(reader, step, closed, meter) if step.ahead else None
        if collected is None:
            rows = view_delta(reader, step, closed)
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


def _collected_ahead(reader: Reader, step: PropagateStep, closed: ClosedReferences, meter: Meter) -> pa.Table | None:
    """None if it is too large, or if a row of the view cannot be computed: that is for applying to say."""
    try:
        return collect(_propagation(reader, step, closed, ahead=True), meter, LABEL)
    except EngineFailed:
        return None


def view_delta(reader: Reader, step: PropagateStep, closed: ClosedReferences = frozenset()) -> DataFrame:
    """The stored columns with ``_count`` and ``_csn``."""
    if step.mode is Mode.WHOLE:
        return _difference(reader, step)
    changes = _propagation(reader, step, closed, ahead=False)
    return _as_one(reader, step, changes) if step.merged else changes


def _as_one(reader: Reader, step: PropagateStep, changes: DataFrame) -> DataFrame:
    """The net effect, at the csn of the last change."""
    hidden, schema = reader.plan(step.view).hidden, reader.snapshot.get(step.view).schema
    return net(changes, hidden or schema, apart=True).withColumn(CSN, sf.lit(_last_csn(step)).cast("bigint"))


def _propagation(reader: Reader, step: PropagateStep, closed: ClosedReferences, *, ahead: bool) -> DataFrame:
    plan = reader.plan(step.view)
    propagation = propagation_of(plan, step.circumstances(ahead=ahead, closed=closed))
    if step.shuffles_little:
        prepared = prepare_query(reader, propagation, step.interval, step.view if plan.summary else None)
        if prepared is not None:
            return prepared
    held = {} if plan.summary is None else {GROUPS: reader.groups(step.view, step.interval.after)}
    return reader.run(propagation, step.interval, held, small=step.small)


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
            files = delta_files(reader.stored(lower), step.interval)
            meter.read(LABEL, len(files), sum(file.size for file in files))


def _profile(meter: Meter, step: PropagateStep, added: int) -> dict[str, object]:
    usage = meter.of(LABEL) + meter.of("stage")
    read = {"delta_rows_read": step.work.delta_rows, "read_rows": step.work.read_rows, "commits": step.commits}
    return {**read, "delta_rows": added, "expected_seconds": step.expected_seconds, **usage.to_json()}
