"""Bytes that sources send, changed: a source ends in a named state or goes on, and no wrong row is taken unseen.

Every parser that reads what others wrote is fed with real messages that were changed a little, 100,000 in all. Where a
plain reading of the same bytes exists, what is taken must be what that says.
"""

from __future__ import annotations

import base64
import csv
import io
import json
import random
import shutil
import struct
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pymysql.protocol import MysqlPacket

from rollview.core.schema import Column, Schema
from rollview.errors import RollviewError, UsageError
from rollview.project import FILE, load_project
from rollview.sources import SourceSettings, TableSettings
from rollview.sources.binlog.server import ChecksumError, check_packet
from rollview.sources.boundary import named
from rollview.sources.debezium.source import DebeziumSource
from rollview.sources.debezium.streams import Found
from rollview.sources.delta.source import DeltaSource
from rollview.sources.files.formats import UnreadableError, read_file
from rollview.sources.mariadb.source import MariadbSource
from rollview.sources.postgres.stream import PostgresStream
from rollview.sources.protocol import Opening, SourceTable, UnitOfWork
from rollview.sources.values import UnfitError, as_rows
from tests.property.foreign import changed

SEEDS = Path(__file__).parent / "seeds"
INPUTS = {
    "pgoutput": 12_000,
    "debezium": 40_000,
    "json": 22_000,
    "csv": 15_000,
    "binlog": 7_000,
    "delta": 1_000,
    "yaml": 3_000,
}
PARTS = 8
TABLE_MAP = 19


def parts(kind: str) -> Any:
    return pytest.mark.parametrize("part", range(PARTS), ids=lambda part: f"{kind}-{part}")


def chances(kind: str, part: int) -> Iterator[random.Random]:
    for number in range(part, INPUTS[kind], PARTS):
        yield random.Random(f"{kind} {number}")


def test_there_are_a_hundred_thousand() -> None:
    assert sum(INPUTS.values()) == 100_000


@cache
def seed(name: str) -> Any:
    return json.loads((SEEDS / f"{name}.json").read_text())


def schema_of(told: Any) -> Schema:
    return Schema.from_json(told)


def shown(value: Any) -> str:
    return repr(value.astimezone(None) if isinstance(value, datetime) and value.tzinfo else value)


def bag(rows: Any) -> Counter[tuple[str, ...]]:
    return Counter(tuple(shown(value) for value in row) for row in as_rows(rows))


# pgoutput


class PlainStop(Exception):
    """Where a plain reader of the protocol goes no further."""


_VALUES: Mapping[str, Any] = {
    "boolean": lambda text: {"t": True, "f": False}[text],
    **dict.fromkeys(("smallint", "int", "bigint"), int),
    **dict.fromkeys(("float", "double"), float),
    "date": date.fromisoformat,
    **dict.fromkeys(("timestamp", "timestamp_ntz"), datetime.fromisoformat),
    "string": str,
    "binary": lambda text: bytes.fromhex(text[2:]),
}


class Plain:
    """pgoutput as its documentation tells it, a byte at a time."""

    def __init__(self, schemas: Mapping[str, Schema], types: Mapping[str, Mapping[str, int]]) -> None:
        self.schemas = schemas
        self.types = types
        self.tables: dict[int, tuple[str | None, list[str]]] = {}
        self.units: list[tuple[int, dict[str, tuple[Counter[Any], Counter[Any]]]]] = []

    def read(self, messages: Sequence[bytes]) -> None:
        begin: int | None = None
        changes: dict[str, tuple[Counter[Any], Counter[Any]]] = {}
        for data in messages:
            take = Taker(data)
            kind = take.bytes(1)
            if kind == b"B":
                if begin is not None:
                    raise PlainStop
                begin, changes = take.number(8), {}
                take.bytes(12)
            elif kind == b"C":
                take.bytes(1)
                lsn, end = take.number(8), take.number(8)
                take.bytes(8)
                if begin is None or lsn != begin or end <= lsn:
                    raise PlainStop
                take.end()
                self.units.append((end, changes))
                begin = None
            elif kind == b"R":
                self.relation(take)
            elif kind in (b"I", b"U", b"D"):
                if begin is None:
                    raise PlainStop
                self.row(kind, take, changes)
            elif kind == b"T":
                count = take.number(4)
                take.bytes(1)
                if begin is None:
                    raise PlainStop
                for _ in range(count):
                    name, _names = self.known(take.number(4))
                    if name is not None:
                        changes[name] = (Counter(), Counter())
            elif kind not in (b"Y", b"O", b"M"):
                raise PlainStop
            else:
                continue
            take.end()

    def relation(self, take: Taker) -> None:
        oid, schema, name = take.number(4), take.text(), take.text()
        take.bytes(1)
        names = []
        for _ in range(take.number(2)):
            take.bytes(1)
            names.append(take.text())
            take.bytes(8)
        # A table that has another name now is still the same table.
        before = self.tables.get(oid, (None, []))[0]
        remote = {("public", "t"): "public.t", ("public", "note"): "note"}.get((schema, name), before)
        self.tables[oid] = (remote, names)

    def known(self, oid: int) -> tuple[str | None, list[str]]:
        if oid not in self.tables:
            raise PlainStop
        return self.tables[oid]

    def row(self, kind: bytes, take: Taker, changes: dict[str, tuple[Counter[Any], Counter[Any]]]) -> None:
        name, names = self.known(take.number(4))
        old: list[Any] | None = None
        mark = take.bytes(1)
        if kind != b"I" and mark in b"KO":
            old = take.row()
            mark = take.bytes(1) if kind == b"U" else b""
        new = take.row() if kind != b"D" and mark == b"N" else None
        if (kind != b"D") != (new is not None) or (kind == b"D" and old is None):
            raise PlainStop
        if name is None:
            return
        gone, come = changes.setdefault(name, (Counter(), Counter()))
        for image, where in ((old, gone), (new, come)):
            if image is not None:
                if len(image) != len(names):
                    raise PlainStop
                where[self.values(name, names, image, old)] += 1

    def values(self, name: str, names: list[str], image: list[Any], old: list[Any] | None) -> tuple[str, ...]:
        found = []
        for column in self.schemas[name]:
            place = names.index(column.name)
            text = image[place]
            if text is Taker.UNCHANGED and old is not None:
                text = old[place]
            if text is Taker.UNCHANGED:
                raise PlainStop
            convert = Decimal if column.type.startswith("decimal") else _VALUES[column.type]
            value = None if text is None else convert(text)
            if column.type == "float" and value is not None:
                value = pa.array([value], pa.float32())[0].as_py()
            if isinstance(value, Decimal):
                value = value.quantize(Decimal("0.01"))
            found.append(shown(value))
        return tuple(found)


class Taker:
    UNCHANGED = object()

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def bytes(self, count: int) -> bytes:
        if count < 0 or self.at + count > len(self.data):
            raise PlainStop
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, size: int) -> int:
        number = int.from_bytes(self.bytes(size), "big")
        if size == 2 and number >= 1 << 15:
            raise PlainStop
        return number

    def text(self) -> str:
        end = self.data.find(b"\0", self.at)
        if end < 0:
            raise PlainStop
        text = self.bytes(end - self.at).decode()
        self.at += 1
        return text

    def row(self) -> list[Any]:
        return [self.value() for _ in range(self.number(2))]

    def value(self) -> Any:
        kind = self.bytes(1)
        if kind == b"t":
            return self.bytes(self.number(4)).decode()
        if kind == b"n":
            return None
        if kind == b"u":
            return Taker.UNCHANGED
        raise PlainStop

    def end(self) -> None:
        if self.at != len(self.data):
            raise PlainStop


def pgoutput() -> tuple[Opening, list[bytes]]:
    told = seed("pgoutput")
    schemas = {remote: schema_of(columns) for remote, columns in told["schemas"].items()}
    known = {remote: SourceTable(remote, schema) for remote, schema in schemas.items()}
    settings = SourceSettings("postgres", "x", tuple(TableSettings(r.rpartition(".")[2], r) for r in schemas))
    opening = Opening("s", settings, "x", {"tag": "t", "tables": told["tables"]}, known)
    return opening, [base64.b64decode(message) for message in told["messages"]]


def taken(opening: Opening, messages: Sequence[bytes]) -> list[UnitOfWork]:
    units: list[UnitOfWork] = []
    with suppress(RollviewError):
        for some in PostgresStream(opening).units(messages, 0):
            units += some
    return units


def few(chance: random.Random, messages: list[bytes]) -> list[bytes]:
    """What is announced, and one or two transactions."""
    begins = [place for place, data in enumerate(messages) if data[:1] == b"B"]
    ends = [place for place, data in enumerate(messages) if data[:1] == b"C"]
    chosen = sorted(chance.sample(range(len(begins)), chance.randint(1, 2)))
    picked = [data for data in messages if data[:1] == b"R"]
    for number in chosen:
        picked += [data for data in messages[begins[number] : ends[number] + 1] if data[:1] != b"R"]
    return picked


def disturbed(chance: random.Random, messages: list[bytes]) -> list[bytes]:
    place = chance.randrange(len(messages))
    match chance.randrange(12):
        case 0:
            del messages[place]
        case 1:
            messages.insert(place, chance.choice(messages))
        case 2:
            other = chance.randrange(len(messages))
            messages[place], messages[other] = messages[other], messages[place]
        case _:
            messages[place] = changed(chance, messages[place])
    return messages


def agrees(opening: Opening, messages: Sequence[bytes], units: Sequence[UnitOfWork]) -> bool:
    """Whether what was taken is what the messages say, as far as it was taken."""
    plain = Plain({remote: table.schema for remote, table in opening.known.items()}, {})
    with suppress(PlainStop, ValueError, KeyError, ArithmeticError, IndexError):
        plain.read(messages)
    if len(units) > len(plain.units):
        return False
    for unit, (end, changes) in zip(units, plain.units, strict=False):
        high, low = (int(half, 16) for half in unit.position.split("/"))
        said = {name: both for name, both in changes.items() if unit.changes.get(name) or any(both)}
        if high << 32 | low != end or set(unit.changes) != set(said) | (set(unit.changes) & set(changes)):
            return False
        for name, change in unit.changes.items():
            if (bag(change.before), bag(change.after)) != changes[name]:
                return False
    return True


def test_the_plain_reader_of_pgoutput_agrees_on_what_a_server_sent() -> None:
    opening, messages = pgoutput()
    units = taken(opening, messages)
    assert len(units) == 6
    assert agrees(opening, messages, units)


@parts("pgoutput")
def test_pgoutput(part: int) -> None:
    opening, messages = pgoutput()
    for chance in chances("pgoutput", part):
        sent = disturbed(chance, few(chance, messages))
        assert agrees(opening, sent, taken(opening, sent)), sent


# Debezium


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


# Files

FILE_TYPES = {
    "id": "int",
    "v": "decimal(12,2)",
    "w": "string",
    "b": "boolean",
    "d": "date",
    "m": "timestamp_ntz",
    "x": "double",
}
FILE_SCHEMA = Schema(tuple(Column(name, type_) for name, type_ in FILE_TYPES.items()))
JSON_LINES = (
    b'{"id": 1, "v": 12.50, "w": "zo\\u00eb", "b": true, "d": "2026-01-31", "m": "2026-03-29T02:30:00.01", "x": 0.1}\n'
    b'{"id": 2, "v": "-0.01", "w": null, "b": false, "d": null, "m": null, "x": 1e300}\n{"id": 3}\n'
)
CSV = (
    "id,v,w,b,d,m,x\n1,12.50,zoë,true,2026-01-31,2026-03-29T02:30:00.000001,0.1\n"
    '2,-0.01,"a ""b"",\nc",false,,,1e300\n3,,"",,,,\n'
).encode()


def read_changed(format_: str, data: bytes) -> list[tuple[Any, ...]] | None:
    try:
        return list(as_rows(read_file(io.BytesIO(data), format_, FILE_SCHEMA)))
    except (UnreadableError, UnfitError):
        return None


def plain_numbers(column: str, values: Sequence[Any]) -> list[Any]:
    kinds = {"id": int, "v": lambda text: Decimal(text).quantize(Decimal("0.01")), "x": float}
    return [None if value is None else kinds[column](value) for value in values]


def alike(found: Sequence[Any], said: Sequence[Any]) -> bool:
    """NaN is itself here."""
    return all(one == other or repr(one) == repr(other) for one, other in zip(found, said, strict=True))


@parts("json")
def test_json_lines(part: int) -> None:
    for chance in chances("json", part):
        data = changed(chance, JSON_LINES)
        rows = read_changed("json", data)
        if rows is None:
            continue
        plain = [json.loads(line, parse_float=Decimal) for line in data.decode().split("\n") if line]
        assert len(rows) == len(plain), data
        for place, name in ((0, "id"), (1, "v"), (6, "x")):
            said = plain_numbers(name, [one.get(name) for one in plain])
            assert alike([row[place] for row in rows], said), data
        assert [row[2] for row in rows] == [one.get("w") for one in plain], data


@parts("csv")
def test_csv(part: int) -> None:
    for chance in chances("csv", part):
        data = changed(chance, CSV)
        rows = read_changed("csv", data)
        if rows is None or b"\r" in data or b"\0" in data:
            continue
        header, *lines = [line for line in csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")) if line]
        assert len(rows) == len(lines), data
        for place, name in ((0, "id"), (1, "v"), (6, "x")):
            texts = [line[header.index(name)] or None for line in lines]
            assert alike([row[place] for row in rows], plain_numbers(name, texts)), data
        assert [row[2] or "" for row in rows] == [line[header.index("w")] for line in lines], data


# The binary log


class Server:
    """Stands where the driver's connection is, and gives recorded packets."""

    packets: Sequence[bytes] = ()
    charset = "utf8"

    def __init__(self, **_settings: Any) -> None:
        self._left = iter(self.packets)
        self._next_seq_id = 0

    def get_server_info(self) -> str:
        return "11.4.0-MariaDB"

    def cursor(self) -> Server:
        return self

    def execute(self, *_query: Any) -> None: ...

    def fetchone(self) -> Any:
        return _Row(("binlog_checksum", "CRC32"))

    def _write_bytes(self, _data: bytes) -> None: ...

    def _read_packet(self) -> Any:
        packet = MysqlPacket(next(self._left, b"\xfe\x00\x00\x02\x00"), "utf8")
        packet.check_error()
        check_packet(packet, has_checksum=True)
        return packet

    def close(self) -> None: ...


class _Row(tuple[str, ...]):
    """A row by place or by name."""

    def get(self, _name: str, _default: str = "") -> str:
        return "FULL"


def binlog() -> tuple[MariadbSource, list[bytes], str, str]:
    told = seed("binlog")
    schemas = {remote: schema_of(columns) for remote, columns in told["schemas"].items()}
    known = {remote: SourceTable(remote, schema) for remote, schema in schemas.items()}
    settings = SourceSettings("mariadb", "mariadb://u@127.0.0.1/s", tuple(TableSettings(r, r) for r in schemas))
    opening = Opening("s", settings, settings.address, {"tag": "t", "columns": told["columns"]}, known)
    return MariadbSource(opening), [base64.b64decode(p) for p in told["packets"]], told["start"], told["end"]


def logged(source: MariadbSource, start: str, end: str, packets: Sequence[bytes]) -> list[Any]:
    """The units of work as the driver and we read them, up to what stops that."""
    Server.packets = packets
    try:
        with named("s", start):
            batch = source._batch(start, end, 10**9)
    except RollviewError:
        return []
    return [
        (unit.position, {name: (bag(c.before), bag(c.after), c.replaces) for name, c in unit.changes.items()})
        for unit in batch.units
    ]


@pytest.fixture
def recorded_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rollview.sources.binlog.source.StreamConnection", Server)


@pytest.mark.usefixtures("recorded_log")
def test_the_recorded_log_is_read() -> None:
    source, packets, start, end = binlog()
    assert len(logged(source, start, end, packets)) == 6


@parts("binlog")
@pytest.mark.usefixtures("recorded_log")
def test_binary_log(part: int) -> None:
    source, packets, start, end = binlog()
    whole = logged(source, start, end, packets)
    for chance in chances("binlog", part):
        sent = list(packets)
        place = chance.randrange(len(sent))
        # What a table map says of its metadata the driver believes, however long that takes.
        mends = chance.random() < 0.5 and sent[place][5] != TABLE_MAP
        body = changed(chance, sent[place][:-4])
        sent[place] = body + (struct.pack("<I", zlib.crc32(body[1:])) if mends else sent[place][-4:])
        units = logged(source, start, end, sent)
        # Who computes the checksum anew may say what he likes; without that, nothing else is ever taken.
        assert mends or sent[place] == packets[place] or units == whole[: len(units)], sent[place]


def test_an_event_of_another_checksum_is_none() -> None:
    _, packets, _, _ = binlog()
    for packet in packets:
        check_packet(MysqlPacket(packet, "utf8"), has_checksum=True)
        with pytest.raises(ChecksumError):
            check_packet(MysqlPacket(packet[:-1] + bytes([packet[-1] ^ 1]), "utf8"), has_checksum=True)
        with pytest.raises(ChecksumError):
            check_packet(MysqlPacket(b"\x01" + packet[1:], "utf8"), has_checksum=False)


def test_a_table_of_more_columns_than_bytes_is_none() -> None:
    packet = next(packet for packet in binlog()[1] if packet[5] == TABLE_MAP)
    columns = bytes([len(seed("binlog")["columns"]["t"])])
    many = packet.replace(b"\x01t\x00" + columns, b"\x01t\x00\xfe" + b"\xff" * 8)
    assert many != packet
    with pytest.raises(ChecksumError, match="more columns"):
        check_packet(MysqlPacket(many, "utf8"), has_checksum=False)


# Delta logs


@parts("delta")
def test_delta_log(part: int, tmp_path: Path) -> None:
    lake, fresh = tmp_path / "lake", tmp_path / "fresh"
    write_deltalake(fresh / "t", pa.table({"id": pa.array([1, 2], pa.int32()), "w": ["a", "b"]}))
    write_deltalake(fresh / "t", pa.table({"id": pa.array([3], pa.int32()), "w": ["c"]}), mode="append")
    table = SourceTable("t", Schema((Column("id", "int"), Column("w", "string"))))
    settings = SourceSettings("delta", str(lake), (TableSettings("t", "t"),))
    shutil.copytree(fresh, lake)
    log = lake / "t" / "_delta_log" / f"{1:020d}.json"
    good = log.read_bytes()
    with DeltaIds(settings, lake, table) as ids:
        for chance in chances("delta", part):
            data = changed(chance, good)
            log.write_bytes(data)
            units: Sequence[UnitOfWork] = ()
            with suppress(RollviewError), named("s"):
                source = DeltaSource(Opening("s", settings, str(lake), {"tag": "t", "ids": ids}, {"t": table}))
                units = source.read("0", 100).units
            for unit in units:
                for change in unit.changes.values():
                    assert set(as_rows(change.after)) <= {(3, "c")}, data
                    assert set(as_rows(change.before)) <= {(1, "a"), (2, "b")}, data


class DeltaIds:
    """What a source remembers of its tables."""

    def __init__(self, settings: SourceSettings, lake: Path, table: SourceTable) -> None:
        source = DeltaSource(Opening("s", settings, str(lake), {"tag": "t"}, {"t": table}))
        with source.first_copy() as copy:
            self.ids = copy.memory["ids"]

    def __enter__(self) -> Mapping[str, str]:
        return self.ids

    def __exit__(self, *_: object) -> None: ...


# Settings

YAML = b"""version: 1
warehouse: .rollview
catalog: env:CATALOG
retention: {default: 30 days, orders: 90 days}
schedule: {default: every 10 seconds, bank: continuous}
sources:
  bank:
    kind: postgres
    address: env:BANK
    tables: [public.account, {table: note, columns: [text], types: {text: string}}]
    options: {log_alarm: 5 GB, timeout: 30 seconds}
spark: {spark.driver.memory: 8g, spark.ui.enabled: false}
"""


@parts("yaml")
def test_settings(part: int, tmp_path: Path) -> None:
    for chance in chances("yaml", part):
        (tmp_path / FILE).write_bytes(changed(chance, YAML))
        with suppress(RollviewError):
            project = load_project(tmp_path)
            for name in project.config.sources or ():
                project.source(name)


@pytest.mark.parametrize("text", ["a: 2001-99-99", "[" * 5_000, "a: " + "7" * 5_000, "!!int x"])
def test_settings_that_python_cannot_hold_are_told(text: str, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(UsageError):
        load_project(tmp_path)
