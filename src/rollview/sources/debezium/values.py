"""Values of JSON as Spark's.

Law: what the record's schema says of a column decides how its value is read; without one, what the settings declare.
Nothing is guessed from the value: a decimal is text or bytes as declared, a number of microseconds is not one of
milliseconds.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

UNAVAILABLE = "__debezium_unavailable_value"

_EPOCH = datetime(1970, 1, 1)
_UNITS = {"milliseconds": 1_000, "microseconds": 1, "nanoseconds": None}
_TIMES: Mapping[str, str] = {
    "io.debezium.time.Timestamp": "milliseconds",
    "org.apache.kafka.connect.data.Timestamp": "milliseconds",
    "io.debezium.time.MicroTimestamp": "microseconds",
    "io.debezium.time.NanoTimestamp": "nanoseconds",
}
_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_INTEGERS = ("tinyint", "smallint", "int", "bigint")

OPTIONS: Mapping[str, tuple[str, ...]] = {
    "decimals": ("precise", "string"),
    "times": ("milliseconds", "microseconds", "nanoseconds"),
    "before_images": ("whole",),
    "file_order": ("name", "natural"),
    "allow_outside": ("true", "false"),
    "new_columns": ("take", "ignore", "stop"),
}


def decode(value: Any, type_: str, schema: Mapping[str, Any] | None, options: Mapping[str, str]) -> Any:
    """ValueError where the column's type has no such value."""
    if value is None:
        return None
    if type_.startswith("decimal"):
        return _decimal(value, type_, schema, options.get("decimals", "precise"))
    if type_ in ("timestamp", "timestamp_ntz"):
        return _moment(value, type_, schema, options.get("times", "microseconds"))
    return _PLAIN[type_](value)


def is_known(type_: str) -> bool:
    return type_.startswith("decimal") or type_ in ("timestamp", "timestamp_ntz") or type_ in _PLAIN


def _decimal(value: Any, type_: str, schema: Mapping[str, Any] | None, mode: str) -> Decimal:
    if isinstance(value, dict):
        return _unscaled(str(value["value"]), int(value["scale"]))
    if isinstance(value, int | Decimal):
        return Decimal(value)
    if not isinstance(value, str):
        raise ValueError(f"{value!r:.60} is not a decimal")
    precise = mode == "precise" if schema is None else schema.get("name") == _DECIMAL
    if not precise:
        return Decimal(value)
    told = (schema or {}).get("parameters", {}).get("scale")
    return _unscaled(value, int(told) if told is not None else _scale(type_))


def _scale(type_: str) -> int:
    found = re.fullmatch(r"decimal\((\d+),\s*(\d+)\)", type_)
    return int(found[2]) if found else 0


def _unscaled(text: str, scale: int) -> Decimal:
    number = int.from_bytes(base64.b64decode(text, validate=True), "big", signed=True)
    return Decimal(number).scaleb(-scale)


def _moment(value: Any, type_: str, schema: Mapping[str, Any] | None, unit: str) -> datetime:
    if isinstance(value, str):
        moment = datetime.fromisoformat(value)
    elif type(value) is int:
        moment = _EPOCH + timedelta(microseconds=_micros(value, _TIMES.get((schema or {}).get("name", ""), unit)))
        moment = moment.replace(tzinfo=UTC) if type_ == "timestamp" else moment
    else:
        raise ValueError(f"{value!r:.60} is not a moment")
    if (moment.tzinfo is None) != (type_ == "timestamp_ntz"):
        raise ValueError(f"{value!r:.60} has {'no' if moment.tzinfo is None else 'a'} zone")
    return moment


def _micros(value: int, unit: str) -> int:
    factor = _UNITS[unit]
    if factor is not None:
        return value * factor
    micros, rest = divmod(value, 1_000)
    if rest:
        raise ValueError(f"{value} is finer than a microsecond")
    return micros


def _day(value: Any) -> date:
    if type(value) is int:
        return date(1970, 1, 1) + timedelta(days=value)
    return date.fromisoformat(_text(value))


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise ValueError(f"{value!r:.60} is not a whole number")
    return value


def _float(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | Decimal | str):
        raise ValueError(f"{value!r:.60} is not a number")
    return float(value)


def _boolean(value: Any) -> bool:
    if type(value) is not bool:
        raise ValueError(f"{value!r:.60} is not true or false")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r:.60} is not text")
    return value


def _binary(value: Any) -> bytes:
    return base64.b64decode(_text(value), validate=True)


_PLAIN: Mapping[str, Callable[[Any], Any]] = {
    **dict.fromkeys(_INTEGERS, _whole),
    "float": _float,
    "double": _float,
    "boolean": _boolean,
    "string": _text,
    "binary": _binary,
    "date": _day,
}
