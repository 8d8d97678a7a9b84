"""Change events of Debezium, changed a little: a named state, or no wrong row."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from rollview.core.schema import Column, Schema
from rollview.errors import RollviewError
from rollview.sources import SourceSettings, TableSettings
from rollview.sources.debezium.source import DebeziumSource
from rollview.sources.debezium.streams import Found
from rollview.sources.protocol import Opening, SourceTable
from rollview.sources.values import as_rows
from tests.property.foreign import chances, changed, parts


class Memory:
    """A stream of lines."""

    def __init__(self, lines: Sequence[bytes]) -> None:
        self.lines = lines

    def start(self) -> Mapping[str, list[Any]]:
        return {"": [0, "e", 0]}

    def listed(self) -> Mapping[str, Sequence[str]]:
        return {}

    def check(self, *_: object) -> None: ...

    def records(self, stream: str, after: list[Any]) -> Iterator[Found]:
        for number, line in enumerate(self.lines[after[0] :], after[0] + 1):
            yield Found(stream, [number, "e", number], line)

    def close(self) -> None: ...


TYPES = {
    "id": "int",
    "n": "bigint",
    "v": "decimal(12,2)",
    "m": "timestamp",
    "d": "date",
    "b": "boolean",
    "x": "double",
    "w": "string",
    "r": "binary",
}
ROW = {
    "id": 1,
    "n": 2**40,
    "v": "ATI=",
    "m": 1_700_000_000_000_000,
    "d": 19_000,
    "b": True,
    "x": 0.5,
    "w": "zoë",
    "r": "AP8=",
}


def events() -> list[bytes]:
    source = {"db": "d", "schema": "public", "table": "t", "ts_us": 1_700_000_000_000_000, "snapshot": "false"}
    decimal = {"field": "v", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "2"}}
    schema = {
        "fields": [{"field": "after", "fields": [decimal, {"field": "m", "name": "io.debezium.time.MicroTimestamp"}]}]
    }
    told = [{"data_collection": "public.t", "event_count": 2}]
    first = {"op": "c", "before": None, "after": ROW, "source": source, "transaction": {"id": "7:1"}, "ts_ms": 5}
    second = {**first, "op": "u", "before": ROW, "after": {**ROW, "w": "x"}, "transaction": {"id": "7:2"}}
    end = {"status": "END", "id": "7:9", "event_count": 2, "data_collections": told, "ts_ms": 6}
    lines = [{"status": "BEGIN", "id": "7:0"}, {"schema": schema, "payload": first}, second, end, {"ts_ms": 7}]
    return [json.dumps(line).encode() for line in lines]


def debezium(tmp: Path) -> DebeziumSource:
    table = TableSettings("t", "t", TYPES, ("id",))
    columns = Schema(tuple(Column(name, type_) for name, type_ in TYPES.items()))
    settings = SourceSettings("debezium", str(tmp), (table,), {"before_images": "whole"})
    return DebeziumSource(Opening("s", settings, str(tmp), {"tag": "t"}, {"t": SourceTable("t", columns)}))


def told_rows(lines: Sequence[bytes]) -> list[dict[str, Any]]:
    """All rows that the lines hold, by a plain reading."""
    found: list[dict[str, Any]] = []
    for line in lines:
        try:
            whole = json.loads(line, parse_float=Decimal)
        except (ValueError, ArithmeticError, RecursionError):
            continue
        for _ in range(2):
            if isinstance(whole, dict) and "op" not in whole:
                whole = whole.get("value", whole.get("payload", whole))
        if isinstance(whole, dict):
            found += [row for row in (whole.get("before"), whole.get("after")) if isinstance(row, dict)]
    return found


@parts("debezium")
def test_debezium(part: int, tmp_path: Path) -> None:
    source, lines = debezium(tmp_path), events()
    for chance in chances("debezium", part):
        sent = list(lines)
        place = chance.randrange(len(sent))
        sent[place] = changed(chance, sent[place])
        source._streams = Memory(sent)
        try:
            batch = source.read('{"":[0,"e",0]}', 1000)
        except RollviewError:
            continue
        rows = told_rows(sent)
        for unit in batch.units:
            for change in unit.changes.values():
                for row in (*as_rows(change.before), *as_rows(change.after)):
                    assert any(row[0] == one.get("id") and row[7] == one.get("w") for one in rows), sent
