"""Extents, brought to a csn and published together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Self

from pyspark.sql import functions as sf

from rollview.apply.plan import ApplyStep
from rollview.catalog import Catalog, Lease, Part
from rollview.core.names import COUNT, CSN
from rollview.core.phases import Phases, measured, phase
from rollview.core.schema import Schema
from rollview.engine.failures import spark_failures
from rollview.engine.meter import Meter
from rollview.errors import Corrupt, EngineFailed, RollviewError
from rollview.publish.step import NewVersion, OpenStep, Shown, publish_together, recorded
from rollview.relations.ahead import Ahead
from rollview.relations.reader import Reader, stored_as
from rollview.store.buckets import REWRITE_ROWS, Buckets, bucket_expression
from rollview.store.datafile import DataFile
from rollview.store.folder import DeltaFolder
from rollview.store.multiset import expand, net, signed
from rollview.store.small import in_order
from rollview.store.writing import BOUND, stage, stage_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BUCKET_ROWS = 100_000
LABEL = "apply"


OnFailure = Callable[[str, RollviewError], None]


def _raise(view: str, error: RollviewError) -> None:
    raise error


class ExtentsTogether:
    """Extents that are written one by one, in order or side by side, and published in one catalog transaction.

    ``ahead``: views whose state at their csn was computed already. ``also``: steps that are published with them. A view
    that fails is told to ``on_failure``. Unless that raises, the others are published without it and without those that
    read it. As a context: whatever is not published when it fails is given up.
    """

    def __init__(
        self,
        reader: Reader,
        catalog: Catalog,
        lease: Lease,
        meters: dict[str, Meter],
        on_failure: OnFailure = _raise,
        ahead: Mapping[str, Ahead] = MappingProxyType({}),
        phases: Mapping[str, Phases] = MappingProxyType({}),
        also: Sequence[OpenStep] = (),
    ) -> None:
        self._reader, self._catalog, self._lease, self._meters = reader, catalog, lease, meters
        self._on_failure, self._ahead, self._phases, self._also = on_failure, ahead, phases, also
        self._written: dict[str, OpenStep] = {}
        self._failed: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is not None:
            for one in (*self._also, *self._written.values()):
                one.running.give_up()

    def write(self, step: ApplyStep) -> None:
        if self._reads_failed(step.view):
            return
        try:
            meter = self._meters.setdefault(step.view, Meter())
            with measured(self._phases.get(step.view, Phases())):
                ahead = self._ahead.get(step.view)
                self._written[step.view] = log_apply(self._reader, self._catalog, self._lease, step, meter, ahead)
        except (EngineFailed, Corrupt) as error:
            self._failed.add(step.view)
            self._on_failure(step.view, error)

    def publish(self, steps: Sequence[ApplyStep]) -> dict[str, int]:
        """Rows per view."""
        for view in [view for view in self._written if self._reads_failed(view)]:
            self._written.pop(view).running.give_up()
        done = [*self._also, *(self._written[step.view] for step in steps if step.view in self._written)]
        _publish(self._catalog, self._lease, done)
        return {one.relation: one.shown[0].logged.rows for one in done}

    def _reads_failed(self, view: str) -> bool:
        return any(lower.name in self._failed for lower in self._reader.snapshot.below(view))


def run_apply(
    reader: Reader,
    catalog: Catalog,
    lease: Lease,
    steps: Sequence[ApplyStep],
    meters: dict[str, Meter],
    ahead: Mapping[str, Ahead] = MappingProxyType({}),
) -> dict[str, int]:
    """Bring every view of the set to its csn, one after the other, and publish them together. Rows per view."""
    with ExtentsTogether(reader, catalog, lease, meters, ahead=ahead) as extents:
        for step in steps:
            extents.write(step)
        return extents.publish(steps)


def _told(ahead: Ahead | None, step: ApplyStep) -> Ahead | None:
    return ahead if ahead is not None and ahead.csn == step.after and step.change_rows else None


def _publish(catalog: Catalog, lease: Lease, applied: Sequence[OpenStep]) -> None:
    with publish_together(catalog, lease, [(done.running, done.profile) for done in applied]) as publishing:
        for done in applied:
            publishing.show_step(done)


@phase("apply")
def log_apply(
    reader: Reader, catalog: Catalog, lease: Lease, step: ApplyStep, meter: Meter, ahead: Ahead | None
) -> OpenStep:
    """A new extent, and new groups where they are due, up to their publication, which is left to the caller."""
    newest, reader, ahead = reader.snapshot.get(step.view).newest, reader.as_of(step.after), _told(ahead, step)
    relation = reader.snapshot.get(step.view)
    place, groups_place = DeltaFolder.new_folder(), DeltaFolder.new_folder()
    paths = (f"{relation.folder}/extent/{place}", f"{relation.folder}/groups/{groups_place}")
    with recorded(catalog, lease, reader.root, step.view, "apply", step.between, paths) as running:
        running.begun()
        new = [_new_extent(reader, step, place, meter, ahead)]
        if step.fold_groups or ahead is not None:
            new.append(_new_groups(reader, step, groups_place, meter, ahead))
        running.computed()
        logged = running.log(new, {"view": step.view, "csn": str(step.after)})
    shown = tuple(Shown(one, step.after, step.after) for one in logged)
    profile = {"csn": step.after, "expected_seconds": step.expected_seconds, **meter.of(LABEL).to_json()}
    is_earlier, was_earlier = relation.folder != newest.folder, newest.rolled is not None
    return OpenStep(running, step.view, profile, shown, earlier=is_earlier, returns=was_earlier)


def _new_extent(reader: Reader, step: ApplyStep, place: str, meter: Meter, ahead: Ahead | None) -> NewVersion:
    relation = reader.snapshot.get(step.view)
    extent, pin = stored_as(reader.root, relation).folder("extent"), relation.pins[Part.EXTENT]
    old = extent.files(pin.version)
    if ahead is not None:
        added = stage_table(extent, in_order(ahead.extent), place, meter, LABEL)
        return NewVersion(step.view, Part.EXTENT, extent, pin, added, old)
    by_bucket = step.by_bucket and old[0].bucket_count is not None
    fresh, removed = (_touched_buckets if by_bucket else _whole_extent)(reader, step, extent, old, place, meter)
    return NewVersion(step.view, Part.EXTENT, extent, pin, fresh, removed)


def _new_groups(reader: Reader, step: ApplyStep, place: str, meter: Meter, ahead: Ahead | None) -> NewVersion:
    held, folder = reader.snapshot.get(step.view).pins[Part.GROUPS], reader.stored(step.view).folder("groups")
    if ahead is not None:
        fresh = stage_table(folder, ahead.groups, place, meter, LABEL)
    else:
        fresh = stage(folder, reader.groups(step.view, step.after), place, meter, LABEL, expected=held.rows)
    return NewVersion(step.view, Part.GROUPS, folder, held, fresh, folder.files(held.version))


Files = tuple[Sequence[DataFile], Sequence[DataFile]]


def _whole_extent(
    reader: Reader, step: ApplyStep, extent: DeltaFolder, old: Sequence[DataFile], place: str, meter: Meter
) -> Files:
    """The extent written anew, in buckets once it is too large for that to go on."""
    if step.change_rows == 0:
        return (), ()
    meter.read(LABEL, len(old), sum(file.size for file in old))
    few = reader.few_rows(step.view, step.after, BOUND)
    if few is not None:
        return stage_table(extent, in_order(few), place, meter, LABEL), old
    expected = sum(file.rows for file in old) + step.change_rows
    rows, buckets = reader.rows(step.view, step.after), _buckets(extent.schema, expected)
    return stage(extent, rows, place, meter, LABEL, expected=expected, buckets=buckets), old


def _buckets(schema: Schema, rows: int) -> Buckets | None:
    if rows <= REWRITE_ROWS:
        return None
    return Buckets(schema.names, 1 << (rows // BUCKET_ROWS).bit_length())


def _touched_buckets(
    reader: Reader, step: ApplyStep, extent: DeltaFolder, old: Sequence[DataFile], place: str, meter: Meter
) -> Files:
    """Only the buckets that the net effect touches are read and written."""
    # All of its files were written with the same number.
    assert old[0].bucket_count is not None
    buckets = Buckets(extent.schema.names, old[0].bucket_count)
    change = _net_change(reader, step)
    where = bucket_expression(buckets, extent.schema)
    with spark_failures(f"find the buckets of '{step.view}' that changed"), meter.action(LABEL):
        touched = {row[0] for row in change.select(where).distinct().collect()}
    replaced = [file for file in old if file.bucket in touched]
    if not touched:
        return (), ()
    meter.read(LABEL, len(replaced), sum(file.size for file in replaced))
    held = signed(extent.read(reader.spark, replaced))
    rows = expand(net(held.unionAll(change), extent.schema), extent.schema)
    return stage(extent, rows, place, meter, LABEL, expected=REWRITE_ROWS, buckets=buckets), replaced


def _net_change(reader: Reader, step: ApplyStep) -> DataFrame:
    schema = reader.snapshot.get(step.view).schema
    changes = reader.changes(step.view, step.between).drop(CSN)
    if step.after < step.before:
        changes = changes.withColumn(COUNT, -sf.col(COUNT))
    return net(changes, schema)
