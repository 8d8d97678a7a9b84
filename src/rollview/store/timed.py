"""A relation read at a csn, before or after the csn of its snapshot.

Law: with the snapshot at s and the signed delta Δ,
    state(t) = snapshot + Δ(s, t]  for t >= s,      state(t) = snapshot - Δ(t, s]  for t < s.
Rows are added up as Spark's GROUP BY compares them, a table's with the signs of their zeroes. No row is ever there
fewer than zero times.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from operator import and_
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Protocol
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as sf

from rollview.catalog import NOT_KEPT
from rollview.core.interval import Csn, Interval
from rollview.core.names import COUNT, CSN
from rollview.core.schema import SIGNED, Schema
from rollview.errors import Corrupt, OutOfReach
from rollview.store import lifetimes, small
from rollview.store.buckets import hash_expression, is_hashed
from rollview.store.datafile import DataFile
from rollview.store.folder import DeltaFolder
from rollview.store.multiset import col, expand, negative_multiplicity, net, signed
from rollview.types.arrow import arrow_type, holds_map

__all__ = [
    "Stored",
    "changes",
    "csns_of",
    "delta_files",
    "few_changes",
    "few_rows",
    "few_timed_rows",
    "loaded_changes",
    "negative_multiplicity",
    "net",
    "only_inserts",
    "rows",
    "signed_state",
    "snapshot",
]

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

_GONE = "_rv_gone"
_BROADCAST_ROWS = 1_000_000
_GATHERED_ROWS = 400_000
FEW_ROWS = 20_000
"""Up to here it costs less to add up all rows in one task than to send the changes to where rows are read."""
_KEPT_SNAPSHOTS = 64

_kept: WeakKeyDictionary[SparkSession, OrderedDict[object, DataFrame]] = WeakKeyDictionary()
_kept_lock = Lock()


class PinLike(Protocol):
    """A pinned version of a part, and the csns that it covers: (after, through]."""

    @property
    def version(self) -> int: ...
    @property
    def after(self) -> Csn: ...
    @property
    def through(self) -> Csn: ...
    @property
    def rows(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Stored:
    """Where a relation's parts are. ``hidden``: a summary view's group keys and accumulators; its delta is of those.

    ``source``: where a table comes from; ``replaced``: csns at which its delta does not tell what changed.
    """

    name: str
    schema: Schema
    root: Path
    pins: Mapping[str, PinLike]
    hidden: Schema | None = None
    source: str | None = None
    replaced: tuple[Csn, ...] = ()

    @property
    def columns(self) -> Schema:
        """The columns that the delta is about."""
        return self.schema if self.hidden is None else self.hidden

    @property
    def is_table(self) -> bool:
        return "state" in self.pins

    @property
    def snapshot_part(self) -> str:
        return "state" if self.is_table else "extent" if self.hidden is None else "groups"

    @property
    def snapshot_csn(self) -> Csn:
        return self.pins[self.snapshot_part].through

    def folder(self, part: str) -> DeltaFolder:
        schema = self.schema if part in ("state", "extent", "bridge") else self.columns
        signed_part = part in ("delta", "bridge")
        return DeltaFolder(self.root / part, Schema(schema.columns + SIGNED) if signed_part else schema)

    def files(self, part: str) -> tuple[DataFile, ...]:
        if part in self.pins and self.pins[part].version == NOT_KEPT:
            raise OutOfReach(
                f"No rows of table '{self.name}' are kept here: its views read only its changes, or ask its source.",
                hint=f"To have them here as they are now, run: rollview source resnapshot {self.source}",
                name=self.name,
                source=self.source,
            )
        return self.folder(part).files(self.pins[part].version) if part in self.pins else ()


def delta_files(stored: Stored, interval: Interval) -> tuple[DataFile, ...]:
    """The files of the delta that may hold changes of the interval."""
    return tuple(file for file in stored.files("delta") if _meets(file, interval))


def changes(spark: SparkSession, stored: Stored, interval: Interval) -> DataFrame:
    """The columns with ``_count`` and ``_csn``, for every change in the interval."""
    _check_covered(stored, interval)
    files = delta_files(stored, interval)
    data = stored.folder("delta").read(spark, files)
    if all(is_inside(file, interval) for file in files):
        return data
    return data.where((sf.col(CSN) > interval.after) & (sf.col(CSN) <= interval.through))


def snapshot(spark: SparkSession, stored: Stored) -> DataFrame:
    part = stored.snapshot_part
    return stored.folder(part).read(spark, stored.files(part))


def signed_state(spark: SparkSession, stored: Stored, at: Csn) -> DataFrame:
    """The columns with ``_count``: rows of the snapshot once each, and the signed delta between it and ``at``."""
    way = way_to(stored, at)
    state = signed_snapshot(spark, stored)
    return state.unionAll(_signed_changes(spark, stored, way)) if delta_files(stored, way.interval) else state


def signed_snapshot(spark: SparkSession, stored: Stored) -> DataFrame:
    """A version of a part never changes, so a session keeps how it is read: that is all but the reading itself."""
    part = stored.snapshot_part
    key = (stored.root, part, stored.pins[part].version, stored.columns)
    with _kept_lock:
        kept = _kept.setdefault(spark, OrderedDict())
        found = kept.pop(key, None)
    if found is None:
        found = signed(snapshot(spark, stored))
    with _kept_lock:
        kept[key] = found
        if len(kept) > _KEPT_SNAPSHOTS:
            kept.popitem(last=False)
    return found


def rows(spark: SparkSession, stored: Stored, at: Csn, key: tuple[str, ...] = (), *, settled: bool = True) -> DataFrame:
    """The plain rows at ``at``: those that the delta does not name pass through as in a plain scan.

    ``key``: columns that are unique in the relation at every csn. With a key the rows that the delta deletes are
    taken to be there; without one that is proven, and the query fails if it is not so. ``settled``: the changes of the
    last csn are a net effect, as those of all csns are; a transaction's own may not be yet.
    """
    way = way_to(stored, at)
    files = delta_files(stored, way.interval)
    if not files:
        return snapshot(spark, stored)
    size = sum(file.rows for file in files)
    everything = size + stored.pins[stored.snapshot_part].rows
    if lifetimes.can_tell(stored.columns, key) and everything > FEW_ROWS:
        if not settled:
            return _rows_unsettled(spark, stored, at, key)
        part = stored.snapshot_part
        parts = (stored.folder(part), stored.files(part)), (stored.folder("delta"), files)
        return lifetimes.rows_by_key(spark, parts, key, way.interval, back=way.back, most=_BROADCAST_ROWS)
    if not way.back and all(only_inserts(file) for file in files):
        come = _inserted(spark, stored, way, files)
        return snapshot(spark, stored).unionAll(come) if stored.files(stored.snapshot_part) else come
    if any(holds_map(arrow_type(c.type, c.name)) for c in stored.columns):
        return expand(net(signed_state(spark, stored, at), stored.columns, apart=stored.is_table), stored.columns)
    if everything <= _GATHERED_ROWS:
        gathered = signed_state(spark, stored, at).coalesce(1)
        return expand(net(gathered, stored.columns, apart=stored.is_table), stored.columns)
    change = net(_gathered(_signed_changes(spark, stored, way), size), stored.columns, apart=stored.is_table)
    merge = _merge_keyed if key else _merge_rows
    return merge(stored, snapshot(spark, stored), change, key or stored.columns.names, size <= _BROADCAST_ROWS)


def _rows_unsettled(spark: SparkSession, stored: Stored, at: Csn, key: tuple[str, ...]) -> DataFrame:
    """The rows before the last csn, with the net effect of its changes."""
    last = Interval(at - 1, at)
    size = sum(file.rows for file in delta_files(stored, last))
    own = along(changes(spark, stored, last), back=False)
    change = net(_gathered(own, size), stored.columns, apart=stored.is_table)
    return _merge_keyed(stored, rows(spark, stored, at - 1, key), change, key, size <= _BROADCAST_ROWS)


def _inserted(spark: SparkSession, stored: Stored, way: Way, files: tuple[DataFile, ...]) -> DataFrame:
    """What a delta without deletions brings; nothing has to be repeated where every row is there by itself."""
    come = _signed_changes(spark, stored, way)
    if all(file.bounds(COUNT) == (1, 1) for file in files):
        return come.select(*map(col, stored.columns.names))
    return expand(come, stored.columns)


def few_rows(stored: Stored, at: Csn, most: int) -> pa.Table | None:
    """The same rows in this process, or None if more than ``most`` would be read, or Spark must tell them apart."""
    way, part = way_to(stored, at), stored.snapshot_part
    files, changed = stored.files(part), delta_files(stored, way.interval)
    if sum(file.rows for file in (*files, *changed)) > most or not small.can_add_up(stored.columns):
        return None
    state = stored.folder(part).load(files)
    return small.add_up(state, _loaded_way(stored, way, changed), stored.columns) if changed else state


def few_timed_rows(stored: Stored, interval: Interval, most_files: int) -> pa.Table | None:
    """In this process: the rows at the interval's start, at csn 0, and its changes. They are known to be few.

    A row that came and went before is left out: it would meet all that its partners in a join ever were. None where
    they are in more files than that, or in files of others, which Spark reads by its own rules.
    """
    way, part = way_to(stored, interval.after), stored.snapshot_part
    _check_covered(stored, interval)
    state, before, inside = stored.files(part), delta_files(stored, way.interval), delta_files(stored, interval)
    files = (*state, *before, *inside)
    if len(files) > most_files or any(file.linked for file in files):
        return None
    rows = stored.folder(part).load(state)
    rows = rows.append_column(COUNT, pa.repeat(pa.scalar(1, pa.int64()), rows.num_rows))
    rows = pa.concat_tables([rows, _loaded_way(stored, way, before).drop_columns(CSN)])
    return with_changes(small.net_if_told_apart(rows), stored, interval)


def with_changes(rows: pa.Table, stored: Stored, interval: Interval) -> pa.Table:
    """Signed rows at the interval's start, at csn 0, and its changes."""
    rows = rows.append_column(CSN, pa.repeat(pa.scalar(0, pa.int64()), rows.num_rows))
    return pa.concat_tables([rows, loaded_changes(stored, interval)])


def loaded_changes(stored: Stored, interval: Interval) -> pa.Table:
    """The same as ``changes``, in this process."""
    _check_covered(stored, interval)
    return _loaded(stored, interval, delta_files(stored, interval))


def few_changes(stored: Stored, interval: Interval, most: int, most_files: int) -> pa.Table | None:
    """In this process: the changes of the interval. None where more rows would be read, and as above."""
    files = delta_files(stored, interval)
    if sum(file.rows for file in files) > most or len(files) > most_files or any(file.linked for file in files):
        return None
    return _loaded(stored, interval, files)


def _loaded_way(stored: Stored, way: Way, files: tuple[DataFile, ...]) -> pa.Table:
    """The changes on the way, as they were or undone."""
    changes = _loaded(stored, way.interval, files)
    place = changes.schema.get_field_index(COUNT)
    return changes.set_column(place, COUNT, pc.negate(changes[COUNT])) if way.back else changes


def _loaded(stored: Stored, interval: Interval, files: tuple[DataFile, ...]) -> pa.Table:
    changes = stored.folder("delta").load(files)
    return changes.filter(
        pc.and_(pc.greater(changes[CSN], interval.after), pc.less_equal(changes[CSN], interval.through))
    )


@dataclass(frozen=True, slots=True)
class Way:
    """From the snapshot to a csn."""

    interval: Interval
    back: bool


def way_to(stored: Stored, at: Csn) -> Way:
    start = stored.snapshot_csn
    interval = Interval(min(start, at), max(start, at))
    _check_covered(stored, interval)
    return Way(interval, at < start)


def _signed_changes(spark: SparkSession, stored: Stored, way: Way) -> DataFrame:
    return along(changes(spark, stored, way.interval), back=way.back)


def along(data: DataFrame, *, back: bool) -> DataFrame:
    """Changes as signed rows: as they were, or undone."""
    signed_rows = data.drop(CSN)
    return signed_rows.withColumn(COUNT, -sf.col(COUNT)) if back else signed_rows


def _gathered(data: DataFrame, size: int) -> DataFrame:
    """Few rows are added up where they are read, without a shuffle."""
    return data.coalesce(1) if size <= _GATHERED_ROWS else data


def _check_covered(stored: Stored, interval: Interval) -> None:
    """A table's delta is complete up to the clock, so only its lower end is a limit; a view's has two ends."""
    untold = next((csn for csn in stored.replaced if csn in interval), None)
    if untold is not None:
        raise OutOfReach(
            f"Cannot read '{stored.name}' over {interval}: it was copied anew at csn {untold}, "
            "and what changed then is not known.",
            hint=f"Choose csns from {untold} on.",
            name=stored.name,
            csn=untold,
        )
    pin = stored.pins.get("delta")
    after = stored.snapshot_csn if pin is None else pin.after
    through = stored.snapshot_csn if pin is None else pin.through
    if not interval or (after <= interval.after and ("state" in stored.pins or interval.through <= through)):
        return
    raise OutOfReach(
        f"Cannot read '{stored.name}' over {interval}: its delta covers {Interval(after, through)}.",
        hint="Choose a csn in reach, or refresh the view first.",
        name=stored.name,
        after=after,
        through=through,
    )


def _merge_keyed(stored: Stored, state: DataFrame, change: DataFrame, key: tuple[str, ...], few: bool) -> DataFrame:
    """Rows whose key the delta deletes go, rows it inserts come: one pass over the snapshot."""
    schema = stored.columns
    kept = state.join(_gone(change, schema, few), _same(schema, key), "left_anti")
    return kept.unionAll(_come(change, schema))


def _merge_rows(stored: Stored, state: DataFrame, change: DataFrame, key: tuple[str, ...], few: bool) -> DataFrame:
    """As many copies go as the delta deletes: only rows with the hash of one that it names are counted."""
    schema = stored.columns
    if is_hashed(schema):
        hashed = hash_expression(schema, schema.names)
        named = change.where(sf.col(COUNT) < 0).select(hashed.alias(_GONE))
        gone, same = sf.broadcast(named) if few else named, hashed == sf.col(_GONE)
    else:
        gone, same = _gone(change, schema, few), _same(schema, key)
    touched = signed(state.join(gone, same, "left_semi"))
    left = net(touched.unionAll(change.where(sf.col(COUNT) < 0)), schema, apart=stored.is_table)
    rest = expand(left, schema)
    return state.join(gone, same, "left_anti").unionAll(rest).unionAll(_come(change, schema))


def _gone(change: DataFrame, schema: Schema, few: bool) -> DataFrame:
    """What the delta deletes, under names of their own so that a join can tell the sides apart."""
    columns = [col(name).alias(f"{_GONE}_{place}") for place, name in enumerate(schema.names)]
    data = change.where(sf.col(COUNT) < 0).select(*columns)
    return sf.broadcast(data) if few else data


def _come(change: DataFrame, schema: Schema) -> DataFrame:
    return expand(change.where(sf.col(COUNT) > 0), schema)


def _same(schema: Schema, key: tuple[str, ...]) -> SparkColumn:
    wanted = {name.lower() for name in key}
    pairs = [(name, place) for place, name in enumerate(schema.names) if name.lower() in wanted]
    return reduce(and_, (col(name).eqNullSafe(sf.col(f"{_GONE}_{place}")) for name, place in pairs))


def csns_of(file: DataFile) -> tuple[Csn, Csn]:
    """The first and the last csn of a delta file."""
    bounds = file.bounds(CSN)
    if bounds is None:
        raise Corrupt(f"The delta file {file.path!r} does not say which csns it holds.", path=file.path)
    return bounds


def _meets(file: DataFile, interval: Interval) -> bool:
    first, last = csns_of(file)
    return last > interval.after and first <= interval.through


def is_inside(file: DataFile, interval: Interval) -> bool:
    first, last = csns_of(file)
    return first > interval.after and last <= interval.through


def only_inserts(file: DataFile) -> bool:
    """Whether no row of the delta file deletes one."""
    bounds = file.bounds(COUNT)
    return bounds is not None and bounds[0] > 0
