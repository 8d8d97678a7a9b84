"""The types and values of MariaDB and MySQL as Spark's.

Law: the copy and the log give the same value for the same row: the session's zone is UTC, DATETIME is local text that
is never moved, FLOAT is read as the DOUBLE that it is. Zero dates and dates that are none are refused, and so are times
below zero where a TIME has parts of a second: the log's reader tells other ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

Decode = Callable[[Any], Any]

_ZERO = datetime(1970, 1, 1)


def decoder(kind: str, spelled: str, length: int | None, type_: str) -> Decode:
    """From what the driver gives, by copy or by log; ValueError where the type has no such value."""
    if type_.startswith("decimal"):
        return _decimal
    if kind == "binary":
        return lambda value: _binary(value).ljust(length or 0, b"\0")
    if kind == "time" and "(" in spelled:
        return _time_from_zero
    return _DECODERS[type_]


def _only(*kinds: type) -> Decode:
    def decode(value: Any) -> Any:
        if type(value) not in kinds:
            raise ValueError(f"{value!r:.60} is not of the column's type")
        return value

    return decode


def _decimal(value: Any) -> Decimal:
    if type(value) not in (int, Decimal):
        raise ValueError(f"{value!r:.60} is not a decimal")
    return Decimal(value)


def _binary(value: Any) -> bytes:
    # The log gives bytes of a text without a character set as they are.
    if not isinstance(value, bytes | bytearray):
        raise ValueError(f"{value!r:.60} is not binary")
    return bytes(value)


def _string(value: Any) -> str:
    if isinstance(value, timedelta):
        return _time(value)
    return str(_only(str)(value))


def _time(value: timedelta) -> str:
    """As the server writes a TIME."""
    sign, micros = ("-", -value) if value < timedelta(0) else ("", value)
    seconds, rest = divmod(micros // timedelta(microseconds=1), 1_000_000)
    text = f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{rest:06d}" if rest else text


def _time_from_zero(value: Any) -> str:
    if _only(timedelta)(value) < timedelta(0):
        raise ValueError("a time below zero in a column with parts of a second")
    return _time(value)


def _instant(value: Any) -> datetime:
    """The log tells a timestamp of zeroes as second 0 of 1970, which is none: the first is second 1."""
    moment: datetime = _only(datetime)(value)
    if moment == _ZERO:
        raise ValueError("a timestamp of zeroes")
    return moment.replace(tzinfo=UTC)


_DECODERS: Mapping[str, Decode] = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), _only(int)),
    "float": _only(float),
    "double": _only(float),
    "string": _string,
    "binary": _binary,
    "date": _only(date),
    "timestamp_ntz": _only(datetime),
    "timestamp": _instant,
}
