"""A view computed from nothing at a later csn, with no delta on the way there.

Law: the rows are those of the author's text at that csn. What the view was before cannot be read any more: nobody who
reads changes of it loses one, because it is done only where nobody does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rollview.algebra.view import Mode
from rollview.catalog import Catalog, Lease, Part, Snapshot
from rollview.core.interval import Csn, Interval
from rollview.core.phases import phase
from rollview.engine.binding import run_query
from rollview.engine.meter import Meter
from rollview.publish.step import NewVersion, OpenStep, Shown, recorded
from rollview.relations.marks import high_water_mark, told_at
from rollview.relations.reader import Reader, stored_as
from rollview.store.datafile import DataFile
from rollview.store.folder import DeltaFolder
from rollview.store.writing import named_failures, stage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LABEL = "apply"
_GROUPS = "_rv_new_groups"


def plan_recompute(snapshot: Snapshot, name: str, target: Csn) -> Csn | None:
    """The csn at which it would be computed; None if the view is there already."""
    view = snapshot.view(name)
    below = [snapshot.get(lower) for lower in view.depends_on]
    at = told_at(below, min([target, *(high_water_mark(snapshot, lower) for lower in below)]))
    return at if at > view.shown.through else None


@phase("apply")
def log_recompute(reader: Reader, catalog: Catalog, lease: Lease, name: str, at: Csn, meter: Meter) -> OpenStep:
    """Up to its publication, which is left to the caller."""
    reader = reader.seen_by(name)
    relation = reader.snapshot.view(name)
    places = {part: DeltaFolder.new_folder() for part in (Part.EXTENT, Part.GROUPS) if part in relation.pins}
    paths = [f"{relation.folder}/{part}/{place}" for part, place in places.items()]
    interval = Interval(relation.pins[Part.EXTENT].through, at)
    with recorded(catalog, lease, reader.root, name, "apply", interval, paths) as running:
        running.begun()
        with named_failures("recompute the view"):
            files = _staged(reader, name, at, places, meter)
        running.computed()
        new = [_anew(reader, name, part, files.get(part, ())) for part in (*places, Part.DELTA)]
        logged = running.log(new, {"view": name, "csn": str(at)})
    profile = {"mode": Mode.WHOLE.value, "reason": "policy snapshot", **meter.of(LABEL).to_json()}
    shown = tuple(Shown(one, at, at) for one in logged)
    return OpenStep(running, name, profile, shown, restarts=True, returns=relation.rolled is not None)


def _staged(
    reader: Reader, name: str, at: Csn, places: dict[Part, str], meter: Meter
) -> dict[Part, tuple[DataFile, ...]]:
    """A summary's rows are read off its groups, so that what it reads is read once."""
    plan, stored = reader.plan(name), reader.stored(name)

    def staged(part: Part, rows: DataFrame) -> tuple[DataFile, ...]:
        expected = reader.snapshot.get(name).pins[part].rows
        return stage(stored.folder(part), rows, places[part], meter, LABEL, expected=expected)

    if plan.summary is None:
        return {Part.EXTENT: staged(Part.EXTENT, reader.run_at(plan.recomputation(), at))}
    groups = staged(Part.GROUPS, reader.run_at(plan.first_groups(), at))
    held = stored.folder(Part.GROUPS).read(reader.spark, groups)
    rows = run_query(reader.spark, plan.visible(_GROUPS), {_GROUPS: held})
    return {Part.EXTENT: staged(Part.EXTENT, rows), Part.GROUPS: groups}


def _anew(reader: Reader, name: str, part: Part, files: tuple[DataFile, ...]) -> NewVersion:
    relation = reader.snapshot.get(name)
    hidden = reader.plan(name).hidden
    folder = stored_as(reader.root, relation, hidden).folder(part)
    pin = relation.pins[part]
    return NewVersion(name, part, folder, pin, files, folder.files(pin.version))
