"""What the lines of a file or the messages of a topic say.

Law: a record is a change of one row, the end of a transaction, a statement about tables, a sign of life, or nothing to
us; whatever else it may be is refused. With or without its schema, and within ``key``/``value`` or not, it says the
same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from rollview.sources.json_text import NotJsonError, load_json

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_POSTGRES_ID = re.compile(r"(\d+):\d+")
_WITH_STATEMENTS = ("mysql", "mariadb")
"""Connectors whose statements are read: others write them in a language of their own."""
_LOG_FILE = re.compile(r"(.*?)(\d+)", re.S)
_ID_PART = re.compile(r'"((?:[^"]|"")*)"(?:\.|$)')

LogPlace = tuple[str, int, int]
"""A place in the log of MySQL or MariaDB: what its files are called, the number of a file, and the place in it."""


class Operation(StrEnum):
    """What an event says was done, in Debezium's letters."""

    CREATE = "c"
    UPDATE = "u"
    DELETE = "d"
    READ = "r"
    """A row of the connector's snapshot."""
    TRUNCATE = "t"
    MESSAGE = "m"
    """A message in the log, which changes no row."""


class UnknownRecordError(ValueError):
    pass


@dataclass(frozen=True, slots=True)
class Event:
    """``names``: what the table may be called. ``schemas``: of the columns, where the record tells it."""

    operation: Operation
    names: tuple[str, ...]
    transaction: str | None
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
    snapshot: str
    time: datetime
    schemas: Mapping[str, Mapping[str, Any]]
    log: LogPlace | None = None

    @property
    def layout(self) -> Mapping[str, Mapping[str, Any]]:
        """The columns of the table, where the record tells all of them: those that its rows have, and no others."""
        images = (image for image in (self.before, self.after) if image is not None)
        return self.schemas if all(image.keys() == self.schemas.keys() for image in images) else {}


@dataclass(frozen=True, slots=True)
class TransactionEnd:
    """``counts``: how many events there are of each table."""

    transaction: str
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Heartbeat:
    time: datetime


@dataclass(frozen=True, slots=True)
class TableAfter:
    """A table after a statement. ``kind``: CREATE, ALTER or DROP; ``names`` and ``former``: what it may be called, and
    may have been called before; ``types``: of its columns in order, empty if nothing is told of them."""

    kind: str
    names: tuple[str, ...]
    former: tuple[str, ...]
    types: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement about tables, which the connector has met in the log."""

    database: str
    text: str
    tables: tuple[TableAfter, ...]
    time: datetime
    log: LogPlace | None = None
    is_met: bool = True
    """And not only told of what there was before the connector began to follow the log."""

    @property
    def left(self) -> Iterator[str]:
        """Names that a table had before it, and perhaps none has after it."""
        for one in self.tables:
            yield from one.names if one.kind == "DROP" else one.former


Record = Event | TransactionEnd | Statement | Heartbeat | None
"""None: a tombstone, the begin of a transaction, or a message."""


def parse(data: bytes | None) -> Record:
    if data is None or not data.strip():
        return None
    try:
        whole = load_json(data)
    except NotJsonError as error:
        raise UnknownRecordError(str(error)) from None
    if isinstance(whole, dict) and "value" in whole and "op" not in whole:
        whole = whole["value"]
    if isinstance(whole, dict) and "payload" in whole and "schema" in whole:
        return _payload(whole["payload"], _object(whole["schema"], "schema"))
    return _payload(whole, {})


def _payload(payload: Any, schema: Mapping[str, Any]) -> Record:
    if payload is None:
        return None
    if not isinstance(payload, dict):
        raise UnknownRecordError("it is not an object")
    if "status" in payload and "id" in payload:
        return _status(payload)
    if "op" in payload:
        return _event(payload, schema)
    if set(payload) <= {"ts_ms", "ts_us", "ts_ns"} and "ts_ms" in payload:
        return Heartbeat(_moment(payload["ts_ms"], "ts_ms"))
    if "tableChanges" in payload and "source" in payload:
        return _statement(payload)
    raise UnknownRecordError("it is neither a change nor the end of a transaction")


def _status(payload: Mapping[str, Any]) -> TransactionEnd | None:
    if payload["status"] == "BEGIN":
        return None
    if payload["status"] != "END":
        raise UnknownRecordError("the 'status' of a transaction is neither BEGIN nor END")
    counts: dict[str, int] = {}
    for one in _objects(payload.get("data_collections"), "data_collections"):
        name, count = one.get("data_collection"), one.get("event_count")
        if not isinstance(name, str) or type(count) is not int or count < 0 or name in counts:
            raise UnknownRecordError("'data_collections' does not tell how many events there are of each table")
        counts[name] = count
    return TransactionEnd(_transaction(payload), counts)


def _event(payload: Mapping[str, Any], schema: Mapping[str, Any]) -> Event | None:
    operation, source = _operation(payload["op"]), _object(payload.get("source"), "source")
    if operation is Operation.MESSAGE:
        return None
    told = _object(payload.get("transaction"), "transaction")
    return Event(
        operation,
        _names(source),
        _transaction(told) if told.get("id") is not None else None,
        _row(payload, "before"),
        _row(payload, "after"),
        str(source.get("snapshot") or "false"),
        _time(source, payload),
        _schemas(schema),
        _log_place(source),
    )


def _statement(payload: Mapping[str, Any]) -> Statement | None:
    source = _object(payload["source"], "source")
    if source.get("connector") not in _WITH_STATEMENTS:
        return None
    tables = tuple(_table_after(one) for one in _objects(payload["tableChanges"], "tableChanges"))
    # A text that is missing is one that nobody understands.
    database, text = payload.get("databaseName") or source.get("db") or "", payload.get("ddl") or ""
    if not isinstance(database, str) or not isinstance(text, str):
        raise UnknownRecordError("what it says of a statement is not text")
    is_met = str(source.get("snapshot") or "false") == "false"
    return Statement(database, text, tables, _time(source, payload), _log_place(source), is_met)


def _table_after(change: Mapping[str, Any]) -> TableAfter:
    table = _object(change.get("table"), "table")
    types = {str(column.get("name")): _spelled(column) for column in _objects(table.get("columns"), "columns")}
    return TableAfter(str(change.get("type")), _named(change.get("id")), _named(change.get("previousId")), types)


def _spelled(column: Mapping[str, Any]) -> str:
    """The type of a column as the server spells it: decimal(9,2) unsigned."""
    word, _, rest = str(column.get("typeName")).lower().partition(" ")
    arguments = ",".join(str(column[part]) for part in ("length", "scale") if column.get(part) is not None)
    return f"{word}({arguments}) {rest}".strip() if arguments else f"{word} {rest}".strip()


def _named(id_: Any) -> tuple[str, ...]:
    """What a table may be called that has this id, each part of which is in quotes."""
    parts = [part.replace('""', '"') for part in _ID_PART.findall(id_)] if isinstance(id_, str) else []
    return tuple(".".join(parts[start:]) for start in range(len(parts)))


def _log_place(source: Mapping[str, Any]) -> LogPlace | None:
    file, place = source.get("file"), source.get("pos")
    found = _LOG_FILE.fullmatch(file) if isinstance(file, str) else None
    if found is None or type(place) is not int or source.get("connector") not in _WITH_STATEMENTS:
        return None
    return found[1], int(found[2]), place


def _operation(letter: Any) -> Operation:
    try:
        return Operation(letter)
    except ValueError:
        raise UnknownRecordError(f"its operation is {letter!r:.40}") from None


def _transaction(told: Mapping[str, Any]) -> str:
    if type(told["id"]) not in (str, int) or told["id"] == "":
        raise UnknownRecordError("the 'id' of its transaction is not text")
    return transaction_id(str(told["id"]))


def transaction_id(text: str) -> str:
    """With PostgreSQL the second number is the event's own place in the log."""
    found = _POSTGRES_ID.fullmatch(text)
    return found[1] if found else text


def _names(source: Mapping[str, Any]) -> tuple[str, ...]:
    parts = [source[part] for part in ("db", "schema", "table") if source.get(part)]
    if not all(isinstance(part, str) for part in parts):
        raise UnknownRecordError("the name of its table is not text")
    return tuple(".".join(parts[start:]) for start in range(len(parts)))


def _row(payload: Mapping[str, Any], side: str) -> Mapping[str, Any] | None:
    image = payload.get(side)
    if image is not None and not isinstance(image, dict):
        raise UnknownRecordError(f"'{side}' is not a row")
    return image


def _time(source: Mapping[str, Any], payload: Mapping[str, Any]) -> datetime:
    if source.get("ts_us") is not None:
        return _moment(source["ts_us"], "ts_us")
    return _moment(source.get("ts_ms") or payload.get("ts_ms") or 0, "ts_ms")


def _moment(number: Any, name: str) -> datetime:
    if type(number) is not int:
        raise UnknownRecordError(f"'{name}' is not a whole number")
    try:
        return _EPOCH + timedelta(microseconds=number if name == "ts_us" else number * 1_000)
    except OverflowError:
        raise UnknownRecordError(f"'{name}' is no moment between the years 1 and 9999") from None


def _schemas(schema: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    rows = [field for field in _objects(schema.get("fields"), "fields") if field.get("field") in ("after", "before")]
    columns = [column for row in rows for column in _objects(row.get("fields"), "fields")]
    if not all(isinstance(column.get("field"), str) for column in columns):
        raise UnknownRecordError("its schema has a field without a name")
    return {column["field"]: column for column in columns}


def _object(value: Any, name: str) -> Mapping[str, Any]:
    """What may be left out, or be null."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise UnknownRecordError(f"'{name}' is not an object")
    return value


def _objects(value: Any, name: str) -> Sequence[Mapping[str, Any]]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise UnknownRecordError(f"'{name}' is not a list of objects")
    return value
