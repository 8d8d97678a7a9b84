"""The files of a Delta table's version, and their rows.

Law: a column that a file does not have is NULL in its rows, and a partition's column has the value that the log says.
A mapped column is looked for by the name or the id that it has in files. Tables whose rows are fewer than their files'
rows (deletion vectors) are not read. A log may name any path: files are read inside the source's folder only, unless
its settings say otherwise.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
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
from rollview.errors import SourceDown
from rollview.sources.delta.columns import DeltaColumn, Located, columns_of, mapping_mode
from rollview.sources.inside import Inside
from rollview.sources.protocol import SourceTable
from rollview.sources.values import UnfitError
from rollview.types.arrow import arrow_type

_UNREAD = ("deletionVectors", "variantType", "variantType-preview")
_PARTITION = "partition."
_FIELD_ID = b"PARQUET:field_id"
LOG = "_delta_log"

File = Mapping[str, Any]


class DataLostError(Exception):
    """A file that a version names is not there any more."""


class BadLogError(Exception):
    """A commit that says something that is not understood."""


def unread_features(table: DeltaTable) -> tuple[str, ...]:
    return tuple(sorted(set(table.protocol().reader_features or ()).intersection(_UNREAD)))


def described(remote: str, table: DeltaTable) -> SourceTable:
    return SourceTable(remote, Schema(tuple(Column(one.name, one.type) for one in columns_of(table))))


def added_files(table: DeltaTable) -> dict[str, File]:
    """The version's files by path, with the values of their partitions."""
    return {row["path"]: row for row in pa.table(table.get_add_actions(flatten=True)).to_pylist()}


def place_of(table: DeltaTable, path: str, inside: Inside) -> Path:
    """A file that the log names: below the table, or elsewhere in the source's folder."""
    told = urlsplit(path)
    if told.scheme not in ("", "file") or told.netloc not in ("", "localhost"):
        raise DataLostError(f"'{path}' is not on this machine")
    return inside.place(Path(unquote(table.table_uri.removeprefix("file://"))) / unquote(told.path))


def lent_files(table: DeltaTable, inside: Inside) -> tuple[Lent, ...]:
    """All files of the version, to be read where they are."""
    if mapping_mode(table) != "none":
        raise UnlinkableError("its columns may have other names in its files")
    try:
        places = {path: _there(place_of(table, path, inside), inside) for path in added_files(table)}
        return tuple(Lent(places[path], _constants(file)) for path, file in added_files(table).items())
    except DataLostError as error:
        raise UnlinkableError(str(error)) from None


def hides(table: DeltaTable, files: Iterable[File], columns: Sequence[DeltaColumn], inside: Inside) -> bool:
    """Whether a file of the version has values of one of the columns, whatever the table has shown of it."""
    for file in files:
        place = place_of(table, file["path"], inside)
        with inside.open(_there(place, inside)) as opened, inside.reading():
            schema = pq.read_schema(opened)
        if any(
            file.get(f"{_PARTITION}{one.name}") is not None or _place_in(schema, one) is not None for one in columns
        ):
            return True
    return False


def read_rows(table: DeltaTable, file: File, columns: Located, inside: Inside) -> pa.Table:
    """The captured columns of a file of the version."""
    return in_columns(load_file(place_of(table, file["path"], inside), inside), file, columns)


def check_log(folder: Path, inside: Inside) -> None:
    """SourceDown if a table's log cannot be listed or shows nothing, as when its share is not mounted."""
    log = inside.place(folder / LOG)
    with inside.reading(), os.scandir(log) as entries:
        is_plain = {entry.name: entry.is_file(follow_symlinks=False) for entry in entries}
    if not is_plain:
        raise SourceDown(inside.source, f"there is nothing in '{log}'")
    for name in (name for name, plain in is_plain.items() if not plain):
        with inside.reading():
            is_folder = inside.place(log / name).is_dir()
        if not is_folder:
            inside.facts(log / name)


def in_columns(rows: pa.Table, file: File, columns: Located) -> pa.Table:
    arrays = [_column(rows, file, column, own) for column, own in columns]
    return pa.Table.from_arrays(arrays, names=[column.name for column, _ in columns])


def load_file(place: Path, inside: Inside) -> pa.Table:
    with inside.open(_there(place, inside)) as file, inside.reading():
        try:
            return pq.ParquetFile(file, coerce_int96_timestamp_unit="us").read()
        except (pa.ArrowException, OSError) as error:
            # Arrow tells broken files as OSError, too, but without the system's number of an error.
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise DataLostError(str(error).splitlines()[0]) from None


def _there(place: Path, inside: Inside) -> Path:
    """The same place, which is a regular file; DataLostError if nothing is there."""
    with inside.reading():
        is_there = place.exists()
    if not is_there:
        raise DataLostError(f"'{place}' is not there")
    inside.facts(place)
    return place


def _column(rows: pa.Table, file: File, column: Column, own: DeltaColumn | None) -> pa.ChunkedArray | pa.Array:
    type_ = arrow_type(column.type, column.name)
    place = None if own is None else _place_in(rows.schema, own)
    if place is None:
        value = None if own is None else file.get(f"{_PARTITION}{own.name}")
        return pa.array([value] * rows.num_rows, type_)
    try:
        return rows.column(place).cast(type_, safe=True)
    except pa.ArrowException as error:
        raise UnfitError(column.name, str(error).splitlines()[0]) from None


def _place_in(schema: pa.Schema, column: DeltaColumn) -> int | None:
    """Which column of a file it is."""
    if not column.by_id:
        return next((place for place, name in enumerate(schema.names) if name == column.physical), None)
    numbers = [(field.metadata or {}).get(_FIELD_ID) for field in schema]
    if not any(numbers):
        raise BadLogError("a file of it has no field ids, which its columns are known by")
    return next((place for place, number in enumerate(numbers) if number == str(column.id).encode()), None)


def _constants(file: File) -> dict[str, str | None]:
    names = [name for name in file if name.startswith(_PARTITION)]
    return {name.removeprefix(_PARTITION): _spelled(file[name]) for name in names}


def _spelled(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:f}" if isinstance(value, Decimal) else value.isoformat() if isinstance(value, date) else str(value)
