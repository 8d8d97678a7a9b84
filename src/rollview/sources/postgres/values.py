"""PostgreSQL's types and values as Spark's.

Law: the copy and the log both give values as text, in one session's fixed spelling, so a row reads the same whichever
way it came. What Spark has no value for (infinity as a date, NaN as a decimal, years before 1 or after 9999) is
refused, never bent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from rollview.sources.values import constant_text

SESSION = (
    "SET datestyle = 'ISO, YMD'",
    "SET intervalstyle = 'iso_8601'",
    "SET timezone = 'UTC'",
    "SET bytea_output = 'hex'",
    "SET extra_float_digits = 1",
    "SET client_encoding = 'UTF8'",
)
PATIENT = "SET idle_in_transaction_session_timeout = 0"
"""A copy keeps its snapshot by connections that are in a transaction and may have nothing to do for long."""

Decode = Callable[[str], Any]

_NUMERIC = 1700
_TYPES: Mapping[int, str] = {
    16: "boolean",
    17: "binary",
    18: "string",
    19: "string",
    20: "bigint",
    21: "smallint",
    23: "int",
    25: "string",
    26: "bigint",
    114: "string",
    650: "string",
    700: "float",
    701: "double",
    829: "string",
    869: "string",
    1042: "string",
    1043: "string",
    1082: "date",
    1083: "string",
    1114: "timestamp_ntz",
    1184: "timestamp",
    1186: "string",
    1266: "string",
    2950: "string",
    3802: "string",
}
_MOST_DIGITS = 38


def spark_type(oid: int, modifier: int, category: str, base: tuple[int, int] | None) -> str | None:
    """The type that keeps every value, or None. ``category``: pg_type.typtype; ``base``: what a domain is over."""
    if category == "d" and base is not None:
        return spark_type(base[0], base[1] if modifier < 0 else modifier, "b", None)
    if oid == _NUMERIC:
        return _decimal_type(modifier)
    return "string" if category == "e" else _TYPES.get(oid)


def _decimal_type(modifier: int) -> str | None:
    if modifier < 4:
        return None
    precision, scale = ((modifier - 4) >> 16) & 0xFFFF, (modifier - 4) & 0x7FF
    # The scale is a signed number of eleven bits.
    scale = scale - 0x800 if scale & 0x400 else scale
    return f"decimal({precision},{scale})" if 0 <= scale <= precision <= _MOST_DIGITS else None


def is_known(type_: str) -> bool:
    return type_.startswith("decimal") or type_ in _DECODERS


def decoder(type_: str) -> Decode:
    """From PostgreSQL's text; ValueError where the type has no such value."""
    return _decimal if type_.startswith("decimal") else _DECODERS[type_]


def told_constant(text: str, type_: str) -> str | None:
    """A value in PostgreSQL's text as one that both Spark and Arrow read as the same; None if there is none."""
    try:
        return constant_text(decoder(type_)(text), type_)
    except (ValueError, ArithmeticError, KeyError):
        return None


def _boolean(text: str) -> bool:
    return {"t": True, "f": False}[text]


def _decimal(text: str) -> Decimal:
    number = Decimal(text)
    if not number.is_finite():
        raise ValueError(f"{text} is not a decimal")
    return number


def _binary(text: str) -> bytes:
    if not text.startswith("\\x"):
        raise ValueError("a bytea that is not written in hexadecimal")
    return bytes.fromhex(text[2:])


def _date(text: str) -> date:
    if len(text) != len("2026-12-31"):
        raise ValueError(f"{text} is not a date between the years 1 and 9999")
    return date.fromisoformat(text)


def _moment(text: str) -> datetime:
    moment = _parsed(text)
    if moment.tzinfo is not None:
        raise ValueError(f"{text} has a zone")
    return moment


def _instant(text: str) -> datetime:
    moment = _parsed(text)
    if moment.utcoffset() is None or moment.utcoffset():
        raise ValueError(f"{text} is not in UTC")
    return moment


def _parsed(text: str) -> datetime:
    if text[4:5] != "-" or text.endswith(" BC"):
        raise ValueError(f"{text} is not a moment between the years 1 and 9999")
    return datetime.fromisoformat(text)


_DECODERS: Mapping[str, Decode] = {
    "boolean": _boolean,
    "tinyint": int,
    "smallint": int,
    "int": int,
    "bigint": int,
    "float": float,
    "double": float,
    "string": str,
    "binary": _binary,
    "date": _date,
    "timestamp_ntz": _moment,
    "timestamp": _instant,
}
