"""One Parquet file of a part: where it is, how many rows it has and what bounds its columns.

Law: bounds are true or absent. Columns of floating type have none, because NaN is above every bound; text longer
than a Delta reader expects and decimals that a JSON number would round have none either.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rollview.errors import Corrupt

_SAFE_PATH = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_.=+-]*/)*[A-Za-z0-9_][A-Za-z0-9_.=+-]*")
_BUCKET = re.compile(r"(?:^|/)_rv_bucket=(\d+)-of-(\d+)/")
_LINKED = re.compile(r"(?:^|/)(?:_rv_same=(?P<names>[0-9A-F.]+)/(?P<values>[0-9A-FN.]+)/)?linked-\d+\.parquet$")
_NULL = "N"
_LONGEST_TEXT = 32
_EXACT_DIGITS = 15

Bounds = tuple[Any, Any]


@dataclass(frozen=True, slots=True)
class DataFile:
    path: str
    """Relative to the folder of the part."""
    size: int
    rows: int
    stats: Mapping[str, Bounds] = field(default_factory=dict, hash=False)
    """Least and greatest value by physical column, NULL not counted."""
    nulls: Mapping[str, int] = field(default_factory=dict, hash=False)
    modified: int = 0
    """Milliseconds since 1970."""

    @property
    def bucket(self) -> int | None:
        found = _BUCKET.search(self.path)
        return int(found.group(1)) if found else None

    @property
    def bucket_count(self) -> int | None:
        """Among how many buckets the rows were spread when the file was written."""
        found = _BUCKET.search(self.path)
        return int(found.group(2)) if found else None

    @property
    def linked(self) -> bool:
        """Whether it is a file of somebody else's, and only its name is ours."""
        return _LINKED.search(self.path) is not None

    @property
    def constants(self) -> dict[str, str | None]:
        """The columns that are not in a linked file, because all its rows have this value there."""
        found = _LINKED.search(self.path)
        if found is None or found["names"] is None:
            return {}
        pairs = zip(found["names"].split("."), found["values"].split("."), strict=True)
        return {_decoded(name): None if value == _NULL else _decoded(value) for name, value in pairs}

    def bounds(self, physical: str) -> Bounds | None:
        return self.stats.get(physical)


def linked_name(number: int, constants: Mapping[str, str | None]) -> str:
    """What a linked file is called here."""
    name = f"linked-{number:06d}.parquet"
    if not constants:
        return name
    values = (_NULL if value is None else _encoded(value) for value in constants.values())
    return f"_rv_same={'.'.join(map(_encoded, constants))}/{'.'.join(values)}/{name}"


def _encoded(text: str) -> str:
    return text.encode().hex().upper()


def _decoded(text: str) -> str:
    return bytes.fromhex(text).decode()


def check_name(root: Path, relative: str) -> None:
    """Refuse a path that we never write."""
    if not _SAFE_PATH.fullmatch(relative):
        raise Corrupt(f"The Delta log in '{root}' names a file outside its folder: {relative!r}.", path=relative)


def safe_places(root: Path, files: tuple[DataFile, ...]) -> list[Path]:
    """Where the files are, proven to be below ``root`` with no symbolic link on the way out."""
    inside = os.path.realpath(root) + os.sep
    for file in files:
        check_name(root, file.path)
        if not os.path.realpath(root / file.path).startswith(inside):
            raise Corrupt(f"The file {file.path!r} of '{root}' leads out of its folder.", path=file.path)
    return [root / file.path for file in files]


def inspect(root: Path, place: Path, schema: pa.Schema) -> DataFile:
    """Read a Parquet footer."""
    footer = pq.read_metadata(place)
    status = place.stat()
    stats, nulls = _column_facts(footer, schema)
    relative = place.relative_to(root).as_posix()
    return DataFile(relative, status.st_size, footer.num_rows, stats, nulls, int(status.st_mtime * 1000))


def stats_json(file: DataFile) -> str:
    """The statistics of a Delta add action."""
    return json.dumps(
        {
            "numRecords": file.rows,
            "minValues": {name: _to_json(low) for name, (low, _) in file.stats.items()},
            "maxValues": {name: _to_json(high) for name, (_, high) in file.stats.items()},
            "nullCount": dict(file.nulls),
        }
    )


def _column_facts(footer: pq.FileMetaData, schema: pa.Schema) -> tuple[dict[str, Bounds], dict[str, int]]:
    stats: dict[str, Bounds] = {}
    nulls: dict[str, int] = {}
    places = {footer.schema.column(i).path: i for i in range(footer.num_columns)}
    for column in schema:
        if column.name not in places:
            continue
        found = [footer.row_group(g).column(places[column.name]).statistics for g in range(footer.num_row_groups)]
        if found and all(s is not None and s.has_null_count for s in found):
            nulls[column.name] = sum(s.null_count for s in found)
        bounds = _bounds(found, column.type) if found else None
        if bounds is not None:
            stats[column.name] = bounds
    return stats, nulls


def _bounds(found: list[Any], type_: pa.DataType) -> Bounds | None:
    if pa.types.is_floating(type_) or pa.types.is_binary(type_) or pa.types.is_boolean(type_):
        return None
    if pa.types.is_decimal(type_) and type_.precision > _EXACT_DIGITS:
        return None
    known = [s for s in found if s is not None and s.has_min_max]
    # A row group of NULL only has no bounds and does not widen those of the others.
    if not known or any(s is None or (not s.has_min_max and s.num_values > 0) for s in found):
        return None
    try:
        low, high = min(s.min for s in known), max(s.max for s in known)
    except (ValueError, OverflowError):
        return None
    if isinstance(low, str) and max(len(low), len(high)) > _LONGEST_TEXT:
        return None
    return low, high


def _to_json(value: Any) -> Any:
    if isinstance(value, datetime):
        text = value.replace(tzinfo=None).isoformat(timespec="microseconds")
        return text + ("Z" if value.tzinfo else "")
    if isinstance(value, date):
        return value.isoformat()
    return float(value) if isinstance(value, Decimal) else value
