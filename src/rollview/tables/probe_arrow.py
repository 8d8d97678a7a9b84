"""Keys looked up in this process: for few keys whose equality Arrow and Spark agree on.

Law: files are read in batches of which only rows that may have a key are kept, so memory follows the keys.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from rollview.core.names import COUNT, CSN
from rollview.store.datafile import Bounds, DataFile, safe_places
from rollview.store.parquet import whole
from rollview.tables.probe import Count, Key, Rows, Test
from rollview.types.arrow import arrow_type

MOST_SCANNED = 500_000_000
"""Values in all, after files whose bounds prove that they have none of the keys."""
_SUM = "sum"
_ASKED = "asked"


class TooLargeError(Exception):
    """More rows to look through than this process should read."""


class ArrowProbe:
    def touched(self, rows: Rows, columns: Sequence[str], *, with_null: bool = False) -> pa.Table:
        found = _read(rows, columns, None)
        keys = found.filter(pc.greater(found[_SUM], 0)).select(_names(columns))
        if not with_null:
            keys = keys.drop_null()
        return keys.group_by(keys.column_names).aggregate([])

    def having(self, keys: pa.Table, held: Iterable[Rows], columns: Sequence[str], test: Test) -> pa.Table:
        if not keys.num_rows:
            return keys
        asked = keys.append_column(_SUM, _full(keys, 0)).append_column(_ASKED, _full(keys, 1))
        read = [_read(rows, columns, keys) for rows in held]
        found = [table.append_column(_ASKED, _full(table, 0)) for table in read]
        totals = pa.concat_tables([asked, *found]).group_by(keys.column_names)
        summed = totals.aggregate([(_SUM, "sum"), (_ASKED, "max")])
        kept = pc.and_(_passes(summed[f"{_SUM}_sum"], test), pc.equal(summed[f"{_ASKED}_max"], 1))
        return summed.filter(kept).select(keys.column_names)

    def first(self, keys: pa.Table) -> Key | None:
        return tuple(keys.slice(0, 1).to_pylist()[0].values()) if keys.num_rows else None


def _passes(sums: pa.ChunkedArray, test: Test) -> Any:
    if test is Test.NONE:
        return pc.equal(sums, 0)
    if test is Test.MISSING:
        return pc.less(sums, 0)
    return pc.greater(sums, 0 if test is Test.SOME else 1)


def _read(rows: Rows, columns: Sequence[str], keys: pa.Table | None) -> pa.Table:
    """The key columns as k0, k1, … and what each row counts for; if ``keys`` are given, at least the rows with them."""
    files = rows.files if keys is None else files_with(rows, columns, keys)
    if sum(file.rows for file in files) * len(columns) > MOST_SCANNED:
        raise TooLargeError
    wanted = {name: arrow_type(column.type, name) for name in columns if (column := rows.folder.schema.find(name))}
    schema = pa.schema([(place, type_) for place, type_ in zip(_names(columns), wanted.values(), strict=True)])
    if not files:
        return schema.append(pa.field(_SUM, pa.int64())).empty_table()
    table = _scanned(rows, files, columns, schema, keys)
    return table.select(schema.names).append_column(_SUM, _counts(table, rows.count))


def _scanned(
    rows: Rows, files: tuple[DataFile, ...], columns: Sequence[str], schema: pa.Schema, keys: pa.Table | None
) -> pa.Table:
    """The rows that may have a key, with what tells how they count."""
    if any(column.late for column in rows.folder.schema.only(columns)):
        raise TooLargeError
    extra = [] if rows.count is Count.ONE else [COUNT, CSN]
    physical = [rows.folder.schema.stored(name) for name in columns]
    source = ds.dataset([str(place) for place in safe_places(rows.folder.root, tuple(files))], format="parquet")
    typed = pa.schema([*schema, *((name, pa.int64()) for name in extra)])
    inside = _inside(rows)
    if keys is None:
        scan = source.scanner(columns=[*physical, *extra], filter=inside)
        return pa.Table.from_batches((_typed(batch, typed) for batch in scan.to_batches()), typed)
    # Rows with a key are few, so all else is done to them alone.
    values = [pc.unique(column) for column in keys.columns]
    batches = source.scanner(columns=[*physical, *extra]).to_batches()
    found = pa.Table.from_batches((_typed(_with_values(batch, typed, values), typed) for batch in batches), typed)
    return found if inside is None else found.filter(inside)


def _typed(batch: pa.RecordBatch, typed: pa.Schema) -> pa.RecordBatch:
    return batch.rename_columns(typed.names).cast(typed)


def _with_values(batch: pa.RecordBatch, typed: pa.Schema, values: Sequence[pa.ChunkedArray]) -> pa.RecordBatch:
    for place, asked in enumerate(values):
        column = batch.column(place).cast(typed.field(place).type)
        batch = batch.filter(pc.is_in(column, value_set=asked))
    return batch


def _inside(rows: Rows) -> Any:
    if rows.between is None:
        return None
    return (pc.field(CSN) > rows.between.after) & (pc.field(CSN) <= rows.between.through)


def _counts(table: pa.Table, count: Count) -> pa.ChunkedArray | pa.Array:
    if count is Count.ONE:
        return _full(table, 1)
    if count is Count.SIGNED:
        return table[COUNT]
    sign = pc.less if count is Count.DELETED else pc.greater
    return pc.cast(sign(table[COUNT], 0), pa.int64())


def files_with(rows: Rows, columns: Sequence[str], keys: pa.Table) -> tuple[DataFile, ...]:
    """The files that may have one of the keys: by their bounds and, where a key is of several columns, by the first of
    these, which takes less to read than all of them."""
    asked = pc.unique(keys.column(0))
    name = rows.folder.schema.stored(columns[0])
    ordered = [] if asked.null_count else sorted(asked.to_pylist())
    found = tuple(file for file in rows.files if _may_hold(file.bounds(name), ordered))
    if len(columns) == 1:
        return found
    if sum(file.rows for file in found) > MOST_SCANNED:
        raise TooLargeError
    places = safe_places(rows.folder.root, found)
    return tuple(file for file, place in zip(found, places, strict=True) if _holds(place, name, asked))


def _holds(place: Path, name: str, asked: pa.Array) -> bool:
    """Whether the column of the file has one of the values."""
    with whole(place), pq.ParquetFile(place) as opened:
        if name not in opened.schema_arrow.names:
            return True
        batches = (batch.column(0).cast(asked.type) for batch in opened.iter_batches(columns=[name]))
        return any(pc.any(pc.is_in(values, value_set=asked)).as_py() for values in batches)


def _may_hold(bounds: Bounds | None, ordered: Sequence[Any]) -> bool:
    """False only if the file's bounds prove that it has none of the values; without values nothing is proven."""
    if bounds is None or not ordered:
        return True
    if not all(_is_ordered(value) and type(value) is type(ordered[0]) for value in (ordered[0], *bounds)):
        return True
    return bisect_left(ordered, bounds[0]) < bisect_right(ordered, bounds[1])


def _is_ordered(value: Any) -> bool:
    return isinstance(value, int | str | date) and not isinstance(value, datetime)


def _names(columns: Sequence[str]) -> list[str]:
    return [f"k{place}" for place in range(len(columns))]


def _full(table: pa.Table, value: int) -> pa.Array:
    return pa.array(np.full(table.num_rows, value, dtype=np.int64))
