"""Keys looked up by Spark: for many keys, large tables, and types whose equality only Spark knows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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


class SparkProbe:
    """``apart``: 0.0 and -0.0 are two values, and how each is spelled is a part of the key."""

    def __init__(self, spark: SparkSession, apart: bool = False) -> None:
        self._spark, self._apart = spark, apart

    def touched(self, rows: Rows, columns: Sequence[str], *, with_null: bool = False) -> DataFrame:
        keys = self._read(rows, columns).where(sf.col(_SUM) > 0).drop(_SUM)
        if not with_null:
            keys = keys.where(reduce(and_, (sf.col(name).isNotNull() for name in keys.columns)))
        return keys.groupBy(*keys.columns).agg(sf.lit(1).alias(_ASKED)).drop(_ASKED)

    def having(self, keys: DataFrame, held: Iterable[Rows], columns: Sequence[str], test: Test) -> DataFrame:
        asked = keys.withColumns({_SUM: sf.lit(0).cast("bigint"), _ASKED: sf.lit(1)})
        found = reduce(DataFrame.unionAll, (self._near(rows, columns, keys) for rows in held))
        every = asked.unionAll(found.withColumn(_ASKED, sf.lit(0)))
        summed = every.groupBy(*keys.columns).agg(sf.sum(_SUM).alias(_SUM), sf.max(_ASKED).alias(_ASKED))
        return summed.where((sf.col(_ASKED) == 1) & _passes(test)).select(*keys.columns)

    def first(self, keys: DataFrame) -> Key | None:
        row = keys.head()
        return None if row is None else tuple(row)

    def _near(self, rows: Rows, columns: Sequence[str], keys: DataFrame) -> DataFrame:
        """Only rows with one of the keys have to be summed up."""
        found = self._read(rows, columns)
        if not all(_is_comparable(rows, name) for name in columns):
            return found
        other = keys.toDF(*(f"asked_{name}" for name in keys.columns))
        same = reduce(and_, (sf.col(name).eqNullSafe(sf.col(f"asked_{name}")) for name in keys.columns))
        return found.join(other, same, "left_semi")

    def _read(self, rows: Rows, columns: Sequence[str]) -> DataFrame:
        data = rows.folder.read(self._spark, rows.files)
        if rows.between is not None:
            data = data.where((sf.col(CSN) > rows.between.after) & (sf.col(CSN) <= rows.between.through))
        keys = [col(name).alias(f"k{place}") for place, name in enumerate(columns)]
        signs = [name for name in floating(rows.folder.schema) if self._apart and name in columns]
        keys += [col(name).cast("string").alias(f"s{place}") for place, name in enumerate(signs)]
        return data.select(*keys, _count(rows.count).cast("bigint").alias(_SUM))


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
