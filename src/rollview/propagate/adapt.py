"""A view gets the rows of its next definition.

Law: at csn s, from which the definition holds, the view's rows are those of the new text at s, and what it stored by
the one before stays readable below s. The step ends in one catalog transaction; until then the view is at s - 1 with
its old definition, so a step that is cut off is done again, and s is never passed by.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import functions as sf

from rollview.algebra.definition import Declared
from rollview.catalog import Catalog, CatalogWriter, DefinitionVersion, Lease, Part, Pin, Relation, Snapshot
from rollview.core.interval import Csn, Interval
from rollview.core.names import COUNT, CSN
from rollview.core.phases import phase
from rollview.engine.binding import run_query
from rollview.engine.meter import Meter
from rollview.engine.session import for_few_rows
from rollview.errors import StaleStep
from rollview.propagate.create import LABEL, ViewToCreate, computed_parts
from rollview.propagate.derive import OLD_GROUPS, OLD_ROWS, AdaptMode, Derivation, derivation_of
from rollview.propagate.few_parts import few_changes, few_parts, stage_changes
from rollview.publish.step import LoggedVersion, NewVersion, RunningStep, recorded
from rollview.relations.marks import high_water_mark
from rollview.relations.plans import plan_of
from rollview.relations.reader import Reader
from rollview.relations.versions import carried
from rollview.store.datafile import DataFile
from rollview.store.folder import frame
from rollview.store.multiset import net, signed
from rollview.store.timed import Stored
from rollview.store.writing import BOUND, named_failures, stage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class AdaptStep:
    """A view that is at the last csn of its definition, and the one that it gets. ``home``: the folder of its parts."""

    view: str
    version: DefinitionVersion
    home: str = field(default_factory=lambda: f"v-{uuid4().hex}")

    @property
    def at(self) -> Csn:
        return self.version.csn


def plan_adapt(snapshot: Snapshot, name: str, target: Csn) -> AdaptStep | None:
    """None unless the view's next csn on the way to ``target`` is the first of its next definition, and all that this
    reads has come as far."""
    view = snapshot.get(name)
    version = view.pending
    if version is None or version.csn > target or high_water_mark(snapshot, view) != version.csn - 1:
        return None
    reads = map(snapshot.at(version.csn).get, version.depends_on)
    ready = all(high_water_mark(snapshot, lower) >= version.csn for lower in reads)
    return AdaptStep(view.name, version) if ready else None


@phase("apply")
def run_adapt(reader: Reader, catalog: Catalog, lease: Lease, step: AdaptStep, meter: Meter) -> int:
    """Returns the number of rows that the view has by its new definition."""
    reader = reader.as_of(step.at)
    old = reader.snapshot.get(step.view)
    new = redefined_as(old, step.version)
    view = _to_create(reader.snapshot, new, step.version)
    stored = Stored(step.view, new.schema, reader.root / step.home, {}, view.plan.hidden)
    interval = Interval(step.at - 1, step.at)
    with recorded(catalog, lease, reader.root, step.view, "adapt", interval, (step.home,)) as running:
        running.begun()
        derivation = _derivation(reader, catalog, old, view)
        logged = _log_parts(reader, view, (old, new), derivation, stored, meter, running)
        profile = {"mode": derivation.mode.value, "reason": derivation.why, **meter.of(LABEL).to_json()}
        with running.publish(lease, profile) as publishing:
            _check_still_wanted(publishing.writer, step)
            publishing.writer.take_definition(step.view, step.at, step.home)
            for one in logged:
                publishing.show(one, step.at, step.at)
    return logged[0].rows


def adapted(snapshot: Snapshot, step: AdaptStep) -> Snapshot:
    """The catalog as it will be once the step is published, for who computes the view's changes after it."""
    old = snapshot.get(step.view)
    at, rows = step.at, old.pins[Part.EXTENT].rows
    pins = {part: Pin(part, 0, at, at, rows if part is Part.EXTENT else 0) for part in (Part.EXTENT, Part.DELTA)}
    new = replace(redefined_as(old, step.version), folder=step.home, pins=pins, problem=None, state=None)
    return replace(snapshot, relations={**snapshot.relations, old.name: new})


def redefined_as(view: Relation, version: DefinitionVersion) -> Relation:
    """The view as it is from the version's csn on, without rows."""
    about = {"definition": version.definition, "schema": version.schema, "depends_on": version.depends_on}
    return replace(view, **about, created=version.csn, until=None, versions=(), pins={}, coarse=())  # type: ignore[arg-type]


def _to_create(snapshot: Snapshot, new: Relation, version: DefinitionVersion) -> ViewToCreate:
    told = version.definition
    declared = Declared(new.name, told.columns, told.comment, told.properties, told.query, True)
    return ViewToCreate(declared, plan_of(snapshot, new), version.schema, told.facts, version.csn, True)


def _log_parts(
    reader: Reader,
    view: ViewToCreate,
    old_and_new: tuple[Relation, Relation],
    derivation: Derivation,
    stored: Stored,
    meter: Meter,
    running: RunningStep,
) -> tuple[LoggedVersion, ...]:
    old, new = old_and_new
    before = reader.few_rows(old.name, view.at - 1, BOUND) if _is_few(old, derivation) else None
    told = _told(_by_size(reader, old, derivation), old, new, derivation, before)
    few = None if told is None else few_parts(view, told, _expected(old, derivation), meter)
    parts = few.staged(stored, meter) if few else computed_parts(reader.seen_by(new), view, stored, meter, told)
    changes = None if few is None or before is None else few_changes(before, new, few.extent, view.at)
    parts[Part.BRIDGE] = (
        _bridge(reader, new, stored, parts[Part.EXTENT], meter)
        if changes is None
        else stage_changes(stored, changes, meter)
    )
    running.computed()
    versions = [NewVersion(new.name, part, stored.folder(part), None, files) for part, files in parts.items()]
    return running.log(versions, {"view": new.name, "csn": str(view.at)})


def _by_size(reader: Reader, old: Relation, derivation: Derivation) -> Reader:
    """Work on few rows Spark does faster with fewer preparations."""
    is_stored = derivation.mode is AdaptMode.STORED
    return reader.by(for_few_rows(reader.spark)) if is_stored and _is_few(old, derivation) else reader


def _is_few(old: Relation, derivation: Derivation) -> bool:
    return derivation.mode is not AdaptMode.RECOMPUTED and _expected(old, derivation) <= BOUND // 2


def _expected(old: Relation, derivation: Derivation) -> int:
    """About how many rows the query gives: stored rows tell at most as many as they are."""
    held = old.pins[Part.EXTENT if derivation.groups is None else Part.GROUPS].rows
    return held if derivation.mode is AdaptMode.STORED else 2 * held


def _derivation(reader: Reader, catalog: Catalog, old: Relation, view: ViewToCreate) -> Derivation:
    """What is stored is of the csn before, so it tells the rows only where nothing but the definition changed."""
    if any(entry.changes for entry in catalog.ledger(Interval(view.at - 1, view.at))):
        return Derivation(AdaptMode.RECOMPUTED, "rows of tables change with it")
    if any(_changes_at(reader.snapshot, name, view.at) for name in (*old.depends_on, *view.depends_on)):
        return Derivation(AdaptMode.RECOMPUTED, "a view that it reads gets another definition with it")
    return derivation_of(reader.snapshot, old, (view.plan, view.schema))


def _changes_at(snapshot: Snapshot, name: str, csn: Csn) -> bool:
    """Whether a view, or one below it, gets other rows by a definition at the csn."""
    found = snapshot.find(name)
    below = () if found is None else (found, *snapshot.below(name))
    return any(version.csn == csn and version.anew for one in below for version in one.versions)


def _told(
    reader: Reader, old: Relation, new: Relation, derivation: Derivation, before: pa.Table | None
) -> DataFrame | None:
    """What is stored is read at the csn before, and what it lacks at the definition's own. ``before``: the old rows,
    where they are in this process."""
    query = derivation.groups or derivation.rows
    if query is None:
        return None
    at = new.created - 1
    if derivation.groups is not None:
        stored = {OLD_GROUPS: reader.as_of(at).groups(old.name, at)}
    else:
        rows = reader.rows(old.name, at) if before is None else frame(reader.spark, before, old.schema)
        stored = {OLD_ROWS: rows}
    beside = reader.seen_by(new).plain_inputs(derivation.inputs, new.created)
    return run_query(reader.spark, query, {**stored, **beside})


def _bridge(
    reader: Reader, new: Relation, stored: Stored, extent: tuple[DataFile, ...], meter: Meter
) -> tuple[DataFile, ...]:
    """V_new@s - π(V_old@(s-1)), at csn s."""
    at, folder = new.created, stored.folder(Part.BRIDGE)
    with named_failures("compute what changes with the definition"):
        rows = stored.folder(Part.EXTENT).read(reader.spark, extent)
        difference = _difference(rows, carried(reader.rows(new.name, at - 1), new), new, at)
        expected = 2 * sum(file.rows for file in extent)
        return stage(folder, difference, folder.new_folder(), meter, LABEL, expected=expected)


def _difference(now: DataFrame, before: DataFrame, view: Relation, at: Csn) -> DataFrame:
    change = signed(now).unionAll(signed(before).withColumn(COUNT, -sf.col(COUNT)))
    return net(change, view.schema).withColumn(CSN, sf.lit(at).cast("bigint"))


def _check_still_wanted(writer: CatalogWriter, step: AdaptStep) -> None:
    if writer.snapshot().get(step.view).pending != step.version:
        raise StaleStep(step.view)
