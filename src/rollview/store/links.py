"""Files of others in a part, by hard links.

Law: nothing is copied, and nothing of theirs is changed. What is linked stays for as long as we name it, whatever its
owner does with his own name. A file is linked only if Arrow and Spark read from it exactly what the part's schema says;
what is the same in all its rows and not in the file itself is told by our name of it.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from rollview.core import durable
from rollview.core.lent import Lent, UnlinkableError
from rollview.core.schema import Schema
from rollview.store.datafile import DataFile, linked_name
from rollview.types.arrow import arrow_schema

_AT_ONCE = 8
_LONGEST_NAME = 255
_ANSWERS = {
    errno.EXDEV: "it is on another file system than the warehouse",
    errno.EPERM: "this user may not link its files",
    errno.EACCES: "this user may not link its files",
    errno.EMLINK: "its files have too many links",
    errno.ENOTSUP: "its file system has no links",
}
# Dates and times of the old calendar: Spark moves them as it reads, Arrow does not.
_OLD_CALENDAR = re.compile(rb"org\.apache\.spark\.(legacyDateTime|legacyINT96)")


def link(root: Path, place: Path, lent: Sequence[Lent], schema: Schema) -> tuple[DataFile, ...]:
    """The files under names below ``place``, which is below ``root``; all or none."""
    _check_names(schema)
    try:
        with ThreadPoolExecutor(_AT_ONCE, "rollview-link") as pool:
            found = tuple(pool.map(lambda pair: _linked(root, place, pair[0], pair[1], schema), enumerate(lent)))
        folders = {folder for file in found for folder in (root / file.path).parents if folder.is_relative_to(place)}
        durable.sync([*folders, root] if found else ())
        return found
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise


def kept_alone(root: Path, files: Iterable[DataFile]) -> int:
    """Bytes that are there only because we name them: their owner has taken his own name away."""
    with durable.disk(root):
        found = [(root / file.path).stat() for file in files if file.linked]
    return sum(status.st_size for status in found if status.st_nlink == 1)


def _linked(root: Path, place: Path, number: int, one: Lent, schema: Schema) -> DataFile:
    target = place / linked_name(number, one.constants)
    if "" in one.constants.values() or any(len(part) > _LONGEST_NAME for part in target.parts):
        raise UnlinkableError("the value of a partition is empty or too long")
    rows = _checked(one, arrow_schema(schema))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        os.link(one.place, target)
    except OSError as error:
        raise UnlinkableError(_ANSWERS.get(error.errno or 0, f"its files cannot be linked ({error})")) from None
    status = target.stat()
    relative = target.relative_to(root).as_posix()
    return DataFile(relative, status.st_size, rows, modified=int(status.st_mtime * 1000))


def can_link(schema: Schema) -> bool:
    """Whether columns have in files the names that they have in the schema."""
    try:
        _check_names(schema)
    except UnlinkableError:
        return False
    return True


def _check_names(schema: Schema) -> None:
    for column, stored in zip(schema, arrow_schema(schema).names, strict=True):
        if column.name != stored or column.name.lower() == "_metadata":
            raise UnlinkableError(f"column '{column.name}' has another name in files of ours")


def _checked(one: Lent, wanted: pa.Schema) -> int:
    """How many rows the file has, if all of its columns are as they are wanted."""
    try:
        footer = pq.read_metadata(one.place)
    except (OSError, pa.ArrowException) as error:
        raise UnlinkableError(f"a file of it cannot be read ({str(error).splitlines()[0]})") from None
    if any(_OLD_CALENDAR.match(key) for key in footer.metadata or {}):
        raise UnlinkableError("a file of it has dates of the old calendar")
    there = footer.schema.to_arrow_schema()
    old_times = {column.path for column in map(footer.schema.column, range(footer.num_columns)) if _is_old_time(column)}
    for column in wanted:
        if column.name in one.constants:
            _check_constant(column)
        else:
            _check_column(column, there, column.name in old_times)
    return int(footer.num_rows)


def _is_old_time(column: pq.ColumnSchema) -> bool:
    return str(column.physical_type) == "INT96"


def _check_constant(column: pa.Field) -> None:
    type_ = column.type
    tests = (pa.types.is_integer, pa.types.is_string, pa.types.is_date, pa.types.is_boolean, pa.types.is_decimal)
    if not any(test(type_) for test in tests):
        raise UnlinkableError(f"it is partitioned by '{column.name}', which is of type {type_}")


def _check_column(column: pa.Field, there: pa.Schema, is_old_time: bool) -> None:
    named = [field for field in there if field.name.lower() == column.name.lower()]
    if not named:
        return
    if len(named) > 1 or named[0].name != column.name:
        raise UnlinkableError(f"a file of it has column '{named[-1].name}' for '{column.name}'")
    found = pa.timestamp("us", "UTC") if is_old_time else _plain(named[0].type)
    if found != column.type:
        raise UnlinkableError(f"a file of it has column '{column.name}' as {named[0].type}, not as {column.type}")


def _plain(type_: pa.DataType) -> pa.DataType:
    """What is in the file, whatever Arrow held it in when it was written."""
    if pa.types.is_dictionary(type_):
        return _plain(type_.value_type)
    if pa.types.is_string_view(type_) or pa.types.is_large_string(type_):
        return pa.string()
    if pa.types.is_binary_view(type_) or pa.types.is_large_binary(type_):
        return pa.binary()
    if pa.types.is_timestamp(type_) and type_.tz is not None:
        return pa.timestamp(type_.unit, "UTC")
    return type_
