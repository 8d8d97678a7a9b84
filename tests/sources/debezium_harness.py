from __future__ import annotations

import base64
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from threading import Lock
from typing import Any

from rollview.sources import SourceSettings, TableSettings
from rollview.sources.debezium.source import DebeziumSource
from tests.sources.harness import ACCOUNTS, NOTES, Bag, Row, Write

TYPES = {"account": {"id": "int", "owner": "string", "balance": "decimal(12,2)"}, "note": {"text": "string"}}
PREFIX = "bank"


class Connector:
    """Writes records as Debezium's PostgreSQL connector does with ``provide.transaction.metadata=true``."""

    def __init__(self, send: Callable[[str, Any], None]) -> None:
        self._send = send
        self._number = 500
        self.lock = Lock()

    def snapshot(self, rows: dict[str, Bag]) -> None:
        every = [(table, row) for table, bag in rows.items() for row in bag.elements()]
        for place, (table, row) in enumerate(every):
            flag = "first" if place == 0 else "last" if place == len(every) - 1 else "true"
            self._send(table, self.envelope(table, "r", None, row, None, flag))

    def transaction(self, events: list[tuple[str, str, Row | None, Row | None]]) -> None:
        self._number += 1
        number = str(self._number)
        self._send("transaction", {"status": "BEGIN", "id": f"{number}:1", "ts_ms": _now()})
        for place, (table, op, before, after) in enumerate(events):
            self._send(table, self.envelope(table, op, before, after, f"{number}:{100 + place}"))
            if op == "d":
                self._send(table, None)
        counts = Counter(table for table, *_ in events)
        told = [{"data_collection": f"public.{table}", "event_count": count} for table, count in counts.items()]
        end = {"status": "END", "id": f"{number}:999", "event_count": len(events), "data_collections": told}
        self._send("transaction", {**end, "ts_ms": _now()})

    def envelope(
        self,
        table: str,
        op: str,
        before: Row | None,
        after: Row | None,
        transaction: str | None,
        snapshot: str = "false",
    ) -> dict[str, Any]:
        about = {"connector": "postgresql", "name": PREFIX, "db": "shop", "schema": "public", "table": table}
        whole = {"before": image(table, before), "after": image(table, after), "op": op, "ts_ms": _now()}
        part = None if transaction is None else {"id": transaction, "total_order": 1, "data_collection_order": 1}
        return {**whole, "source": {**about, "ts_us": _now() * 1000, "snapshot": snapshot}, "transaction": part}


def image(table: str, row: Row | None) -> dict[str, Any] | None:
    if row is None:
        return None
    values = dict(zip(TYPES[table], row, strict=True))
    if isinstance(values.get("balance"), Decimal):
        values["balance"] = base64_decimal(values["balance"])
    return values


def base64_decimal(value: Decimal, scale: int = 2) -> str:
    number = int(value.scaleb(scale))
    return base64.b64encode(number.to_bytes((number.bit_length() + 8) // 8, "big", signed=True)).decode()


def events(rows: dict[str, Bag], writes: tuple[Write, ...]) -> Iterator[tuple[str, str, Row | None, Row | None]]:
    """What Debezium tells of the writes: a key that changes is a delete and a create."""
    for write in writes:
        rows[write.table] += Counter([write.after] if write.after is not None else [])
        rows[write.table] -= Counter([write.before] if write.before is not None else [])
        if write.before is not None and write.after is not None and write.before[0] == write.after[0]:
            yield write.table, "u", write.before, write.after
            continue
        if write.before is not None:
            yield write.table, "d", write.before, None
        if write.after is not None:
            yield write.table, "c", None, write.after


def _now() -> int:
    return int(time.time() * 1000)


class DebeziumHarness:
    """A folder of JSON lines; a new file now and then."""

    kind = "debezium"
    capabilities = DebeziumSource.capabilities

    def __init__(self, folder: Path) -> None:
        self.root = folder / "events"
        self.root.mkdir()
        self.file = 1
        self._rows: dict[str, Bag] = {"account": Counter(ACCOUNTS), "note": Counter(NOTES)}
        self.connector = Connector(self.send)
        self.connector.snapshot(self._rows)

    def send(self, _topic: str, record: Any) -> None:
        with (self.root / f"events-{self.file:04d}.jsonl").open("a") as file:
            file.write(json.dumps(record) + "\n")

    def settings(self) -> SourceSettings:
        tables = (
            TableSettings("account", "public.account", TYPES["account"], ("id",)),
            TableSettings("note", "note", TYPES["note"]),
        )
        return SourceSettings("debezium", str(self.root), tables, {"before_images": "whole"})

    def write(self, *writes: Write) -> None:
        with self.connector.lock:
            self.connector.transaction(list(events(self._rows, writes)))
            self.file += len((self.root / f"events-{self.file:04d}.jsonl").read_text()) > 20_000

    def rows(self, table: str) -> Bag:
        return Counter(self._rows[table])

    def empty(self, table: str) -> None:
        self._rows[table] = Counter()
        self.connector.transaction([(table, "t", None, None)])

    def lose(self) -> None:
        """What was not read yet goes, and the connector copies its tables again."""
        for path in self.root.iterdir():
            path.unlink()
        self.file += 1
        self.connector.snapshot(self._rows)

    def leftovers(self) -> list[str]:
        return []

    def close(self) -> None: ...
