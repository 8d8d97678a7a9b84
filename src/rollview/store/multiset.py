"""Signed rows and plain rows.

Law: rows are the same if Spark's GROUP BY puts them together: NULL is one value, NaN is one value, 0.0 is -0.0. Only a
table's own rows are told apart by the sign of a zero, for an expression above may: what comes back is what was written.
A net effect has one count for each different row and no zero; a plain row is there at least zero times.

Expressions are given to Spark as text: each part of one that is built here is a message to its process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from rollview.core.names import COUNT, CSN, quoted
from rollview.core.schema import SIGNED, Schema
from rollview.engine.failures import in_full
from rollview.errors import Corrupt
from rollview.types.arrow import arrow_type, holds_float

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

_COPY, _SPELLED, _KEPT = "_rv_copy", "_rv_spelled", "_rv_kept"
_MARK = "rollview: negative multiplicity"
_ANEW = "CREATE OR REPLACE MATERIALIZED VIEW builds a view anew."


def net(data: DataFrame, schema: Schema, *, apart: bool = False) -> DataFrame:
    """The columns with ``_count``: one row for each different row, its counts added, none with zero.

    ``apart``: 0.0 and -0.0 are two values, and come back as they were.
    """
    signs = floating(schema) if apart else ()
    spelled = [sf.expr(f"CAST({quoted(name)} AS STRING) AS {_SPELLED}_{place}") for place, name in enumerate(signs)]
    kept = [sf.expr(f"any_value({quoted(name)}) AS {_KEPT}_{place}") for place, name in enumerate(signs)]
    grouped = data.groupBy(*map(quoted, schema.names), *spelled).agg(sf.expr(f"sum({COUNT}) AS {COUNT}"), *kept)
    back = {name: f"{_KEPT}_{place} AS {quoted(name)}" for place, name in enumerate(signs)}
    named = (back.get(name, quoted(name)) for name in schema.names)
    return grouped.where(f"{COUNT} <> 0").selectExpr(*named, COUNT)


def net_by_csn(data: DataFrame, schema: Schema) -> DataFrame:
    """Timed changes, one row for each different row of a csn."""
    netted = net(data, Schema((*schema.columns, SIGNED[1])), apart=True)
    return netted.select(*map(quoted, schema.names), COUNT, CSN)


def floating(schema: Schema) -> tuple[str, ...]:
    """The columns whose values may have a zero with a sign."""
    return tuple(column.name for column in schema if holds_float(arrow_type(column.type, column.name)))


def expand(data: DataFrame, schema: Schema) -> DataFrame:
    """Every row as often as its ``_count`` says; the query fails if that is less than zero."""
    times = f"CAST(CASE WHEN {COUNT} < 0 THEN {refusal(schema)} ELSE {COUNT} END AS INT)"
    copies = f"explode(array_repeat(true, {times})) AS {_COPY}"
    return data.selectExpr(*map(quoted, schema.names), copies).drop(_COPY)


def separate(data: DataFrame, schema: Schema, *more: SparkColumn) -> DataFrame:
    """Every copy a row of its own: ``_count`` is +1 or -1. ``more``: columns that each copy has as well."""
    times = sf.abs(sf.col(COUNT)).cast("int")
    copies = sf.explode(sf.array_repeat(sf.signum(COUNT).cast("bigint"), times))
    return data.select(*map(col, schema.names), copies.alias(COUNT), *more)


def signed(data: DataFrame) -> DataFrame:
    """Plain rows as rows that are there once."""
    return data.selectExpr("*", f"1L AS {COUNT}")


def refusal(schema: Schema) -> str:
    """An expression that fails the query and names the row."""
    return f"raise_error(concat('{_MARK}: ', to_json(struct({', '.join(map(quoted, schema.names))}))))"


def negative_multiplicity(error: BaseException) -> Corrupt | None:
    """The error to raise in place of Spark's, if that came from a row deleted more often than it was there."""
    _, found, after = in_full(error).partition(_MARK)
    if not found:
        return None
    return deleted_too_often(after.splitlines()[0].partition(" SQLSTATE")[0].strip(" :"))


def deleted_too_often(row: str) -> Corrupt:
    return Corrupt(f"A row was deleted more often than it was there: {row}", hint=_ANEW, row=row)


def col(name: str) -> SparkColumn:
    return sf.col(quoted(name))
