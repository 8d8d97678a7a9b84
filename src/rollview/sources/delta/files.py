"""The files of a Delta table's version, and their rows.

Law: a column that a file does not have is NULL in its rows, and a partition's column has the value that the log says.
Tables whose rows are more than their files' rows (deletion vectors) or whose columns have other names there (column
mapping) are not read.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from rollview.core.lent import Lent, UnlinkableError
from rollview.core.schema import Column, Schema
from rollview.sources.files.formats import spelled
from rollview.sources.protocol import SourceTable
from rollview.sources.values import UnfitError
from rollview.types.arrow import arrow_type

_UNREAD = ("deletionVectors", "columnMapping", "variantType", "variantType-preview", "typeWidening")
_PARTITION = "partition."

File = Mapping[str, Any]


class DataLostError(Exception):
    """A file that a version names is not there any more."""


class BadLogError(Exception):
    """A commit that says something that is not understood."""


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


def place_of(table: DeltaTable, path: str) -> Path:
    """A file that the log names: below the table, or anywhere on this machine."""
    told = urlsplit(path)
    if told.scheme not in ("", "file") or told.netloc not in ("", "localhost"):
        raise DataLostError(f"'{path}' is not on this machine")
    return Path(unquote(table.table_uri.removeprefix("file://"))) / unquote(told.path)


def lent_files(table: DeltaTable) -> tuple[Lent, ...]:
    """All files of the version, to be read where they are."""
    try:
        return tuple(Lent(place_of(table, path), _constants(file)) for path, file in added_files(table).items())
    except DataLostError as error:
        raise UnlinkableError(str(error)) from None


def read_rows(table: DeltaTable, file: File, schema: Schema) -> pa.Table:
    return in_columns(load_file(place_of(table, file["path"])), file, schema)


def in_columns(rows: pa.Table, file: File, schema: Schema) -> pa.Table:
    arrays = [_column(rows, file, column) for column in schema]
    return pa.Table.from_arrays(arrays, names=list(schema.names))


def load_file(place: Path) -> pa.Table:
    try:
        return pq.ParquetFile(place, coerce_int96_timestamp_unit="us").read()
    except FileNotFoundError as error:
        raise DataLostError(str(error)) from None
    except (pa.ArrowException, OSError) as error:
        raise DataLostError(str(error).splitlines()[0]) from None


def _column(rows: pa.Table, file: File, column: Column) -> pa.ChunkedArray | pa.Array:
    type_ = arrow_type(column.type, column.name)
    if column.name not in rows.column_names:
        value = file.get(f"{_PARTITION}{column.name}")
        return pa.array([value] * rows.num_rows, type_)
    try:
        return rows[column.name].cast(type_, safe=True)
    except pa.ArrowException as error:
        raise UnfitError(column.name, str(error).splitlines()[0]) from None


def _constants(file: File) -> dict[str, str | None]:
    names = [name for name in file if name.startswith(_PARTITION)]
    return {name.removeprefix(_PARTITION): _spelled(file[name]) for name in names}


def _spelled(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:f}" if isinstance(value, Decimal) else value.isoformat() if isinstance(value, date) else str(value)
