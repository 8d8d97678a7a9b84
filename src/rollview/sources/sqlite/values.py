"""SQLite's types and values as Spark's.

Law: SQLite lets every row hold whatever it likes; the declared type says what a column is for, and a value of
another kind is refused. A REAL in a DECIMAL column means the shortest decimal that is that number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from math import isfinite
from typing import Any

_DECIMAL = re.compile(r"(?:DECIMAL|NUMERIC)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")
_EXACT = 2**53

_NAMED: Mapping[str, str] = {
    "BOOLEAN": "boolean",
    "BOOL": "boolean",
    "DATE": "date",
    "DATETIME": "timestamp_ntz",
    "TIMESTAMP": "timestamp_ntz",
    "BLOB": "binary",
}

Decode = Callable[[Any], Any]


def spark_type(declared: str) -> str | None:
    """The type that a declaration stands for; None where it does not say."""
    word = declared.strip().upper()
    decimal = _DECIMAL.fullmatch(word)
    if decimal:
        precision, scale = int(decimal[1]), int(decimal[2] or 0)
        return f"decimal({precision},{scale})" if scale <= precision <= 38 else None
    if word in _NAMED:
        return _NAMED[word]
    if "INT" in word:
        return "bigint"
    if any(part in word for part in ("CHAR", "CLOB", "TEXT", "JSON", "UUID")):
        return "string"
    return "double" if any(part in word for part in ("REAL", "FLOA", "DOUB")) else None


def decoder(type_: str) -> Decode:
    """From what SQLite holds to what a column of this type holds; ValueError where that is not the same."""
    return _decimal if type_.startswith("decimal") else _DECODERS.get(type_, _text)


def _boolean(value: Any) -> bool:
    if type(value) is int and value in (0, 1):
        return bool(value)
    raise _other(value, "0 or 1")


def _integer(value: Any) -> int:
    if type(value) is int:
        return value
    raise _other(value, "an integer")


def _double(value: Any) -> float:
    if type(value) is float:
        return value
    if type(value) is int and abs(value) <= _EXACT:
        return float(value)
    raise _other(value, "a real number")


def _decimal(value: Any) -> Decimal:
    if type(value) is int:
        return Decimal(value)
    if type(value) is float and isfinite(value):
        return Decimal(repr(value))
    raise _other(value, "a number")


def _text(value: Any) -> str:
    if type(value) is str:
        return value
    raise _other(value, "text")


def _binary(value: Any) -> bytes:
    if type(value) is bytes:
        return value
    raise _other(value, "a blob")


def _date(value: Any) -> date:
    day = date.fromisoformat(_text(value))
    if day.isoformat() != value:
        raise _other(value, "a date like 2026-01-31")
    return day


def _moment(value: Any) -> datetime:
    moment = datetime.fromisoformat(_text(value))
    if moment.tzinfo is not None or len(value) > 26:
        raise _other(value, "a date and time without a zone, in microseconds at most")
    return moment


_DECODERS: Mapping[str, Decode] = {
    "boolean": _boolean,
    "bigint": _integer,
    "int": _integer,
    "smallint": _integer,
    "tinyint": _integer,
    "double": _double,
    "binary": _binary,
    "date": _date,
    "timestamp_ntz": _moment,
}


def _other(value: Any, wanted: str) -> ValueError:
    return ValueError(f"{value!r:.60} is not {wanted}")
