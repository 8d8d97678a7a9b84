"""The columns of a table of files, told by the files themselves.

Law: a column is its name. A table has the columns that its settings declare and, where such are taken, those that files
bring; one that files had and none has any more is gone. A file without a column has NULL there. The type of a column
that no setting declares is one that every file's type widens to; where there is none, nobody can tell what a value is.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import BinaryIO

from rollview.core.schema import Column, Schema
from rollview.sources.files.formats import csv_names, json_objects, parquet_schema
from rollview.sources.protocol import LayoutChange, words_of
from rollview.sources.values import UnfitError
from rollview.types.spelling import widens

FileColumns = Mapping[str, str]
"""Types by names. A name without a type: the file has only NULL there."""

_NOTHING = ""
_JSON_KINDS: Mapping[type, str] = {bool: "boolean", int: "bigint", str: "string", type(None): _NOTHING}


def file_columns(file: BinaryIO, format_: str) -> FileColumns:
    readers: Mapping[str, Callable[[BinaryIO], FileColumns]] = {
        "csv": lambda one: dict.fromkeys(csv_names(one), "string"),
        "json": _json_columns,
        "parquet": lambda one: {column.name: column.type for column in parquet_schema(one)},
    }
    return readers[format_](file)


def _json_columns(file: BinaryIO) -> FileColumns:
    found: dict[str, str] = {}
    with io.TextIOWrapper(file, encoding="utf-8") as lines:
        for row in json_objects(lines):
            for name, value in row.items():
                kind = _JSON_KINDS.get(type(value), type(value).__name__)
                found[name] = _joined(name, [one for one in (found.get(name, _NOTHING), kind) if one])
    return found


@dataclass(frozen=True, slots=True)
class ColumnRules:
    """``declared``: types that settings say; ``takes``: whether columns are taken that files bring."""

    declared: Mapping[str, str]
    takes: bool

    def present(self, base: Schema, before: Iterable[FileColumns], now: Iterable[FileColumns]) -> Schema:
        """The columns of the table whose files these are, if it had the columns ``base`` with the files before."""
        files, had = list(now), {name for one in before for name in one}
        there = dict.fromkeys(name for one in files for name in one)
        kept = [c for c in base if c.name in there or c.name not in had or not files]
        columns = [Column(c.name, self._type(c, files)) for c in kept]
        if self.takes:
            names = [name for name in there if name not in base.names]
            new = {name: _joined(name, _types(name, files)) for name in names}
            columns += [Column(name, type_) for name, type_ in new.items() if type_]
        return Schema(tuple(columns))

    def _type(self, column: Column, files: Iterable[FileColumns]) -> str:
        """It stays while every file's type widens to it."""
        types = [] if column.name in self.declared else _types(column.name, files)
        if all(one == column.type or widens(one, column.type) for one in types):
            return column.type
        return _joined(column.name, types)


def change_between(source: str, remote: str, known: Schema, now: Schema, hidden: Iterable[str]) -> LayoutChange | None:
    """``hidden``: columns that files had all along that were read without them."""
    there = {column.name: column.type for column in now}
    other = {c.name: there[c.name] for c in known if there.get(c.name, c.type) != c.type}
    widened = {c.name: other[c.name] for c in known if c.name in other and widens(c.type, other[c.name])}
    retyped = [name for name in other if name not in widened]
    gone = [c.name for c in known if c.name not in there]
    added = tuple(column for column in now if column.name not in known.names)
    if not (widened or retyped or gone or added):
        return None
    reason = words_of([*gone, *retyped], {}, widened, added)
    copy = bool(retyped) or any(column.name in set(hidden) for column in added)
    about = (source, remote, reason, (*gone, *retyped))
    new = () if copy else added
    return LayoutChange(*about, widened=tuple(widened.items()), added=new, copy=copy, with_rows=True)


def _types(name: str, files: Iterable[FileColumns]) -> list[str]:
    return [one[name] for one in files if one.get(name, _NOTHING)]


def _joined(name: str, types: Iterable[str]) -> str:
    """The type that all of them widen to."""
    known = list(dict.fromkeys(types))
    if any(one in ("Decimal", "list", "dict") for one in known):
        raise UnfitError(name, "its values have no type that is sure; declare one in the source's settings")
    found = next((one for one in known if all(one == other or widens(other, one) for other in known)), None)
    if known and found is None:
        raise UnfitError(name, f"files have it as {' and as '.join(known)}")
    return found or _NOTHING
