"""Rows as Arrow tables, in exactly the types of the table.

Law: a value comes back from the table as it was at the source, or the unit of work that brought it is refused, with the
name of the column and the reason. Nothing is rounded, cut, or turned into NULL.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from itertools import groupby
from typing import Any

import pyarrow as pa

from rollview.core.schema import Column, Schema
from rollview.sources.protocol import Row, Rows
from rollview.sources.sections import Section, joined
from rollview.types.arrow import arrow_type

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
    if isinstance(rows, Section):
        return rows.table()
    if isinstance(rows, pa.Table):
        return rows
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    arrays = [_array(column, values) for column, values in zip(schema, columns, strict=True)]
    return pa.Table.from_arrays(arrays, names=list(schema.names))


def as_rows(rows: Rows) -> Sequence[Row]:
    """Each row by itself."""
    if isinstance(rows, pa.Table):
        rows = Section.of(rows)
    return list(rows) if isinstance(rows, Section) else rows


def as_one(pieces: Sequence[Rows], schema: Schema) -> pa.Table:
    """All rows in their order; a value that does not fit is told by its place among them all."""
    tables: list[pa.Table] = []
    for some in _alike(pieces):
        try:
            tables.append(as_table(some, schema))
        except UnfitError as error:
            before = sum(table.num_rows for table in tables)
            raise UnfitError(error.column, error.reason, before + (error.place or 0)) from None
    return pa.concat_tables(tables) if tables else as_table((), schema)


def _alike(pieces: Sequence[Rows]) -> Iterator[Rows]:
    """Neighbours of the same kind together."""
    for kind, group in groupby(pieces, type):
        some: list[Any] = list(group)
        if kind is Section:
            yield joined(some)
        elif kind is pa.Table:
            yield pa.concat_tables(some)
        else:
            yield [row for rows in some for row in rows]


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


def constant_text(value: Any, type_: str) -> str | None:
    """A value as a text that both Spark and Arrow read as the same; None if there is none."""
    if type_ in ("binary", "timestamp", "float", "double"):
        return None
    try:
        pa.array([value], arrow_type(type_, ""))
    except _REFUSALS:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Decimal):
        return f"{value:f}"
    return value.isoformat(" ") if isinstance(value, datetime) else str(value)


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
