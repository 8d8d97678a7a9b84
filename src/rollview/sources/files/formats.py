"""Files as tables in the declared types.

Law: a value is of its column's type or the file is refused with the column's name. CSV knows no NULL beside an empty
field without quotes; a quoted empty field is empty text. A column that a file has and the table does not is refused
too, so that nothing is left out unseen, unless columns are read by name.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq

from rollview.core.schema import Column, Schema
from rollview.sources.json_text import NotJsonError, load_json
from rollview.sources.values import UnfitError, as_table
from rollview.types.arrow import arrow_type, spark_type

SUFFIXES: Mapping[str, tuple[str, ...]] = {
    "csv": (".csv",),
    "json": (".jsonl", ".ndjson", ".json"),
    "parquet": (".parquet",),
}


_SHOWN = 60
_TEXTS = pv.ConvertOptions(check_utf8=True)


class UnreadableError(Exception):
    """A file that is not what its format says."""


def read_file(
    file: BinaryIO, format_: str, schema: Schema, *, by_name: bool = False, called: Mapping[str, str] | None = None
) -> pa.Table:
    """``by_name``: columns of the table that the file lacks are NULL, others of the file are left out. ``called``: the
    present names of columns that files may have under former ones. OSError: the system could not read it, which says
    nothing of what is in it."""
    readers: Mapping[str, Callable[[BinaryIO, Schema, _NamesInFile], pa.Table]] = {
        "csv": _read_csv,
        "json": _read_json,
        "parquet": _read_parquet,
    }
    with telling_unreadable():
        return readers[format_](file, schema, _NamesInFile(by_name, called or {}))


@dataclass(frozen=True, slots=True)
class _NamesInFile:
    by_name: bool
    called: Mapping[str, str]

    def own_names(self, names: Iterable[str]) -> dict[str, str]:
        """The file's own name of each column."""
        return dict(zip(present_names(names, self.called), names, strict=True))


def present_names(names: Iterable[str], called: Mapping[str, str]) -> tuple[str, ...]:
    return _distinct(called.get(name, name) for name in names)


@contextmanager
def telling_unreadable() -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise _unreadable(error) from None


def parquet_schema(file: BinaryIO) -> Schema:
    """The columns of a Parquet file, as far as they are of simple types."""
    try:
        physical = pq.read_schema(file)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(error) from None
    return Schema(tuple(Column(field.name, spelled(field)) for field in physical))


def _unreadable(error: Exception) -> Exception:
    """Arrow tells broken files as OSError, too, but without the system's number of an error."""
    if isinstance(error, OSError) and error.errno is not None:
        return error
    return UnreadableError(str(error).splitlines()[0])


def spelled(field: pa.Field) -> str:
    """A simple Arrow type as Spark spells it, where the two have the same values."""
    type_ = field.type
    if pa.types.is_large_string(type_) or pa.types.is_string_view(type_):
        type_ = pa.string()
    if pa.types.is_timestamp(type_) and type_.unit in ("s", "ms"):
        type_ = pa.timestamp("us", type_.tz)
    if pa.types.is_timestamp(type_) and type_.tz is not None:
        type_ = pa.timestamp("us", "UTC") if type_.unit == "us" else type_
    try:
        if pa.types.is_nested(type_):
            raise KeyError(type_)
        return spark_type(type_)
    except KeyError:
        raise UnfitError(field.name, f"the file has it as {field.type}, which has no exact counterpart") from None


def _read_parquet(file: BinaryIO, schema: Schema, reading: _NamesInFile) -> pa.Table:
    # As one file: a folder's name must not become a column.
    table = pq.ParquetFile(file).read()
    own = reading.own_names(_checked(table.column_names, schema, reading))
    arrays = [_cast(_values(table, own.get(column.name)), column) for column in schema]
    return pa.Table.from_arrays(arrays, names=list(schema.names))


def _values(table: pa.Table, name: str | None) -> pa.ChunkedArray:
    return pa.chunked_array([pa.nulls(table.num_rows)]) if name is None else table[name]


def _cast(values: pa.ChunkedArray, column: Column) -> pa.ChunkedArray:
    try:
        return values.cast(arrow_type(column.type, column.name), safe=True)
    except pa.ArrowException as error:
        raise UnfitError(column.name, str(error).splitlines()[0]) from None


def csv_names(file: BinaryIO) -> tuple[str, ...]:
    """The names of its header line."""
    if not file.read(1):
        raise UnreadableError("it has no header line")
    file.seek(0)
    with pv.open_csv(file, parse_options=pv.ParseOptions(newlines_in_values=True), convert_options=_TEXTS) as reader:
        return _distinct(reader.schema.names)


def _read_csv(file: BinaryIO, schema: Schema, reading: _NamesInFile) -> pa.Table:
    parsing = pv.ParseOptions(newlines_in_values=True)
    if not file.read(1):
        raise UnreadableError("it has no header line")
    file.seek(0)
    texts = pv.ConvertOptions(
        column_types={name: pa.string() for name in (*schema.names, *reading.called)},
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        null_values=[""],
        check_utf8=True,
    )
    table = pv.read_csv(file, parse_options=parsing, convert_options=texts)
    own = reading.own_names(_checked(table.column_names, schema, reading))
    columns = [_converted(_values(table, own.get(column.name)).to_pylist(), column) for column in schema]
    return as_table(list(zip(*columns, strict=True)), schema)


def _converted(values: list[str | None], column: Column) -> list[Any]:
    convert = _TEXT.get(column.type, _decimal if column.type.startswith("decimal") else None)
    if convert is None:
        raise UnfitError(column.name, f"CSV cannot tell a {column.type}")
    return _each(values, column, convert)


def _each(values: list[Any], column: Column, convert: Callable[[Any], Any]) -> list[Any]:
    done: list[Any] = []
    for value in values:
        try:
            done.append(None if value is None else convert(value))
        except (ValueError, InvalidOperation, KeyError, TypeError):
            raise UnfitError(column.name, f"{value!r:.60} is not a value of {column.type}") from None
    return done


def json_objects(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(lines, 1):
        if not line.endswith("\n"):
            raise UnreadableError("its last line does not end, so it may not be whole")
        yield _object(line, number)


def _read_json(file: BinaryIO, schema: Schema, reading: _NamesInFile) -> pa.Table:
    rows: list[dict[str, Any]] = []
    with io.TextIOWrapper(file, encoding="utf-8") as lines:
        for row in json_objects(lines):
            own = reading.own_names(_checked(row, schema, reading, all_needed=False))
            rows.append({name: row[known] for name, known in own.items()})
    columns = [_each([row.get(column.name) for row in rows], column, _json(column)) for column in schema]
    return as_table(list(zip(*columns, strict=True)) if rows else [], schema)


def _object(line: str, number: int) -> dict[str, Any]:
    try:
        row = load_json(line)
    except NotJsonError as error:
        raise UnreadableError(f"line {number}: {error}; it begins with {line[:_SHOWN]!r}") from None
    if not isinstance(row, dict):
        raise UnreadableError(f"line {number} is not an object; it begins with {line[:_SHOWN]!r}")
    return row


def _json(column: Column) -> Callable[[Any], Any]:
    """From JSON's own kinds; numbers keep their digits until the column's type is known."""
    if column.type == "boolean":
        return lambda value: _only(value, bool)
    if column.type in _WHOLE:
        return lambda value: _only(value, int)
    if column.type.startswith("decimal"):
        return lambda value: Decimal(value) if type(value) in (int, Decimal, str) else _only(value, Decimal)
    if column.type in ("float", "double"):
        return lambda value: float(value) if type(value) in (int, Decimal, str) else _only(value, float)
    return lambda value: _TEXT[column.type](_only(value, str))


def _only(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise ValueError(value)
    return value


def _decimal(text: str) -> Decimal:
    number = Decimal(text)
    if not number.is_finite():
        raise ValueError(text)
    return number


def _day(text: str) -> date:
    day = date.fromisoformat(text)
    if day.isoformat() != text:
        raise ValueError(text)
    return day


def _local(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is not None:
        raise ValueError(text)
    return moment


def _instant(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(text)
    return moment


_WHOLE = ("tinyint", "smallint", "int", "bigint")
_TEXT: Mapping[str, Callable[[str], Any]] = {
    **dict.fromkeys(_WHOLE, int),
    "boolean": lambda text: {"true": True, "false": False}[text.lower()],
    "float": float,
    "double": float,
    "string": str,
    "date": _day,
    "timestamp_ntz": _local,
    "timestamp": _instant,
}


def _checked(
    found: Iterable[str], schema: Schema, reading: _NamesInFile, *, all_needed: bool = True
) -> tuple[str, ...]:
    """The file's names."""
    names = _distinct(found)
    if reading.by_name:
        return names
    extra = [name for name in names if name not in schema.names]
    missing = [name for name in schema.names if name not in names]
    if extra:
        raise UnfitError(extra[0], "the table has no such column")
    if missing and all_needed:
        raise UnfitError(missing[0], "the file has no such column")
    return names


def _distinct(found: Iterable[str]) -> tuple[str, ...]:
    names = tuple(found)
    if len(set(names)) != len(names):
        raise UnreadableError("it has two columns of one name")
    return names
