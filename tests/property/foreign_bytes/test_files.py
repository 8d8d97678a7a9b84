"""Files of JSON lines and of CSV, changed a little: a named state, or no wrong row."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from rollview.core.schema import Column, Schema
from rollview.sources.files.formats import UnreadableError, read_file
from rollview.sources.values import UnfitError, as_rows
from tests.property.foreign import chances, changed, parts

FILE_TYPES = {
    "id": "int",
    "v": "decimal(12,2)",
    "w": "string",
    "b": "boolean",
    "d": "date",
    "m": "timestamp_ntz",
    "x": "double",
}
FILE_SCHEMA = Schema(tuple(Column(name, type_) for name, type_ in FILE_TYPES.items()))
JSON_LINES = (
    b'{"id": 1, "v": 12.50, "w": "zo\\u00eb", "b": true, "d": "2026-01-31", "m": "2026-03-29T02:30:00.01", "x": 0.1}\n'
    b'{"id": 2, "v": "-0.01", "w": null, "b": false, "d": null, "m": null, "x": 1e300}\n{"id": 3}\n'
)
CSV = (
    "id,v,w,b,d,m,x\n1,12.50,zoë,true,2026-01-31,2026-03-29T02:30:00.000001,0.1\n"
    '2,-0.01,"a ""b"",\nc",false,,,1e300\n3,,"",,,,\n'
).encode()


def read_changed(format_: str, data: bytes) -> list[tuple[Any, ...]] | None:
    try:
        return list(as_rows(read_file(io.BytesIO(data), format_, FILE_SCHEMA)))
    except (UnreadableError, UnfitError):
        return None


def plain_numbers(column: str, values: Sequence[Any]) -> list[Any]:
    kinds = {"id": int, "v": lambda text: Decimal(text).quantize(Decimal("0.01")), "x": float}
    return [None if value is None else kinds[column](value) for value in values]


def alike(found: Sequence[Any], said: Sequence[Any]) -> bool:
    """NaN is itself here."""
    return all(one == other or repr(one) == repr(other) for one, other in zip(found, said, strict=True))


@parts("json")
def test_json_lines(part: int) -> None:
    for chance in chances("json", part):
        data = changed(chance, JSON_LINES)
        rows = read_changed("json", data)
        if rows is None:
            continue
        plain = [json.loads(line, parse_float=Decimal) for line in data.decode().split("\n") if line]
        assert len(rows) == len(plain), data
        for place, name in ((0, "id"), (1, "v"), (6, "x")):
            said = plain_numbers(name, [one.get(name) for one in plain])
            assert alike([row[place] for row in rows], said), data
        assert [row[2] for row in rows] == [one.get("w") for one in plain], data


@parts("csv")
def test_csv(part: int) -> None:
    for chance in chances("csv", part):
        data = changed(chance, CSV)
        rows = read_changed("csv", data)
        if rows is None or b"\r" in data or b"\0" in data:
            continue
        header, *lines = [line for line in csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")) if line]
        assert len(rows) == len(lines), data
        for place, name in ((0, "id"), (1, "v"), (6, "x")):
            texts = [line[header.index(name)] or None for line in lines]
            assert alike([row[place] for row in rows], plain_numbers(name, texts)), data
        assert [row[2] or "" for row in rows] == [line[header.index("w")] for line in lines], data
