"""Rows of a relation with a key, at a csn, in one pass over its files.

Law: a key is there at most once at any csn, and the changes of a key at one csn are a net effect: at most one row goes
and one comes. So a row lives from the csn that inserts it, the snapshot's rows from before all of them, until the next
csn that deletes its key; rolled back, a row lived from the last csn before which its key was inserted. Nothing has to
be added up: rows are read as in a plain scan, and dropped if the delta ends their lives on the way. Where they are
many, a row whose key has a bit that no ending key has (``key_bits``) passes without being looked up.

Conditions are given to Spark as text: each part of an expression that is built here is a message to its process.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow.compute as pc
from pyspark.sql import functions as sf

from rollview.core.interval import Interval
from rollview.core.names import COUNT, CSN, quoted
from rollview.core.schema import SIGNED, Schema
from rollview.store.buckets import hash_expression, hash_sql, is_hashed_whole
from rollview.store.datafile import DataFile
from rollview.store.folder import DeltaFolder, read_together
from rollview.store.key_bits import can_mark, key_bits, maybe_marked

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

_END = "_rv_end"
_BEFORE_ALL, _AFTER_ALL = -1, (1 << 63) - 1
_MANY_ROWS = 200_000
"""From here on looking up each row takes longer than making the bits."""
_FEW_ENDS, _FEW_FILES = 500_000, 100
"""Up to here the keys of changes are read in this process."""


def can_tell(schema: Schema, key: tuple[str, ...]) -> bool:
    """Whether equal keys have equal hashes, and can be compared as well."""
    return bool(key) and is_hashed_whole(schema, key)


def rows_by_key(
    spark: SparkSession,
    parts: tuple[tuple[DeltaFolder, tuple[DataFile, ...]], tuple[DeltaFolder, tuple[DataFile, ...]]],
    key: tuple[str, ...],
    interval: Interval,
    *,
    back: bool,
    most: int,
) -> DataFrame:
    """``parts``: the snapshot, and the delta with its files that meet the interval between the snapshot and the csn.

    ``most``: so many changes are sent to where the rows are read, rather than rows to where the changes are.
    """
    (snapshot, _), (delta, files) = parts
    schema = snapshot.schema
    data = read_together(spark, Schema(schema.columns + SIGNED), parts)
    alive = data.where(f"{COUNT} IS NULL OR ({_begins(back)} AND {_between(interval)})")
    ending = tuple(file for file in files if _may_end(file, back))
    if ending:
        changes = delta.read(spark, ending).where(f"NOT ({_begins(back)}) AND {_between(interval)}")
        ends = changes.selectExpr(*_ends(schema, key))
        few = sum(file.rows for file in ending) <= most
        sought = hash_expression(schema, key)
        if _has_many_rows(*parts) and _are_few(ending) and can_mark(schema, key):
            # NULL is found nowhere, and is not even looked for.
            sought = sf.when(_maybe_ended(spark, (delta, ending), key, interval, back), sought)
        same = (sought == sf.col(f"{_END}_hash")) & sf.expr(_ended(schema, key, back))
        alive = alive.join(sf.broadcast(ends) if few else ends, same, "left_anti")
    return alive.drop(COUNT, CSN)


def _has_many_rows(*parts: tuple[DeltaFolder, tuple[DataFile, ...]]) -> bool:
    """In the snapshot, or in the delta where a load is that no snapshot has yet."""
    return sum(file.rows for _, files in parts for file in files) >= _MANY_ROWS


def _are_few(files: tuple[DataFile, ...]) -> bool:
    few_rows = sum(file.rows for file in files) <= _FEW_ENDS
    return few_rows and len(files) <= _FEW_FILES and not any(file.linked for file in files)


def _maybe_ended(
    spark: SparkSession,
    changes: tuple[DeltaFolder, tuple[DataFile, ...]],
    key: tuple[str, ...],
    interval: Interval,
    back: bool,
) -> SparkColumn:
    delta, files = changes
    rows = delta.load_columns(files, (*key, COUNT), interval)
    ends = rows.filter((pc.greater if back else pc.less)(rows[COUNT], 0))
    return maybe_marked(spark, key_bits(ends, delta.schema, key), delta.schema, key)


def _begins(back: bool) -> str:
    """On the way to the csn this row comes, rather than goes."""
    return f"{COUNT} < 0" if back else f"{COUNT} > 0"


def _may_end(file: DataFile, back: bool) -> bool:
    bounds = file.bounds(COUNT)
    return bounds is None or (bounds[1] > 0 if back else bounds[0] < 0)


def _between(interval: Interval) -> str:
    return f"{CSN} > {interval.after} AND {CSN} <= {interval.through}"


def _ends(schema: Schema, key: tuple[str, ...]) -> Iterator[str]:
    """The keys with the csns at which rows with them end, under names of their own."""
    yield f"{hash_sql(schema, key)} AS {_END}_hash"
    yield from (f"{quoted(column.name)} AS {_END}_{place}" for place, column in enumerate(schema.only(key)))
    yield f"{CSN} AS {_END}_csn"


def _ended(schema: Schema, key: tuple[str, ...], back: bool) -> str:
    """One number is looked up for each row; the key itself is compared only where that is found.

    An equality of the key's own columns would become a part of what is looked up, which is several times slower.
    """
    same = [_equal(quoted(column.name), f"{_END}_{place}") for place, column in enumerate(schema.only(key))]
    csn = f"coalesce({CSN}, {_AFTER_ALL if back else _BEFORE_ALL}L)"
    return " AND ".join([*same, f"{_END}_csn {'<' if back else '>'} {csn}"])


def _equal(own: str, other: str) -> str:
    """As GROUP BY means it: NULL is one value."""
    return f"coalesce({own} >= {other} AND {own} <= {other}, {own} IS NULL AND {other} IS NULL)"
