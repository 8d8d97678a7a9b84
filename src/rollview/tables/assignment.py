"""Values into columns, by Spark's ANSI store assignment.

Law: a value is stored as itself or not at all: a cast that loses range is an error, text never becomes a number by
itself, and a NULL of any kind fits everywhere (whether the column takes it is a constraint).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as sf

from rollview.core.names import same
from rollview.core.schema import Column
from rollview.errors import SqlError, Unsupported
from rollview.store.multiset import col
from rollview.types import spelling
from rollview.types.arrow import arrow_type, spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

TOO_LONG = "rollview: text too long"


def assigned(data: DataFrame, source: str, target: Column) -> SparkColumn:
    """The column ``source`` of ``data`` as a value of ``target``."""
    given = data.schema[source].dataType.simpleString()
    if not _fits(given, target):
        raise SqlError(
            f"A value of type {given.upper()} cannot be stored in column '{target.name}', {target.type.upper()}.",
            hint=f"Write CAST(… AS {target.type.upper()}).",
        )
    return _limited(col(source).cast(spark_type(arrow_type(target.type, target.name))), target)


def missing(target: Column) -> SparkColumn:
    """For a column that a statement leaves out."""
    return constant(target, target.default)


def constant(target: Column, text: str | None) -> SparkColumn:
    """A constant of a column, told as text; None: NULL."""
    return sf.lit(text).cast(spark_type(arrow_type(target.type, target.name)))


def _fits(given: str, target: Column) -> bool:
    if given == "void":
        return True
    try:
        return _assignable(arrow_type(given, target.name), arrow_type(target.type, target.name))
    except Unsupported:
        return False


def _assignable(given: pa.DataType, wanted: pa.DataType) -> bool:
    if given == wanted:
        return True
    if pa.types.is_list(wanted):
        return pa.types.is_list(given) and _assignable(given.value_type, wanted.value_type)
    if pa.types.is_map(wanted):
        both = pa.types.is_map(given) and _assignable(given.key_type, wanted.key_type)
        return both and _assignable(given.item_type, wanted.item_type)
    if pa.types.is_struct(wanted):
        fields = list(zip(given, wanted, strict=False)) if pa.types.is_struct(given) else []
        return len(fields) == wanted.num_fields == given.num_fields and all(
            same(a.name, b.name) and _assignable(a.type, b.type) for a, b in fields
        )
    if pa.types.is_nested(given):
        return False
    return pa.types.is_string(wanted) or (_family(given) == _family(wanted) is not None)


def _family(type_: pa.DataType) -> str | None:
    if pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_):
        return "number"
    return "time" if pa.types.is_date(type_) or pa.types.is_timestamp(type_) else None


def _limited(value: SparkColumn, target: Column) -> SparkColumn:
    """CHAR(n) is padded; text beyond n is refused unless it is blanks."""
    type_ = spelling.parse(target.type)
    if type_.word not in ("char", "varchar"):
        return value
    (length,) = type_.numbers
    trimmed = sf.when(sf.length(sf.rtrim(value)) <= length, sf.substring(value, 1, length))
    refused = sf.raise_error(sf.concat(sf.lit(f"{TOO_LONG}: {target.name} = "), value))
    fitted = (
        sf.when(sf.length(value) <= length, value)
        .when(value.isNull(), value)
        .otherwise(trimmed.otherwise(refused.cast("string")))
    )
    return sf.rpad(fitted, length, " ") if type_.word == "char" else fitted
