"""The base of all answers, and how a value is written as JSON.

Law: ``to_json`` holds nothing but what JSON has; an interval is ``{"after", "through"}``, a time is ISO 8601 in UTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, fields, is_dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from math import isfinite
from typing import Any, ClassVar

from rollview.core.schema import Column


def plain(value: Any) -> Any:
    """The value in JSON's own types."""
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    if value is None or isinstance(value, int | str):
        return value
    if isinstance(value, datetime):
        return (value.astimezone(UTC) if value.tzinfo else value).isoformat()
    if isinstance(value, Result):
        return value.to_json()
    if isinstance(value, Column):
        # How it is stored is nobody's business but the files'.
        return {"name": value.name, "type": value.type}
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list | set | frozenset):
        return [plain(item) for item in value]
    return _scalar(value)


def _scalar(value: Any) -> Any:
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, bytes | bytearray):
        return value.hex()
    return str(value)


class Result:
    """Base of all answers, each a frozen dataclass."""

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def to_json(self) -> dict[str, Any]:
        return {name: plain(getattr(self, name)) for name in self.__dataclass_fields__}
