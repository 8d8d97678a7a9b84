"""Rows become staged files: through Arrow on the driver when they are few, by the executors when they are not.

Law: the driver never holds more than ``BOUND`` rows of a result, whatever the size of the data.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from rollview.core.schema import Schema
from rollview.engine.failures import spark_failures
from rollview.engine.meter import Meter
from rollview.errors import RollviewError
from rollview.store.buckets import Buckets
from rollview.store.datafile import DataFile
from rollview.store.folder import DeltaFolder
from rollview.store.multiset import col, negative_multiplicity
from rollview.store.types import arrow_type, spark_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BOUND = 100_000


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
    with _named_failures(f"write {label}"):
        if buckets is None and expected <= BOUND // 4:
            with meter.action(label):
                collected = typed.limit(BOUND + 1).toArrow()
            if collected.num_rows <= BOUND:
                return counted(meter, label, folder.stage(collected, place, sort=sort) if collected.num_rows else ())
        with meter.action(label):
            return counted(meter, label, folder.stage(typed, place, buckets=buckets, sort=sort))


def as_stored(data: DataFrame, schema: Schema) -> DataFrame:
    """The columns by position, under the stored names and types."""
    given = data.schema.fields
    columns = []
    for field, column in zip(given, schema, strict=True):
        wanted = spark_type(arrow_type(column.type, column.name))
        value = col(field.name)
        columns.append((value if field.dataType == wanted else value.cast(wanted)).alias(column.name))
    return data.select(*columns)


def counted(meter: Meter, label: str, files: Iterable[DataFile]) -> tuple[DataFile, ...]:
    kept = tuple(file for file in files if file.rows)
    meter.wrote(label, len(kept), sum(file.size for file in kept))
    meter.rows(label, sum(file.rows for file in kept))
    return kept


class _named_failures:
    """A row deleted more often than it was there is named; the rest is told as Spark's failure."""

    def __init__(self, doing: str) -> None:
        self._inner = spark_failures(doing)

    def __enter__(self) -> None:
        self._inner.__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool | None:
        if error is not None and not isinstance(error, RollviewError):
            corrupt = negative_multiplicity(error)
            if corrupt is not None:
                raise corrupt from error
        return self._inner.__exit__(kind, error, trace)  # type: ignore[arg-type]


__all__ = ["BOUND", "as_stored", "counted", "sf", "stage"]
