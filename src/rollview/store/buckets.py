"""Rows of a large part are kept in files by hash of the columns that lookups use.

Law: equal keys are in one bucket, equal as Spark's GROUP BY means it: 0.0 and -0.0 are one value, NULL is one value.
So what a delta touches is in the buckets of the delta's own keys.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from rollview.core.lazy import lazy_module
from rollview.core.names import quoted
from rollview.core.schema import Column, Schema
from rollview.types.arrow import arrow_type, is_atomic, spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import functions as sf
else:
    sf = lazy_module("pyspark.sql.functions")

BUCKET = "_rv_bucket"

REWRITE_ROWS = 500_000
"""Up to here an extent is written anew; beyond it only the buckets that changed are."""


@dataclass(frozen=True, slots=True)
class Buckets:
    columns: tuple[str, ...]
    count: int

    def __post_init__(self) -> None:
        if self.count < 1 or not self.columns:
            raise ValueError(f"not buckets: {self.count} by {self.columns}")


def bucket_sql(buckets: Buckets, schema: Schema) -> str:
    """The bucket of a row with the logical columns of ``schema``, as a Spark INT."""
    # Any part of a key spreads whole keys; without an atomic column there is one bucket.
    hashed = _hash_sql(schema, buckets.columns)
    return f"CAST(pmod({hashed}, {buckets.count}) AS INT)" if hashed is not None else "0"


def bucket_expression(buckets: Buckets, schema: Schema) -> SparkColumn:
    return sf.expr(bucket_sql(buckets, schema))


def hash_expression(schema: Schema, columns: Iterable[str]) -> SparkColumn:
    """A BIGINT that is the same for rows that are the same in these columns; at least one of them is atomic."""
    return sf.expr(hash_sql(schema, columns))


def hash_sql(schema: Schema, columns: Iterable[str]) -> str:
    """The same as text."""
    hashed = _hash_sql(schema, columns)
    assert hashed is not None
    return hashed


def is_hashed(schema: Schema) -> bool:
    """Whether rows can be told apart by a hash at all."""
    return any(_is_atomic(column) for column in schema)


def is_hashed_whole(schema: Schema, columns: Iterable[str]) -> bool:
    return all(_is_atomic(column) for column in schema.only(columns))


def _hash_sql(schema: Schema, columns: Iterable[str]) -> str | None:
    hashed = [_hashed(column) for column in schema.only(columns) if _is_atomic(column)]
    return f"xxhash64({', '.join(hashed)})" if hashed else None


def _is_atomic(column: Column) -> bool:
    return is_atomic(arrow_type(column.type, column.name))


def _hashed(column: Column) -> str:
    type_ = arrow_type(column.type, column.name)
    # The hash depends on the type, so a narrower expression is brought to the column's own first.
    value = f"CAST({quoted(column.name)} AS {spark_type(type_)})"
    return f"{value} + CAST(0 AS {spark_type(type_)})" if pa.types.is_floating(type_) else value
