"""What PostgreSQL's pgoutput sends, changed a little: a named state, or no wrong row."""

from __future__ import annotations

import base64
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from rollview.core.schema import Schema
from rollview.errors import RollviewError
from rollview.sources import SourceSettings, TableSettings
from rollview.sources.postgres.stream import PostgresStream
from rollview.sources.protocol import Opening, SourceTable, UnitOfWork
from tests.property.foreign import bag, chances, changed, parts, schema_of, seed, shown


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
