"""Rows as Arrow tables, in exactly the types of the table.

Law: a value comes back from the table as it was at the source, or the unit of work that brought it is refused, with the
name of the column and the reason. Nothing is rounded, cut, or turned into NULL.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from rollview.core.names import COUNT, CSN
from rollview.core.schema import Column, Schema
from rollview.sources.protocol import Row, Rows
from rollview.store.types import arrow_type

SIGNED = (Column(COUNT, "bigint"), Column(CSN, "bigint"))

_REFUSALS = (pa.ArrowException, TypeError, ValueError, OverflowError)


class UnfitError(Exception):
    """A value that its column cannot hold."""

    def __init__(self, column: str, reason: str, place: int | None = None) -> None:
        super().__init__(f"{column}: {reason}")
        self.column = column
        self.reason = reason
        self.place = place


def as_table(rows: Rows, schema: Schema) -> pa.Table:
    """The rows under their logical names."""
    if isinstance(rows, pa.Table):
        return rows
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    arrays = [_array(column, values) for column, values in zip(schema, columns, strict=True)]
    return pa.Table.from_arrays(arrays, names=list(schema.names))


def _array(column: Column, values: Sequence[Any]) -> pa.Array:
    type_ = arrow_type(column.type, column.name)
    try:
        return pa.array(values, type_)
    except _REFUSALS:
        for place, value in enumerate(values):
            try:
                pa.array([value], type_)
            except _REFUSALS as error:
                raise UnfitError(column.name, _reason(error, value, column), place) from None
        raise


def unfit_places(rows: Sequence[Row], schema: Schema) -> dict[int, tuple[str, str]]:
    """Column and reason by place, for each row that has a value that its column cannot hold."""
    found: dict[int, tuple[str, str]] = {}
    for column, values in zip(schema, zip(*rows, strict=True), strict=bool(rows)):
        type_ = arrow_type(column.type, column.name)
        try:
            pa.array(values, type_)
        except _REFUSALS:
            for place, value in enumerate(values):
                try:
                    pa.array([value], type_)
                except _REFUSALS as error:
                    found.setdefault(place, (column.name, _reason(error, value, column)))
    return found


def _reason(error: Exception, value: Any, column: Column) -> str:
    shown = repr(value)
    cut = shown if len(shown) <= 60 else f"{shown[:57]}…"
    return f"{cut} is not a value of {column.type} ({str(error).splitlines()[0][:120]})"


Identity = Callable[[Row], Any]


def identity(schema: Schema) -> Identity:
    """What makes two rows the same: every value, floats by their bits, so that NaN is itself and -0.0 is not 0.0."""
    floats = [place for place, column in enumerate(schema) if column.type in ("float", "double")]
    if not floats:
        return lambda row: row

    def key(row: Row) -> tuple[Any, ...]:
        values: list[Any] = list(row)
        for place in floats:
            if values[place] is not None:
                values[place] = struct.pack("<d", values[place])
        return tuple(values)

    return key


def net(before: Sequence[Row], after: Sequence[Row], schema: Schema) -> tuple[list[Row], list[Row]]:
    """Rows that go and rows that come, without those that do both."""
    if not before or not after:
        return list(before), list(after)
    key = identity(schema)
    both = Counter(map(key, before)) & Counter(map(key, after))
    return (list(before), list(after)) if not both else (_without(before, both, key), _without(after, both, key))


def _without(rows: Sequence[Row], taken: Counter[Any], key: Identity) -> list[Row]:
    left = Counter(taken)
    kept = []
    for row in rows:
        own = key(row)
        if left[own] > 0:
            left[own] -= 1
        else:
            kept.append(row)
    return kept


def updated(before: Sequence[Row], after: Sequence[Row], schema: Schema, key: tuple[str, ...]) -> int | None:
    """How many keys both go and come; None without a key."""
    if not key:
        return None
    places = [schema.names.index(name) for name in key]

    def keys(rows: Sequence[Row]) -> set[Row]:
        return {tuple(row[place] for place in places) for row in rows}

    return len(keys(before) & keys(after)) if before and after else 0
