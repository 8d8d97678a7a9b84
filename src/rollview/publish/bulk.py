"""A commit that changes most rows of a table, kept as a new state from its csn on.

Law: with s the csn, D the rows that go there, N those that come and U the others, the state before s is D + U and the
one from s on N + U. The delta at s is -D + N. So D, N and U are stored once each: the files of N belong to the delta
and to the state (by hard links), D is what the delta keeps of the state before, and U is written for the state alone.
No row that is read at any csn, and no change over any interval, is another one by it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from rollview.catalog import Catalog, ChangeCount, Part, Relation, Snapshot
from rollview.core.interval import Csn, Interval
from rollview.core.lent import Lent, UnlinkableError
from rollview.core.names import COUNT
from rollview.publish.step import NewVersion, recorded
from rollview.relations.former import as_in_files
from rollview.relations.reader import stored_as
from rollview.store import timed
from rollview.store.datafile import DataFile
from rollview.store.folder import DeltaFolder
from rollview.store.links import can_link
from rollview.store.timed import Stored, csns_of, delta_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LEAST = 100_000
"""Fewer changes than this are not worth the files."""
SHARE = 2

Files = tuple[DataFile, ...]


@dataclass(frozen=True, slots=True)
class BulkUpdate:
    """The last commit beyond a table's state that changed most of its rows. ``left``: rows that stayed as they were."""

    csn: Csn
    left: int
    files: Files


@dataclass(frozen=True, slots=True)
class _Sides:
    """Staged: what goes and what comes at the csn, and the state from there on."""

    gone: Files
    come: Files
    state: Files


@dataclass(frozen=True, slots=True)
class _WithDelta(Stored):
    """A relation over other files of its delta."""

    changes: Files = ()

    def files(self, part: str) -> Files:
        return self.changes if part == Part.DELTA else Stored.files(self, part)


def find_bulk_update(snapshot: Snapshot, catalog: Catalog, root: Path, table: Relation) -> BulkUpdate | None:
    state = table.pins[Part.STATE]
    if not state.is_kept or table.pins[Part.DELTA].rows < LEAST:
        return None
    if as_in_files(table) is not table or not can_link(table.schema):
        return None
    held, since = stored_as(root, table), Interval(state.through, snapshot.moment.csn)
    # The files are few, the commits may be many.
    if not _has_large_commit(delta_files(held, since)):
        return None
    found = _last_bulk(state.rows, catalog.changes(table.name, since))
    if found is None:
        return None
    csn, left = found
    # What changed there is added up with other csns.
    if any(csn in stretch for stretch in table.coarse):
        return None
    # A table that is read where its source has it stays there.
    if table.source is not None and any(file.linked for file in held.files(Part.STATE)):
        return None
    files = delta_files(held, Interval(csn - 1, csn))
    return BulkUpdate(csn, left, files) if all(csns_of(file) == (csn, csn) for file in files) else None


def _has_large_commit(files: Files) -> bool:
    """Whether a commit that has files of its own changed many rows."""
    rows: Counter[Csn] = Counter()
    for file in files:
        first, last = csns_of(file)
        if first == last:
            rows[first] += file.rows
    return max(rows.values(), default=0) >= LEAST


def _last_bulk(rows: int, counts: tuple[ChangeCount, ...]) -> tuple[Csn, int] | None:
    found = None
    for one in sorted(counts, key=lambda count: count.csn):
        if one.inserted and one.deleted * SHARE > rows and one.inserted + one.deleted >= LEAST:
            found = one.csn, rows - one.deleted
        rows += one.inserted - one.deleted
    return found


def keep_as_state(spark: SparkSession, root: Path, catalog: Catalog, name: str) -> bool:
    """Whether there was such a commit, and its state is kept from now on. False too where files cannot be linked."""
    with catalog.lease(f"relation:{name}") as lease:
        snapshot = catalog.snapshot()
        table = snapshot.get(name)
        bulk = find_bulk_update(snapshot, catalog, root, table)
        if bulk is None:
            return False
        held = stored_as(root, table)
        state, delta = held.folder(Part.STATE), held.folder(Part.DELTA)
        places = [DeltaFolder.new_folder() for _ in range(4)]
        paths = [f"{table.folder}/{part}/{place}" for part, place in zip(_PARTS, places, strict=True)]
        interval = Interval(table.pins[Part.STATE].through, bulk.csn)
        try:
            with recorded(catalog, lease, root, name, "fold", interval, paths) as step:
                sides = _staged(spark, table, held, bulk, places)
                step.computed()
                old, pin = table.pins[Part.STATE], table.pins[Part.DELTA]
                changes = NewVersion(name, Part.DELTA, delta, pin, (*sides.gone, *sides.come), bulk.files)
                rows = NewVersion(name, Part.STATE, state, old, sides.state, state.files(old.version))
                logged = step.log([changes, rows], {"step": "fold", "csn": str(bulk.csn)})
                with step.publish(lease, {"reason": "most rows changed", "left": bulk.left}) as publishing:
                    publishing.show(logged[0], pin.after, pin.through)
                    publishing.show(logged[1], bulk.csn, bulk.csn)
        except UnlinkableError:
            return False
    return True


_PARTS = (Part.DELTA, Part.DELTA, Part.STATE, Part.STATE)


def _staged(spark: SparkSession, table: Relation, held: Stored, bulk: BulkUpdate, places: list[str]) -> _Sides:
    state, delta = held.folder(Part.STATE), held.folder(Part.DELTA)
    key = table.constraints.primary_key
    changes = delta.read(spark, bulk.files)
    gone = delta.stage(changes.where(sf.col(COUNT) < 0), places[0], sort=key)
    come = delta.stage(changes.where(sf.col(COUNT) > 0), places[1], sort=key)
    linked = state.link([Lent(delta.root / file.path) for file in come], places[3])
    if not bulk.left:
        return _Sides(gone, come, linked)
    before = delta_files(held, Interval(held.snapshot_csn, bulk.csn - 1))
    others = _WithDelta(held.name, held.schema, held.root, held.pins, changes=(*before, *gone))
    left = state.stage(timed.rows(spark, others, bulk.csn, key), places[2], sort=key)
    return _Sides(gone, come, (*left, *linked))
