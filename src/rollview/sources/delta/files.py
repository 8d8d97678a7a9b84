"""The files of a Delta table's version, and their rows.

Law: a column that a file does not have is NULL in its rows, and a partition's column has the value that the log says.
Tables whose rows are more than their files' rows (deletion vectors) or whose columns have other names there (column
mapping) are not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from rollview.core.schema import Column, Schema
from rollview.sources.files.formats import spelled
from rollview.sources.protocol import Row, SourceTable
from rollview.sources.values import UnfitError
from rollview.store.types import arrow_type

_UNREAD = ("deletionVectors", "columnMapping", "variantType", "variantType-preview", "typeWidening")

File = Mapping[str, Any]


class DataLostError(Exception):
    """A file that a version names is not there any more."""


def unread_features(table: DeltaTable) -> tuple[str, ...]:
    features = set(table.protocol().reader_features or ())
    mapped = table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none"
    return tuple(sorted(features.intersection(_UNREAD) | ({"columnMapping"} if mapped else set())))


def described(remote: str, table: DeltaTable) -> SourceTable:
    fields = pa.schema(table.schema().to_arrow())
    columns = tuple(Column(field.name, spelled(field)) for field in fields)
    return SourceTable(remote, Schema(columns))


def added_files(table: DeltaTable) -> dict[str, File]:
    """The version's files by path, with the values of their partitions."""
    return {row["path"]: row for row in pa.table(table.get_add_actions(flatten=True)).to_pylist()}


def rows_of(table: DeltaTable, files: Iterable[File], schema: Schema) -> list[Row]:
    found: list[Row] = []
    for file in files:
        rows = read_rows(table, file if isinstance(file, dict) else dict(file), schema)
        found.extend(zip(*(column.to_pylist() for column in rows.columns), strict=True))
    return found


def read_rows(table: DeltaTable, file: File | str, schema: Schema) -> pa.Table:
    facts = added_files(table)[file] if isinstance(file, str) else file
    place = Path(unquote(table.table_uri.removeprefix("file://"))) / unquote(facts["path"])
    try:
        rows = pq.ParquetFile(place).read()
    except FileNotFoundError as error:
        raise DataLostError(str(error)) from None
    except (pa.ArrowException, OSError) as error:
        raise DataLostError(str(error).splitlines()[0]) from None
    arrays = [_column(rows, facts, column) for column in schema]
    return pa.Table.from_arrays(arrays, names=list(schema.names))


def _column(rows: pa.Table, facts: File, column: Column) -> pa.ChunkedArray | pa.Array:
    type_ = arrow_type(column.type, column.name)
    if column.name not in rows.column_names:
        value = facts.get(f"partition.{column.name}")
        return pa.array([value] * rows.num_rows, type_)
    try:
        return rows[column.name].cast(type_, safe=True)
    except pa.ArrowException as error:
        raise UnfitError(column.name, str(error).splitlines()[0]) from None
