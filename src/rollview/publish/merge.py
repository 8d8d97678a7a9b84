"""Small files of a part become few.

Law: every row stays, with its count and its csn, and each new file says exactly which of both it holds. So no answer
changes at any csn, and a reader of an interval still finds its files by their bounds.

Files of a delta are merged in the order of their csns and never across a csn from which somebody reads on, so that a
reader of what is new does not read what is old.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from rollview.catalog import Catalog, Lease, Part, Relation, Snapshot
from rollview.core.interval import Csn, Interval
from rollview.core.names import CSN
from rollview.errors import RollviewError
from rollview.publish.rewrite import Files, Rewriting, Rewritten, copied, rewrite, stored
from rollview.store.datafile import DataFile
from rollview.store.folder import DeltaFolder
from rollview.store.writing import BOUND

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GetSpark = Callable[[], "SparkSession"]
"""The session, started when it is first needed."""

MANY = 100
"""So many files of a delta are merged after a commit or refresh, without being asked."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Size:
    """Files below the half of it are small; what is merged stays below all of it."""

    rows: int
    bytes: int

    def is_small(self, file: DataFile) -> bool:
        return 2 * file.rows < self.rows and 2 * file.size < self.bytes

    def holds(self, files: Sequence[DataFile]) -> bool:
        return sum(f.rows for f in files) <= self.rows and sum(f.size for f in files) <= self.bytes


BY_ARROW = Size(BOUND, 64 << 20)
BY_SPARK = Size(20 * BOUND, 128 << 20)


def size_for(files: Files, at: Sequence[Csn] = ()) -> Size:
    """In this process as long as that leaves few files."""
    saved = sum(len(group) - 1 for group in grouped(files, BY_ARROW, at))
    return BY_ARROW if len(files) - saved <= MANY else BY_SPARK


def merge_if_many(root: Path, catalog: Catalog, names: Iterable[str], snapshot: Snapshot | None = None) -> None:
    """Merge where a delta has many files, in this process. Never raises: all is as right with many."""
    try:
        present = snapshot or catalog.snapshot()
        for name in names:
            relation = present.find(name)
            if relation is not None and _has_many(present, root, relation):
                with catalog.lease(f"relation:{relation.name}", wait=0) as lease:
                    merge(root, catalog, lease, relation.name, Part.DELTA)
    except (RollviewError, OSError, pa.ArrowException) as error:
        _log.info("small files not merged: %s", error)


def merge(
    root: Path, catalog: Catalog, lease: Lease, name: str, part: Part, spark: GetSpark | None = None
) -> Rewritten | None:
    """One merged file for each group of small ones; None if there is nothing to merge. Without Spark: small groups."""
    snapshot = catalog.snapshot()
    relation = snapshot.get(name)
    held, pin = stored(snapshot, root, relation), relation.pins[part]
    groups = groups_of(snapshot, relation, part, held.files(part), BY_ARROW if spark is None else None)
    if not groups:
        return None
    removed = tuple(file for group in groups for file in group)
    work = Rewriting(relation, part, "merge", Interval(pin.after, pin.through), removed, pin.after, pin.through)
    sort = (CSN,) if part is Part.DELTA else relation.constraints.primary_key

    def write(folder: DeltaFolder, places: Sequence[str]) -> Files:
        return tuple(
            file
            for group, place in zip(groups, places, strict=True)
            for file in _merged(folder, group, place, spark, sort)
        )

    return rewrite(catalog, lease, root, work, copied(relation, held).folder(part), write, len(groups))


def groups_of(
    snapshot: Snapshot, relation: Relation, part: Part, files: Files, size: Size | None = None
) -> tuple[Files, ...]:
    at = breaks(snapshot, relation) if part is Part.DELTA else ()
    return grouped(files, size or size_for(files, at), at)


def grouped(files: Iterable[DataFile], size: Size, at: Sequence[Csn] = ()) -> tuple[Files, ...]:
    """Small files that lie side by side, at least two in a group. Files of buckets stay, and those of others."""
    groups: list[list[DataFile]] = [[]]
    small = (file for file in files if file.bucket is None and not file.linked and size.is_small(file))
    for file in sorted(small, key=_place):
        if groups[-1] and not (size.holds([*groups[-1], file]) and _together(groups[-1][-1], file, at)):
            groups.append([])
        groups[-1].append(file)
    return tuple(tuple(group) for group in groups if len(group) > 1)


def breaks(snapshot: Snapshot, relation: Relation) -> tuple[Csn, ...]:
    """The csns from which somebody reads this delta on: its own snapshots, and the marks of its readers."""
    own = {pin.through for part, pin in relation.pins.items() if part is not Part.DELTA}
    marks = {reader.pins[Part.DELTA].through for reader in snapshot.readers(relation.name)}
    return tuple(sorted(own | marks))


def _has_many(snapshot: Snapshot, root: Path, relation: Relation) -> bool:
    files = stored(snapshot, root, relation).files(Part.DELTA)
    if len(files) < MANY:
        return False
    groups = groups_of(snapshot, relation, Part.DELTA, files, BY_ARROW)
    # Merging a handful again and again would write much and save little.
    return sum(len(group) - 1 for group in groups) >= MANY // 4


def _merged(folder: DeltaFolder, files: Files, place: str, spark: GetSpark | None, sort: tuple[str, ...]) -> Files:
    if spark is None or sum(file.rows for file in files) <= BOUND:
        return folder.stage(folder.load(files), place, sort=sort)
    return folder.stage(folder.read(spark(), files).coalesce(1), place, sort=sort)


def _place(file: DataFile) -> tuple[int, int, str]:
    first, last = file.bounds(CSN) or (0, 0)
    return first, last, file.path


def _together(left: DataFile, right: DataFile, at: Sequence[Csn]) -> bool:
    """Whether no csn of ``at`` lies between them."""
    ends, begins = left.bounds(CSN), right.bounds(CSN)
    return ends is None or begins is None or not any(ends[1] <= csn < begins[0] for csn in at)
