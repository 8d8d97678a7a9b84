"""What the lines of a file or the messages of a topic say.

Law: a record is a change of one row, the end of a transaction, a sign of life, or nothing to us; whatever else it may
be is refused. With or without its schema, and within ``key``/``value`` or not, it says the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_POSTGRES_ID = re.compile(r"(\d+):\d+")
_OPERATIONS = ("c", "u", "d", "r", "t")


class UnknownRecordError(ValueError):
    pass


@dataclass(frozen=True, slots=True)
class Event:
    """``names``: what the table may be called. ``schemas``: of the columns, where the record tells it."""

    operation: str
    names: tuple[str, ...]
    transaction: str | None
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
    snapshot: str
    time: datetime
    schemas: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class TransactionEnd:
    """``counts``: how many events there are of each table."""

    transaction: str
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Heartbeat:
    time: datetime


Record = Event | TransactionEnd | Heartbeat | None
"""None: a tombstone, the begin of a transaction, or a message."""


def parse(data: bytes | None) -> Record:
    if data is None or not data.strip():
        return None
    try:
        whole = json.loads(data, parse_float=Decimal)
    except ValueError as error:
        raise UnknownRecordError(f"a record is not JSON ({error})") from None
    if isinstance(whole, dict) and "value" in whole and "op" not in whole:
        whole = whole["value"]
    if isinstance(whole, dict) and "payload" in whole and "schema" in whole:
        return _payload(whole["payload"], whole["schema"] or {})
    return _payload(whole, {})


def _payload(payload: Any, schema: Mapping[str, Any]) -> Record:
    if payload is None:
        return None
    if not isinstance(payload, dict):
        raise UnknownRecordError("a record is not an object")
    if "status" in payload and "id" in payload:
        return _status(payload)
    if "op" in payload:
        return _event(payload, schema)
    if set(payload) <= {"ts_ms", "ts_us", "ts_ns"} and "ts_ms" in payload:
        return Heartbeat(_EPOCH + timedelta(milliseconds=int(payload["ts_ms"])))
    raise UnknownRecordError("a record is neither a change nor the end of a transaction")


def _status(payload: Mapping[str, Any]) -> TransactionEnd | None:
    if payload["status"] != "END":
        return None
    counts = {str(one["data_collection"]): int(one["event_count"]) for one in payload.get("data_collections") or ()}
    return TransactionEnd(transaction_id(str(payload["id"])), counts)


def _event(payload: Mapping[str, Any], schema: Mapping[str, Any]) -> Event | None:
    operation, source = payload["op"], payload.get("source") or {}
    if operation == "m":
        return None
    if operation not in _OPERATIONS:
        raise UnknownRecordError(f"a record has the operation {operation!r}")
    told = payload.get("transaction") or {}
    return Event(
        operation,
        _names(source),
        transaction_id(str(told["id"])) if told.get("id") is not None else None,
        payload.get("before"),
        payload.get("after"),
        str(source.get("snapshot") or "false"),
        _time(source, payload),
        _schemas(schema),
    )


def transaction_id(text: str) -> str:
    """With PostgreSQL the second number is the event's own place in the log."""
    found = _POSTGRES_ID.fullmatch(text)
    return found[1] if found else text


def _names(source: Mapping[str, Any]) -> tuple[str, ...]:
    parts = [str(source[part]) for part in ("db", "schema", "table") if source.get(part)]
    shorter = [".".join(parts[start:]) for start in range(len(parts))]
    return tuple(shorter)


def _time(source: Mapping[str, Any], payload: Mapping[str, Any]) -> datetime:
    if source.get("ts_us") is not None:
        return _EPOCH + timedelta(microseconds=int(source["ts_us"]))
    return _EPOCH + timedelta(milliseconds=int(source.get("ts_ms") or payload.get("ts_ms") or 0))


def _schemas(schema: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    rows = (field for field in schema.get("fields") or () if field.get("field") in ("after", "before"))
    return {column["field"]: column for row in rows for column in row.get("fields") or ()}
