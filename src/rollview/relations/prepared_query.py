"""Prepared queries: analysed and planned by Spark once, then run again over other files.

Law: two runs of a prepared query are the same text over inputs of the same shape. What differs between them are whole
files: each input that moves has a folder, filled before every run with links, or with one file where rows have to be
cut out of theirs: the timed rows of a small table, and the changes of an interval that ends inside a file. Where these
are too many there is no prepared query, and the ordinary way is taken. One that is in use is nobody else's: its folders
are filled again only when it was given back.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, finalize

import pyarrow as pa

from rollview.algebra.script import InputForm
from rollview.algebra.summary import GROUPS
from rollview.algebra.view import Propagation
from rollview.catalog import RelationKind
from rollview.core.interval import Interval
from rollview.core.phases import phase
from rollview.engine.abilities import sees_local_links
from rollview.engine.analysed import Analysed, file_index
from rollview.relations.reader import MOST_FILES, Reader, prepared
from rollview.store import timed
from rollview.store.datafile import DataFile, safe_places
from rollview.store.folder import DeltaFolder
from rollview.store.parquet import write_for_now
from rollview.store.timed import Stored

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MOST_KEPT = 64
_MOST_CUT = 200_000
"""So many rows are read at most where an interval ends inside a file."""

_kept: WeakKeyDictionary[SparkSession, OrderedDict[object, list[PreparedQuery]]] = WeakKeyDictionary()
"""Those that nobody uses; several of one kind where several were used side by side."""
_lock = Lock()


@contextmanager
def prepared_query(
    reader: Reader, propagation: Propagation, interval: Interval, groups_of: str | None
) -> Iterator[DataFrame | None]:
    """The propagation over the interval, its deltas in one piece; ``groups_of``: a summary view whose groups it reads.

    None if it cannot be a prepared query. The result is to be used before the block ends.
    """
    key, found = _taken(reader, propagation, interval, groups_of)
    try:
        yield None if found is None else found.again()
    finally:
        if found is not None:
            _give_back(reader.spark, key, found)


@phase("prepare query")
def _taken(
    reader: Reader, propagation: Propagation, interval: Interval, groups_of: str | None
) -> tuple[object, PreparedQuery | None]:
    """The query over these inputs, one that nobody uses or a new one, and what it is kept by."""
    if not sees_local_links(reader.spark):
        return None, None
    inputs = _inputs(reader, propagation, interval, groups_of)
    if inputs is None:
        return None, None
    key = (propagation, *(one.shape for one in inputs))
    with _lock:
        kept = _kept.setdefault(reader.spark, OrderedDict())
        idle = kept.get(key)
        found = idle.pop() if idle else None
    try:
        if found is None:
            return key, _analysed(reader.spark, propagation, inputs)
        found.move(inputs)
    except OSError:
        # the folders of links are gone, or there is no room for them: the ordinary way needs none
        return None, None
    return key, found


def _give_back(spark: SparkSession, key: object, found: PreparedQuery) -> None:
    with _lock:
        kept = _kept.setdefault(spark, OrderedDict())
        kept.setdefault(key, []).append(found)
        kept.move_to_end(key)
        if len(kept) > _MOST_KEPT:
            kept.popitem(last=False)


@dataclass(frozen=True, slots=True)
class _Input:
    """One input of a query: the stored rows of a version if ``snapshot``, and the rows of ``files``, which move.

    ``rows``: they are these, in no files yet.
    """

    name: str
    stored: Stored
    part: str
    files: tuple[DataFile, ...]
    snapshot: bool = False
    back: bool = False
    rows: pa.Table | None = None

    @property
    def moves(self) -> bool:
        """Not so if it is the stored rows of a version alone."""
        return bool(self.files) or self.rows is not None or not self.snapshot

    @property
    def size(self) -> int:
        """Bytes that move."""
        return sum(file.size for file in self.files) + (0 if self.rows is None else self.rows.nbytes)

    @property
    def shape(self) -> object:
        version = self.stored.pins[self.stored.snapshot_part].version if self.snapshot else None
        return self.name, self.stored.root, self.stored.columns, version, self.moves, self.back

    @property
    def folder(self) -> DeltaFolder:
        return self.stored.folder(self.part)

    def over(self, spark: SparkSession, moving: DataFrame | None) -> DataFrame:
        if not self.snapshot:
            assert moving is not None
            return moving if self.part == "groups" else moving.coalesce(1)
        state = timed.signed_snapshot(spark, self.stored)
        return state if moving is None else state.unionAll(timed.along(moving, back=self.back))


class _Links:
    """A folder that Spark reads, with links to the files, or the rows, that it is to see this time."""

    def __init__(self, spark: SparkSession, one: _Input) -> None:
        self._home = Path(tempfile.mkdtemp(prefix="rollview-"))
        finalize(self, shutil.rmtree, self._home, ignore_errors=True)
        self._fill(one)
        self.frame = one.folder.read_folder(spark, self._home)
        self._index = file_index(self.frame)

    def move(self, one: _Input) -> None:
        for link in self._home.iterdir():
            link.unlink()
        self._fill(one)
        self._index.refresh()

    def _fill(self, one: _Input) -> None:
        self.size = one.size
        if one.rows is not None:
            write_for_now(one.rows, self._home, one.folder.schema)
        for number, place in enumerate(safe_places(one.folder.root, one.files)):
            (self._home / f"{number}-{place.name}").symlink_to(place.absolute())


@dataclass(frozen=True, slots=True)
class PreparedQuery:
    query: Analysed
    links: tuple[_Links, ...]

    def again(self) -> DataFrame:
        return self.query.again(sum(links.size for links in self.links))

    def move(self, inputs: tuple[_Input, ...]) -> None:
        for links, one in zip(self.links, _moving(inputs), strict=True):
            links.move(one)


def _moving(inputs: tuple[_Input, ...]) -> Iterator[_Input]:
    return (one for one in inputs if one.moves)


def _analysed(spark: SparkSession, propagation: Propagation, inputs: tuple[_Input, ...]) -> PreparedQuery | None:
    stages = prepared(propagation, tuple(one.name for one in inputs))
    if len(stages) > 1:
        return None
    links = {one.name: _Links(spark, one) for one in _moving(inputs)}
    frames = {one.name: one.over(spark, links[one.name].frame if one.moves else None) for one in inputs}
    return PreparedQuery(Analysed(stages[0][1].run(spark, frames), keeps_plan=True), tuple(links.values()))


def _inputs(
    reader: Reader, propagation: Propagation, interval: Interval, groups_of: str | None
) -> tuple[_Input, ...] | None:
    """In one order always; None if one of them has to be read the ordinary way."""
    found = [_input(reader, name, what, interval) for name, what in sorted(propagation.inputs)]
    if groups_of is not None:
        found.append(_groups(reader.stored(groups_of), interval))
    inputs = tuple(one for one in found if one is not None)
    return inputs if len(inputs) == len(found) else None


def _input(reader: Reader, name: str, what: InputForm, interval: Interval) -> _Input | None:
    if reader.snapshot.get(name).kind is RelationKind.VIEW or what == "rows":
        return None
    stored, interval = reader.stored(name), reader.interval_of(name, interval)
    if what == "timed":
        rows = reader.few_timed_rows(name, interval)
        return _Input(f"{name}@timed", stored, "delta", (), rows=rows) if rows is not None else None
    if what == "delta":
        return _changes(f"{name}@delta", stored, interval)
    if name in reader.stand_ins:
        return None
    way = timed.way_to(stored, interval.after)
    return _changes(f"{name}@old", stored, way.interval, snapshot=True, back=way.back)


def _changes(
    name: str, stored: Stored, interval: Interval, *, snapshot: bool = False, back: bool = False
) -> _Input | None:
    files = timed.delta_files(stored, interval)
    if all(timed.is_inside(file, interval) for file in files):
        return _Input(name, stored, "delta", files, snapshot, back)
    rows = timed.few_changes(stored, interval, _MOST_CUT, MOST_FILES)
    return _Input(name, stored, "delta", (), snapshot, back, rows) if rows is not None else None


def _groups(stored: Stored, interval: Interval) -> _Input | None:
    files = stored.files("groups")
    return _Input(GROUPS, stored, "groups", files) if files and stored.snapshot_csn == interval.after else None
