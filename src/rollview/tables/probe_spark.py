"""Keys looked up by Spark: for many keys, large tables, and types whose equality only Spark knows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from rollview.core.names import COUNT, CSN
from rollview.store.multiset import col, floating
from rollview.tables.probe import Count, Key, Rows, Test
from rollview.types.arrow import arrow_type, is_atomic

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import SparkSession

_SUM = "sum"
_ASKED = "asked"
_MANY_TIMES = 4


@dataclass(frozen=True, slots=True)
class Asked:
    """Keys, some perhaps several times. ``rows``: what they were read from, if from nothing else."""

    keys: DataFrame
    rows: Rows | None = None
    columns: tuple[str, ...] = ()

    def is_of(self, rows: Rows, columns: Sequence[str]) -> bool:
        """Whether one reading of the rows gives the keys as well."""
        own = self.rows
        return own is not None and own.files == rows.files and own.between == rows.between and self.columns == columns


class SparkProbe:
    """``apart``: 0.0 and -0.0 are two values, and how each is spelled is a part of the key.

    ``touched``: at most so many keys are asked about. Where about as many rows are looked through, as when a table is
    loaded, all are read once and added up by key in one shuffle.
    """

    def __init__(self, spark: SparkSession, apart: bool = False, touched: int = 0) -> None:
        self._spark, self._apart, self._touched = spark, apart, touched

    def touched(self, rows: Rows, columns: Sequence[str], *, with_null: bool = False) -> Asked:
        found = self._read(rows, columns)
        keys = found.where(sf.col(_SUM) > 0 if with_null else (sf.col(_SUM) > 0) & _whole(_keys(found)))
        return Asked(keys.drop(_SUM), None if with_null else rows, tuple(columns))

    def having(self, keys: Asked, held: Iterable[Rows], columns: Sequence[str], test: Test) -> Asked:
        held, names = tuple(held), keys.keys.columns
        asked = keys.keys.withColumns({_SUM: sf.lit(0).cast("bigint"), _ASKED: sf.lit(1)})
        parts = [] if any(keys.is_of(rows, tuple(columns)) for rows in held) else [asked]
        for rows in held:
            if keys.is_of(rows, tuple(columns)):
                parts.append(self._both(keys, rows, columns))
            elif rows.files:
                parts.append(self._near(rows, columns, keys.keys).withColumn(_ASKED, sf.lit(0)))
        every = reduce(DataFrame.unionAll, parts)
        summed = every.groupBy(*names).agg(sf.sum(_SUM).alias(_SUM), sf.max(_ASKED).alias(_ASKED))
        return Asked(summed.where((sf.col(_ASKED) == 1) & _passes(test)).select(*names))

    def first(self, keys: Asked) -> Key | None:
        row = keys.keys.head()
        return None if row is None else tuple(row)

    def _both(self, keys: Asked, rows: Rows, columns: Sequence[str]) -> DataFrame:
        """Rows that ask about their own keys, in one reading."""
        assert keys.rows is not None
        counts = _count(keys.rows.count).cast("bigint") > 0
        found = self._read(rows, columns, counts.alias(_ASKED))
        return found.withColumn(_ASKED, (sf.col(_ASKED) & _whole(_keys(found))).cast("int"))

    def _near(self, rows: Rows, columns: Sequence[str], keys: DataFrame) -> DataFrame:
        """Only rows with one of the keys have to be added up, which pays where there are many others."""
        found = self._read(rows, columns)
        many = sum(file.rows for file in rows.files) > _MANY_TIMES * self._touched
        if not many or not all(_is_comparable(rows, name) for name in columns):
            return found
        other = keys.toDF(*(f"asked_{name}" for name in keys.columns))
        same = reduce(and_, (sf.col(name).eqNullSafe(sf.col(f"asked_{name}")) for name in keys.columns))
        return found.join(other, same, "left_semi")

    def _read(self, rows: Rows, columns: Sequence[str], *more: SparkColumn) -> DataFrame:
        data = rows.folder.read(self._spark, rows.files)
        if rows.between is not None:
            data = data.where((sf.col(CSN) > rows.between.after) & (sf.col(CSN) <= rows.between.through))
        keys = [col(name).alias(f"k{place}") for place, name in enumerate(columns)]
        signs = [name for name in floating(rows.folder.schema) if self._apart and name in columns]
        keys += [col(name).cast("string").alias(f"s{place}") for place, name in enumerate(signs)]
        return data.select(*keys, _count(rows.count).cast("bigint").alias(_SUM), *more)


def _keys(found: DataFrame) -> list[str]:
    return [name for name in found.columns if name not in (_SUM, _ASKED)]


def _whole(names: Sequence[str]) -> SparkColumn:
    """No NULL is in the key."""
    return reduce(and_, (sf.col(name).isNotNull() for name in names))


def _count(count: Count) -> SparkColumn:
    if count is Count.ONE:
        return sf.lit(1)
    if count is Count.SIGNED:
        return sf.col(COUNT)
    return (sf.col(COUNT) < 0 if count is Count.DELETED else sf.col(COUNT) > 0).cast("int")


def _passes(test: Test) -> SparkColumn:
    if test is Test.NONE:
        return sf.col(_SUM) == 0
    if test is Test.MISSING:
        return sf.col(_SUM) < 0
    return sf.col(_SUM) > (0 if test is Test.SOME else 1)


def _is_comparable(rows: Rows, name: str) -> bool:
    found = rows.folder.schema.find(name)
    return found is not None and is_atomic(arrow_type(found.type, found.name))
