"""Bits of keys: a small array that is looked into before a key is looked up among many.

Law: equal keys have one bit, and it is the same here and in Spark. So a key whose bit is not set is none of the keys
that the bits were made of. The array fits a core's cache, which a table of the keys themselves does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as sf

from rollview.core.names import quoted
from rollview.core.schema import Column, Schema
from rollview.types.arrow import arrow_type

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import SparkSession

_BITS = 22
"""4,194,304 bits, half a MiB: one of 64 is set by 65,000 keys."""
_WORD = 6
_APART = 17
"""How far a column is moved against the one before it, so that keys of several columns are spread."""
_COLUMN = "_rv_bits"


def can_mark(schema: Schema, key: Iterable[str]) -> bool:
    """Whether a column of the key tells its keys apart by a bit; columns that do not are left out."""
    return bool(_marked(schema, key))


def key_bits(rows: pa.Table, schema: Schema, key: Iterable[str]) -> np.ndarray:
    """The bits of the keys of some rows, as words of 64."""
    mixed = np.zeros(rows.num_rows, np.uint64)
    for place, column in enumerate(_marked(schema, key)):
        mixed ^= _numbers(rows[column.name]).view(np.uint64) << np.uint64(place * _APART % 64)
    mixed ^= (mixed >> np.uint64(_BITS)) ^ (mixed >> np.uint64(2 * _BITS))
    marks = np.zeros(1 << _BITS, np.bool_)
    marks[(mixed & np.uint64((1 << _BITS) - 1)).astype(np.int64)] = True
    return np.packbits(marks, bitorder="little").view("<i8")


def maybe_marked(spark: SparkSession, bits: np.ndarray, schema: Schema, key: Iterable[str]) -> SparkColumn:
    """Whether the bit of a row's key is set."""
    kept = pa.table({_COLUMN: pa.array([bits], pa.list_(pa.int64()))})
    place = _place_sql(_marked(schema, key))
    # A subquery: the array is no part of the plan's text.
    word = sf.get(spark.createDataFrame(kept).scalar(), sf.expr(f"CAST(shiftright({place}, {_WORD}) AS INT)"))
    return sf.getbit(word, sf.expr(f"CAST(({place}) & {(1 << _WORD) - 1}L AS INT)")) == 1


def _place_sql(columns: tuple[Column, ...]) -> str:
    moved = (f"shiftleft({_number_sql(column)}, {place * _APART % 64})" for place, column in enumerate(columns))
    mixed = f"({' ^ '.join(moved)})"
    folded = (f"shiftrightunsigned({mixed}, {times * _BITS})" for times in (1, 2))
    return f"({mixed} ^ {' ^ '.join(folded)}) & {(1 << _BITS) - 1}L"


def _number_sql(column: Column) -> str:
    name = quoted(column.name)
    number = f"CAST({name} AS BIGINT)" if _is_integer(column) else f"crc32(CAST({name} AS BINARY))"
    return f"coalesce({number}, 0L)"


def _numbers(values: pa.ChunkedArray) -> np.ndarray:
    """The same of values in this process, as 64-bit integers."""
    if pa.types.is_integer(values.type):
        return np.asarray(values.fill_null(0).cast(pa.int64()).to_numpy(), np.int64)
    texts = values.cast(pa.binary()).to_pylist()
    return np.fromiter((0 if text is None else crc32(text) for text in texts), np.int64, len(texts))


def _marked(schema: Schema, key: Iterable[str]) -> tuple[Column, ...]:
    return tuple(column for column in schema.only(key) if _is_integer(column) or _is(pa.types.is_string, column))


def _is_integer(column: Column) -> bool:
    return _is(pa.types.is_integer, column)


def _is(kind: Callable[[pa.DataType], bool], column: Column) -> bool:
    return kind(arrow_type(column.type, column.name))
