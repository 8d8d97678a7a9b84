"""Rows of SQLite as Arrow, column by column.

Law: what comes out is what ``values`` gives value by value, or nothing does: where a column holds anything that its
type is not for, or that two readings could spell differently, the rows are read one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rollview.core.schema import Schema
from rollview.sources.sections import NotPlainError
from rollview.types.arrow import arrow_type

_REFUSALS = (pa.ArrowException, TypeError, ValueError, OverflowError)
_SURE = 10**15
"""Decimals of fifteen digits are told apart by their doubles, so the only one that is a double is its shortest."""
_EXACT_POWERS = 22
_MOMENTS = (10, 16, 19, 23, 26)
"""How long a text is of which there is one reading: up to the day, minute, second, thousandth or millionth."""

Values = Sequence[Any]
Read = Callable[[Values, pa.DataType], pa.Array]


def read_columns(columns: Iterable[Values], schema: Schema) -> pa.Table:
    """NotPlainError: read them row by row."""
    try:
        arrays = [
            _read(values, column.type, arrow_type(column.type, column.name))
            for column, values in zip(schema, columns, strict=True)
        ]
    except _REFUSALS:
        raise NotPlainError from None
    return pa.Table.from_arrays(arrays, names=list(schema.names))


def _read(values: Values, type_: str, target: pa.DataType) -> pa.Array:
    known = _READERS.get("decimal" if type_.startswith("decimal") else type_)
    if known is None or not {type(value) for value in values} <= known[0] | {type(None)}:
        raise NotPlainError
    return known[1](values, target)


def _boolean(values: Values, target: pa.DataType) -> pa.Array:
    numbers = pa.array(values, pa.int64())
    _demand(pc.is_in(numbers, pa.array([0, 1, None])))
    return numbers.cast(target)


def _decimal(values: Values, target: pa.DataType) -> pa.Array:
    """A number times its power of ten is whole, and that whole number divided by it is the number again."""
    numbers = pa.array(values, pa.float64())
    plain = numbers.fill_null(0.0).to_numpy()
    power = float(10 ** min(target.scale, _EXACT_POWERS))
    with np.errstate(over="ignore"):
        whole = np.rint(plain * power)
        is_sure = (np.abs(whole) < min(_SURE, 10**target.precision)) & (whole / power == plain)
    if target.scale > _EXACT_POWERS or not is_sure.all():
        raise NotPlainError
    halves = np.empty((len(plain), 2), dtype=np.int64)
    halves[:, 0] = whole
    halves[:, 1] = halves[:, 0] >> 63
    validity = None if not numbers.null_count else pc.is_valid(numbers).buffers()[1]
    return pa.Array.from_buffers(target, len(plain), [validity, pa.py_buffer(halves)])


def _date(values: Values, target: pa.DataType) -> pa.Array:
    texts = pa.array(values, pa.string())
    _demand(pc.equal(pc.utf8_length(texts), len("2026-01-31")))
    return _of_our_era(texts.cast(target), date.min)


def _moment(values: Values, target: pa.DataType) -> pa.Array:
    texts = pa.array(values, pa.string())
    _demand(pc.is_in(pc.utf8_length(texts), pa.array([*_MOMENTS, None], pa.int32())))
    return _of_our_era(texts.cast(target), datetime.min)


def _of_our_era(found: pa.Array, first: date) -> pa.Array:
    """Arrow knows a year 0."""
    _demand(pc.greater_equal(found, pa.scalar(first, found.type)))
    return found


def _demand(holds: pa.Array) -> None:
    if pc.all(holds).as_py() is False:
        raise NotPlainError


_INTEGERS: tuple[set[type], Read] = ({int}, pa.array)
_READERS: Mapping[str, tuple[set[type], Read]] = {
    "boolean": ({int}, _boolean),
    "tinyint": _INTEGERS,
    "smallint": _INTEGERS,
    "int": _INTEGERS,
    "bigint": _INTEGERS,
    "double": ({int, float}, pa.array),
    "decimal": ({int, float}, _decimal),
    "string": ({str}, pa.array),
    "binary": ({bytes}, pa.array),
    "date": ({str}, _date),
    "timestamp_ntz": ({str}, _moment),
}
"""The kinds of values that a column may hold beside NULL, and how they are read."""
