"""Rows become staged files: through Arrow on the driver when they are few, by the executors when they are not.

Law: the driver never holds more than ``BOUND`` rows of a result, whatever the size of the data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from rollview.core.names import quoted
from rollview.core.phases import phase
from rollview.core.schema import Schema
from rollview.engine.failures import spark_failures
from rollview.engine.meter import Meter
from rollview.errors import RollviewError
from rollview.store.buckets import Buckets
from rollview.store.datafile import DataFile
from rollview.store.folder import DeltaFolder
from rollview.store.multiset import negative_multiplicity
from rollview.types.arrow import arrow_type, spark_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BOUND = 100_000
_DOING = {
    "create": "compute the view's first rows",
    "propagate": "compute the view's changes",
    "apply": "apply the view's changes",
}


def stage(
    folder: DeltaFolder,
    data: DataFrame,
    place: str,
    meter: Meter,
    label: str,
    *,
    expected: int,
    buckets: Buckets | None = None,
    sort: tuple[str, ...] = (),
) -> tuple[DataFile, ...]:
    """Write the rows, in the folder's types. ``expected``: about how many; a wrong guess costs time, not memory."""
    typed = as_stored(data, folder.schema)
    if buckets is None and expected <= BOUND // 2:
        collected = collect(typed.limit(BOUND + 1), meter, label)
        if collected is not None:
            return stage_table(folder, collected, place, meter, label, sort=sort)
    with named_failures(_DOING[label]), meter.action(label), phase("Spark jobs"):
        return counted(meter, label, folder.stage(typed, place, buckets=buckets, sort=sort))


def collect(data: DataFrame, meter: Meter, label: str) -> pa.Table | None:
    """The rows on the driver, or None if there are more than ``BOUND``; the query itself stops after one more."""
    with named_failures(_DOING[label]), meter.action(label), phase("Spark jobs"):
        collected = data.toArrow()
    return collected if collected.num_rows <= BOUND else None


def stage_table(
    folder: DeltaFolder, rows: pa.Table, place: str, meter: Meter, label: str, *, sort: tuple[str, ...] = ()
) -> tuple[DataFile, ...]:
    with phase("write"):
        return counted(meter, label, folder.stage(rows, place, sort=sort) if rows.num_rows else ())


def as_stored(data: DataFrame, schema: Schema) -> DataFrame:
    """The columns by position, under the stored names and types."""
    types = [spark_type(arrow_type(column.type, column.name)) for column in schema]
    return data.selectExpr(
        *(
            f"CAST({quoted(given)} AS {type_}) AS {quoted(column.name)}"
            for given, type_, column in zip(data.columns, types, schema, strict=True)
        )
    )


def counted(meter: Meter, label: str, files: Iterable[DataFile]) -> tuple[DataFile, ...]:
    kept = tuple(file for file in files if file.rows)
    meter.wrote(label, len(kept), sum(file.size for file in kept))
    meter.rows(label, sum(file.rows for file in kept))
    return kept


@contextmanager
def named_failures(doing: str) -> Iterator[None]:
    """A row deleted more often than it was there is named; the rest is told as Spark's failure."""
    with spark_failures(doing):
        try:
            yield
        except RollviewError:
            raise
        except Exception as error:
            corrupt = negative_multiplicity(error)
            if corrupt is None:
                raise
            raise corrupt from error
