"""What is special about Debezium's events: their forms, what makes them whole, and topics of Kafka."""

from __future__ import annotations

import base64
import json
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from rollview.sources import SourceSettings, TableSettings
from rollview.sources.debezium.records import Event, Heartbeat, TransactionEnd, UnknownRecordError, parse
from rollview.sources.debezium.values import decode
from rollview.warehouse import Warehouse
from tests.sources.debezium_harness import TYPES, Connector, DebeziumHarness, base64_decimal, events
from tests.sources.harness import ACCOUNTS, NOTES, Bag, Write, account, capture, stored

NEW = Write("account", None, account(10, "new", "1.00"))


@pytest.fixture
def bank(tmp_path: Path) -> DebeziumHarness:
    return DebeziumHarness(tmp_path)


@pytest.fixture
def warehouse(empty_warehouse: Warehouse, bank: DebeziumHarness) -> Warehouse:
    empty_warehouse.add_source("bank", bank.settings())
    return empty_warehouse


def stopped(warehouse: Warehouse) -> str:
    (done,) = warehouse.capture().sources
    assert done.problem is not None
    return done.problem


def test_a_transaction_waits_for_its_end_and_all_its_events(warehouse: Warehouse, bank: DebeziumHarness) -> None:
    held: list[Any] = []
    slow = Connector(lambda topic, record: held.append(record))
    slow.transaction(list(events(bank._rows, (NEW, Write("note", None, ("x",))))))
    for record in held[:-1]:
        bank.send("", record)
    assert capture(warehouse).units == 0
    bank.send("", held[-1])
    assert capture(warehouse).units == 1
    assert stored(warehouse, "note") == bank.rows("note")
    short = {**held[-1], "id": "900:1"}
    bank.send("", short)
    assert capture(warehouse).units == 0


def test_half_a_line_is_not_there_yet(warehouse: Warehouse, bank: DebeziumHarness) -> None:
    bank.write(NEW)
    (path,) = bank.root.iterdir()
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    assert capture(warehouse).units == 0
    path.write_bytes(whole)
    assert capture(warehouse).units == 1


def test_a_folder_for_each_topic(empty_warehouse: Warehouse, tmp_path: Path) -> None:
    rows: dict[str, Bag] = {"account": Counter(ACCOUNTS), "note": Counter(NOTES)}

    def send(topic: str, record: Any) -> None:
        folder = tmp_path / "topics" / topic
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "0.jsonl").open("a") as file:
            file.write(json.dumps(record) + "\n")

    connector = Connector(send)
    connector.snapshot(rows)
    tables = (
        TableSettings("account", "account", TYPES["account"], ("id",)),
        TableSettings("note", "note", TYPES["note"]),
    )
    empty_warehouse.add_source("bank", SourceSettings("debezium", str(tmp_path / "topics"), tables))
    for number in range(10, 14):
        connector.transaction(
            list(events(rows, (Write("account", None, account(number, "n", "2.00")), Write("note", ("same",), ("y",)))))
        )
        assert capture(empty_warehouse).units in (1, 2)
        rows["note"] += Counter({("same",): 1})
        connector.transaction([("note", "c", None, ("same",))])
    assert capture(empty_warehouse).units == 1
    for table, bag in rows.items():
        assert stored(empty_warehouse, table) == bag


def test_with_a_schema_and_in_a_value_it_says_the_same(bank: DebeziumHarness) -> None:
    bare = bank.connector.envelope("account", "c", None, ACCOUNTS[0], "7:8")
    columns = [
        {"field": "id", "type": "int32"},
        {
            "field": "balance",
            "type": "bytes",
            "name": "org.apache.kafka.connect.data.Decimal",
            "parameters": {"scale": "2"},
        },
    ]
    schema = {"type": "struct", "fields": [{"field": "after", "type": "struct", "fields": columns}]}
    found = [parse(json.dumps(form).encode()) for form in (bare, {"key": None, "value": bare})]
    told = parse(json.dumps({"schema": schema, "payload": bare}).encode())
    assert found[0] == found[1]
    assert isinstance(told, Event)
    assert isinstance(found[0], Event)
    assert (told.after, told.names, told.transaction) == (
        found[0].after,
        ("shop.public.account", "public.account", "account"),
        "7",
    )
    assert set(told.schemas) == {"id", "balance"}


def test_records_that_change_nothing_and_those_that_are_unknown() -> None:
    for nothing in (b"null", b"", b'{"schema": null, "payload": null}', b'{"key": 1, "value": null}'):
        assert parse(nothing) is None
    assert parse(b'{"status": "BEGIN", "id": "1:2"}') is None
    assert parse(b'{"op": "m", "message": {}}') is None
    assert parse(b'{"ts_ms": 1000}') == Heartbeat(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC))
    end = parse(
        b'{"status": "END", "id": "f=1,p=2", "data_collections": [{"data_collection": "d.t", "event_count": 1}]}'
    )
    assert end == TransactionEnd("f=1,p=2", {"d.t": 1})
    for unknown in (b"[1]", b"{", b'{"a": 1}', b'{"op": "x"}', b"7"):
        with pytest.raises(UnknownRecordError):
            parse(unknown)


DECIMAL = {"name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "3"}}


@pytest.mark.parametrize(
    ("value", "type_", "schema", "options", "expected"),
    [
        (base64_decimal(Decimal("-12.34")), "decimal(12,2)", None, {}, Decimal("-12.34")),
        (base64_decimal(Decimal("1.234"), 3), "decimal(12,3)", DECIMAL, {"decimals": "string"}, Decimal("1.234")),
        ("12.30", "decimal(12,2)", None, {"decimals": "string"}, Decimal("12.30")),
        ("12.30", "decimal(12,2)", {"type": "string"}, {}, Decimal("12.30")),
        ({"scale": 1, "value": base64_decimal(Decimal("9.5"), 1)}, "decimal(12,2)", None, {}, Decimal("9.5")),
        (1_000_000, "timestamp_ntz", None, {}, datetime(1970, 1, 1, 0, 0, 1)),
        (1_000, "timestamp_ntz", {"name": "io.debezium.time.Timestamp"}, {}, datetime(1970, 1, 1, 0, 0, 1)),
        (1_000_000_000, "timestamp_ntz", None, {"times": "nanoseconds"}, datetime(1970, 1, 1, 0, 0, 1)),
        ("2026-10-25T00:30:00.5Z", "timestamp", None, {}, datetime(2026, 10, 25, 0, 30, 0, 500000, tzinfo=UTC)),
        (-1, "date", None, {}, date(1969, 12, 31)),
        (Decimal("0.1"), "double", None, {}, 0.1),
        (True, "boolean", None, {}, True),
        (base64.b64encode(b"\0\xff").decode(), "binary", None, {}, b"\0\xff"),
        (2**63 - 1, "bigint", None, {}, 2**63 - 1),
    ],
)
def test_values(value: Any, type_: str, schema: Any, options: dict[str, str], expected: Any) -> None:
    assert decode(value, type_, schema, options) == expected


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        ("x", "int"),
        (True, "bigint"),
        (1.5, "string"),
        ("%%", "decimal(5,2)"),
        (1, "boolean"),
        ("2026-01-01T00:00", "timestamp"),
        (None, None),
    ],
)
def test_a_value_of_another_kind_is_refused(value: Any, type_: str | None) -> None:
    if type_ is None:
        assert decode(None, "int", None, {}) is None
        return
    with pytest.raises(ValueError):  # noqa: PT011
        decode(value, type_, None, {})


def test_an_old_row_that_is_not_whole_stops_the_source(warehouse: Warehouse, bank: DebeziumHarness) -> None:
    bank.connector.transaction([("account", "u", None, account(1, "ann", "11.00"))])
    assert "REPLICA IDENTITY FULL" in stopped(warehouse)
    assert warehouse.sources()[0].state == "lost_position"
    assert stored(warehouse, "account") == Counter(ACCOUNTS)


def test_an_old_row_with_nothing_but_its_key_is_not_believed(empty_warehouse: Warehouse, bank: DebeziumHarness) -> None:
    given = bank.settings()
    empty_warehouse.add_source("bank", SourceSettings(given.kind, given.address, given.tables))
    bank.connector.transaction([("account", "d", account(1, None, None), None)])
    assert "before_images: whole" in stopped(empty_warehouse)


def test_an_unchanged_large_value_is_taken_from_the_old_row(warehouse: Warehouse, bank: DebeziumHarness) -> None:
    after = account(1, "__debezium_unavailable_value", "99.00")
    bank.connector.transaction([("account", "u", ACCOUNTS[0], after)])
    capture(warehouse)
    assert account(1, "ann", "99.00") in stored(warehouse, "account")


def test_events_without_a_transaction_are_refused(warehouse: Warehouse, bank: DebeziumHarness) -> None:
    bank.send("", bank.connector.envelope("account", "c", None, account(10, "x", "1.00"), None))
    assert "provide.transaction.metadata" in stopped(warehouse)


def test_a_snapshot_that_is_not_finished_is_waited_for(empty_warehouse: Warehouse, bank: DebeziumHarness) -> None:
    (path,) = bank.root.iterdir()
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-1]))
    with pytest.raises(Exception, match="not finished its own snapshot"):
        empty_warehouse.add_source("bank", bank.settings())
    path.write_text("".join(lines))
    capture(empty_warehouse)
    assert stored(empty_warehouse, "note") == bank.rows("note")


def test_a_heartbeat_moves_the_known_time_on(warehouse: Warehouse, bank: DebeziumHarness) -> None:
    bank.send("", {"ts_ms": 4_000_000_000_000})
    capture(warehouse)
    assert warehouse.sources()[0].known == datetime(2096, 10, 2, 7, 6, 40, tzinfo=UTC)


def test_wrong_settings_are_told(empty_warehouse: Warehouse, bank: DebeziumHarness) -> None:
    tables = (TableSettings("t", "t", {"c": "array<int>"}), TableSettings("u", "u"))
    checked = empty_warehouse.check_source("s", SourceSettings("debezium", str(bank.root / "no"), tables, {"x": "y"}))
    said = " ".join(finding.what for finding in checked.findings)
    assert all(part in said for part in ("array<int>", "'u' are not declared", "option 'x'", "no folder"))


class Topics:
    """Topics of librdkafka's own mock broker."""

    def __init__(self) -> None:
        from confluent_kafka import Producer

        self.producer = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": ""}, logger=_Silent())
        (broker,) = self.producer.list_topics(timeout=10).brokers.values()
        self.address = f"kafka://{broker.host}:{broker.port}/bank"

    def send(self, topic: str, record: Any) -> None:
        name = "bank.transaction" if topic == "transaction" else f"bank.public.{topic}"
        self.producer.produce(name, None if record is None else json.dumps(record).encode(), partition=0)
        self.producer.flush()


class _Silent:
    def log(self, *_: Any) -> None: ...


@pytest.fixture
def topics() -> Topics:
    pytest.importorskip("confluent_kafka")
    return Topics()


def test_topics_of_kafka(empty_warehouse: Warehouse, topics: Topics) -> None:
    rows: dict[str, Bag] = {"account": Counter(ACCOUNTS), "note": Counter(NOTES)}
    connector = Connector(topics.send)
    connector.snapshot(rows)
    connector.transaction(list(events(rows, (NEW,))))
    tables = (
        TableSettings("account", "public.account", TYPES["account"], ("id",)),
        TableSettings("note", "public.note", TYPES["note"]),
    )
    empty_warehouse.add_source("bank", SourceSettings("debezium", topics.address, tables))
    assert stored(empty_warehouse, "account") == rows["account"]
    for number in range(20, 25):
        connector.transaction(
            list(
                events(
                    rows, (Write("account", None, account(number, "k", "3.00")), Write("note", None, (str(number),)))
                )
            )
        )
        connector.transaction(list(events(rows, (Write("account", account(number, "k", "3.00")),))))
        assert capture(empty_warehouse).units == 2
    assert capture(empty_warehouse).units == 0
    for table, bag in rows.items():
        assert stored(empty_warehouse, table) == bag
