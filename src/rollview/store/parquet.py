"""Staging: rows into Parquet files that nothing refers to yet, by Spark or, for small results, in this process.

Law: when ``write`` and ``collect_staged`` return, every file they name is whole, on disk, and holds at least one row.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rollview.core import durable, names
from rollview.core.interval import Interval
from rollview.core.lazy import lazy_module
from rollview.core.names import quoted
from rollview.core.schema import Schema
from rollview.engine.failures import advice, said
from rollview.errors import Corrupt, EngineFailed, EnvironmentFault
from rollview.store.buckets import BUCKET, Buckets, bucket_sql
from rollview.store.datafile import DataFile, inspect
from rollview.types.arrow import arrow_schema, is_atomic, spark_type

if TYPE_CHECKING:
    from pyspark import errors as spark_errors
    from pyspark.sql import DataFrame, DataFrameWriter

    from rollview.store import multiset
else:
    spark_errors = lazy_module("pyspark.errors")
    multiset = lazy_module("rollview.store.multiset")

_LOOKED_AT = 1000
_TIMESTAMPS = "spark.sql.parquet.outputTimestampType"
_WRITE_OPTIONS = {
    "compression": "zstd",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "mapreduce.fileoutputcommitter.algorithm.version": "2",
}


def write(
    data: DataFrame | pa.Table, place: Path, schema: Schema, buckets: Buckets | None, sort: tuple[str, ...]
) -> None:
    if isinstance(data, pa.Table):
        write_table(data, place, schema, buckets, sort)
        return
    try:
        write_frame(data, place, schema, buckets, sort)
    except spark_errors.PySparkException as error:
        failed = EngineFailed(f"Spark could not compute the rows: {said(error)}", hint=advice(error))
        raise multiset.negative_multiplicity(error) or failed from error


def write_frame(data: DataFrame, place: Path, schema: Schema, buckets: Buckets | None, sort: tuple[str, ...]) -> None:
    """One Spark job. With ``buckets``: one file per bucket."""
    physical = arrow_schema(schema)
    if any(pa.types.is_timestamp(field.type) for field in physical):
        _use_microseconds(data)
    columns = [
        f"CAST({quoted(column.name)} AS {spark_type(field.type)}) AS {quoted(field.name)}"
        for column, field in zip(schema, physical, strict=True)
    ]
    if buckets is not None:
        columns.append(f"concat({bucket_sql(buckets, schema)}, '-of-{buckets.count}') AS {BUCKET}")
    order = tuple(map(schema.stored, sort))
    _arranged(data.selectExpr(*columns), buckets is not None, order).parquet(uri(place))


def write_table(data: pa.Table, place: Path, schema: Schema, buckets: Buckets | None, sort: tuple[str, ...]) -> None:
    """In this process. With ``buckets`` the table brings its rows' buckets in a column ``_rv_bucket``."""
    physical = arrow_schema(schema)
    table = data.select(list(schema.names)).rename_columns(physical.names).cast(physical)
    sort = tuple(map(schema.stored, sort))
    if buckets is None:
        _write_sorted(table, place, sort)
        return
    bucket = data.column(BUCKET)
    for value in pc.unique(bucket).to_pylist():
        _write_sorted(table.filter(pc.equal(bucket, value)), place / f"{BUCKET}={value}-of-{buckets.count}", sort)


def write_for_now(data: pa.Table, place: Path, schema: Schema) -> None:
    """In this process, for one query: without what makes a file small or quick to search, and not synced."""
    physical = arrow_schema(schema)
    table = data.select(list(schema.names)).rename_columns(physical.names).cast(physical)
    if table.num_rows:
        target, plain = place / f"part-{uuid4().hex}.parquet", {"compression": "none", "use_dictionary": False}
        pq.write_table(
            table, target, store_schema=False, store_decimal_as_integer=True, write_statistics=False, **plain
        )


def collect_staged(root: Path, place: Path, schema: Schema) -> tuple[DataFile, ...]:
    """The files below ``place`` with their facts, synced; files without rows are taken away."""
    found: list[DataFile] = []
    folders: set[Path] = set()
    for path in sorted(Path(folder, name) for folder, _, files in os.walk(place) for name in files):
        file = inspect(root, path, arrow_schema(schema)) if _is_data(path) else None
        if file is None or file.rows == 0:
            path.unlink()
            continue
        found.append(file)
        folders.update((path.parent, place))
    durable.sync(root / file.path for file in found)
    durable.sync([*folders, root] if found else ())
    if not found:
        shutil.rmtree(place, ignore_errors=True)
    return tuple(found)


def columns(place: Path) -> list[str]:
    """What the columns of one file are called in it."""
    with whole(place):
        return list(pq.read_schema(place).names)


def load(place: Path, columns: list[str] | None = None, csns: Interval | None = None) -> pa.Table:
    """The rows of one file in this process; of a delta only those of ``csns``, if they are given."""
    inside = None if csns is None else [(names.CSN, ">", csns.after), (names.CSN, "<=", csns.through)]
    with whole(place):
        return pq.read_table(
            place, columns=columns, filters=inside, partitioning=None, coerce_int96_timestamp_unit="us"
        )


@contextmanager
def whole(place: Path) -> Iterator[None]:
    """While a file is read that is named by a version: it has to be there and whole."""
    try:
        yield
    except (FileNotFoundError, pa.ArrowException) as error:
        raise Corrupt(f"The file '{place}' is missing or not whole: {error}", path=str(place)) from error
    except OSError as error:
        # Arrow tells a footer that makes no sense by an error of this kind, too, but without a number.
        if error.errno is None:
            raise Corrupt(f"The file '{place}' is not whole: {error}", path=str(place)) from error
        raise EnvironmentFault(f"Cannot read '{place}': {error}", hint=durable.ADVICE, path=str(place)) from error


def uri(place: Path) -> str:
    """Hadoop takes the rest of such a text as it is, without decoding."""
    return f"file://{place}"


def _arranged(data: DataFrame, bucketed: bool, sort: tuple[str, ...]) -> DataFrameWriter:
    order = [quoted(name) for name in sort]
    if bucketed:
        sorted_ = data.repartition(BUCKET).sortWithinPartitions(BUCKET, *order)
        return sorted_.write.options(**_WRITE_OPTIONS).partitionBy(BUCKET)
    return (data.sortWithinPartitions(*order) if order else data).write.options(**_WRITE_OPTIONS)


def _is_data(path: Path) -> bool:
    return path.suffix == ".parquet" and not path.name.startswith((".", "_"))


def _write_sorted(table: pa.Table, place: Path, sort: tuple[str, ...]) -> None:
    place.mkdir(parents=True, exist_ok=True)
    if table.num_rows == 0:
        return
    if sort:
        table = table.sort_by([(name, "ascending") for name in sort])
    target = place / f"part-{uuid4().hex}.zstd.parquet"
    pq.write_table(
        table,
        target,
        compression="zstd",
        store_schema=False,
        store_decimal_as_integer=True,
        write_statistics=_with_true_bounds(table.schema),
        use_dictionary=_with_repeated_values(table),
    )


def _with_true_bounds(schema: pa.Schema) -> list[str]:
    """Columns whose bounds may be written: those of floats leave NaN out, and Spark would skip its rows by them."""
    return [field.name for field in schema if is_atomic(field.type) and not pa.types.is_floating(field.type)]


def _with_repeated_values(table: pa.Table) -> list[str]:
    """Columns that a dictionary makes smaller, by their first rows; others it makes larger, and slower to write."""
    first = table.slice(0, _LOOKED_AT)
    return [
        name
        for name, column in zip(first.column_names, first.columns, strict=True)
        if not is_atomic(column.type) or 2 * len(pc.unique(column)) <= first.num_rows
    ]


def _use_microseconds(data: DataFrame) -> None:
    conf = data.sparkSession.conf
    if conf.get(_TIMESTAMPS) != "TIMESTAMP_MICROS":
        conf.set(_TIMESTAMPS, "TIMESTAMP_MICROS")
