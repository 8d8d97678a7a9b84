"""Rows that are read column by column are those that are read one by one, on random rows of every type."""

from __future__ import annotations

import random
import struct
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from rollview.core.schema import Column, Constraints, Schema
from rollview.errors import RollviewError
from rollview.sources import SourceSettings, TableSettings
from rollview.sources.postgres import stream
from rollview.sources.postgres.stream import PostgresStream
from rollview.sources.protocol import Opening, SourceTable, UnitOfWork
from rollview.sources.quarantine import Sieve
from rollview.sources.sections import NotPlainError
from rollview.sources.sqlite.columns import read_columns
from rollview.sources.sqlite.source import _decoded
from rollview.sources.values import as_table
from rollview.types.arrow import arrow_type

_NUMERIC_MODIFIER = (12 << 16 | 2) + 4
PLAIN: dict[tuple[str, int], list[str]] = {
    ("boolean", 16): ["t", "f"],
    ("binary", 17): ["\\x", "\\x00ff"],
    ("bigint", 20): ["0", "-9223372036854775808", "9223372036854775807"],
    ("smallint", 21): ["-32768", "7"],
    ("int", 23): ["2147483647", "-1"],
    ("string", 25): ["", "zoë 表 🦆", "a\tb\n\\N", "x" * 300],
    ("float", 700): ["1.5", "0.1", "3.4028235e+38", "NaN", "-Infinity", "-0"],
    ("double", 701): ["0.1", "1e-300", "5e-324", "NaN", "Infinity", "-0"],
    ("date", 1082): ["0001-01-01", "9999-12-31", "2024-02-29"],
    ("timestamp_ntz", 1114): ["0001-01-01 00:00:00", "2026-03-29 02:30:00.123456", "9999-12-31 23:59:59.9"],
    ("timestamp", 1184): ["1500-01-01 00:00:00+00", "2026-10-25 00:30:00.5+00"],
    ("decimal(12,2)", 1700): ["-1234567890.10", "0.00", "9999999999.99"],
    ("decimal(10,2)", 99999): ["1.25", "-0.01"],
    ("int", 25): ["12", "-3"],
}
POISON: dict[tuple[str, int], list[str]] = {
    ("smallint", 21): ["99999"],
    ("date", 1082): ["infinity", "10000-01-01", "0001-01-01 BC"],
    ("timestamp_ntz", 1114): ["-infinity", "294276-01-01 00:00:00", "0044-03-15 00:00:00 BC"],
    ("timestamp", 1184): ["infinity", "2026-10-25 00:30:00+02"],
    ("decimal(12,2)", 1700): ["NaN", "1.234", "99999999999.00"],
    ("int", 25): ["0x10", "x", " 5", "1_0"],
}
COLUMNS = tuple(PLAIN)
WIDTH = len(COLUMNS)
Image = Sequence[bytes]


def opening(*, quarantines: bool) -> Opening:
    schema = Schema(tuple(Column(f"c{place}", type_) for place, (type_, _) in enumerate(COLUMNS)))
    options = {"on_bad_value": "quarantine"} if quarantines else {}
    settings = SourceSettings("postgres", "postgresql://x", tuple(TableSettings(t, t) for t in "tu"), options)
    names = [(f"c{place}", oid) for place, (_, oid) in enumerate(COLUMNS)]
    names.insert(3, ("other", 25))
    recorded = {name: [oid, _modifier(oid), number, "1"] for number, (name, oid) in enumerate(names, 1)}
    tables = {name: SourceTable(name, schema, Constraints(())) for name in "tu"}
    return Opening("s", settings, "", {"tables": {name: {"columns": recorded} for name in "tu"}}, tables)


def _modifier(oid: int) -> int:
    return _NUMERIC_MODIFIER if oid == 1700 else -1


def relation(oid: int, name: str) -> bytes:
    columns = [
        b"\0" + f"c{place}\0".encode() + struct.pack(">Ii", o, _modifier(o)) for place, (_, o) in enumerate(COLUMNS)
    ]
    columns.insert(3, b"\0other\0" + struct.pack(">Ii", 25, -1))
    return b"R" + struct.pack(">I", oid) + b"public\0" + f"{name}\0".encode() + b"f" + _counted(columns)


def _counted(parts: Sequence[bytes]) -> bytes:
    return struct.pack(">h", len(parts)) + b"".join(parts)


TABLES = ((7, "t"), (8, "u"), (9, "of others"))


class Log:
    """A random log of two tables; ``poison``: how often a value has no representation."""

    def __init__(self, seed: int, poison: float) -> None:
        self._chance = random.Random(seed)
        self._poison = poison
        self._suffix: str | None = None

    def messages(self, transactions: int) -> list[bytes]:
        found: list[bytes] = []
        for number in range(1, transactions + 1):
            if number == 1 or self._chance.random() < 0.1:
                # A table that has another name is still the same.
                self._suffix = "" if self._suffix is None else self._chance.choice(["", "_now"])
                found += [relation(oid, name + self._suffix) for oid, name in TABLES]
            found.append(b"B" + struct.pack(">QqI", number * 100, number, number))
            found += [self._message() for _ in range(self._chance.randrange(6))]
            found.append(b"C" + struct.pack(">BQQq", 0, number * 100, number * 100 + 50, number))
        return found

    def _message(self) -> bytes:
        oid = struct.pack(">I", self._chance.choice((7, 8, 9)))
        old, new = self._image(), self._image()
        match self._chance.choice("IIUUDDT"):
            case "I":
                return b"I" + oid + b"N" + self._tuple(new)
            case "D":
                return b"D" + oid + b"O" + self._tuple(old)
            case "T" if self._chance.random() < 0.2:
                return b"T" + struct.pack(">ib", 1, 0) + oid
        kept = [b"u" if self._chance.random() < 0.2 else value for value in new]
        return b"U" + oid + b"O" + self._tuple(old) + b"N" + self._tuple(kept)

    def _image(self) -> Image:
        image = [self._value(column) for column in COLUMNS]
        image.insert(3, self._value(("string", 25)))
        return image

    def _tuple(self, image: Image) -> bytes:
        return _counted(image)

    def _value(self, column: tuple[str, int]) -> bytes:
        if self._chance.random() < 0.2:
            return b"n"
        is_poison = column in POISON and self._chance.random() < self._poison
        data = self._chance.choice((POISON if is_poison else PLAIN)[column]).encode()
        return b"t" + struct.pack(">i", len(data)) + data


def outcome(known: Opening, messages: Sequence[bytes], after: int) -> tuple[list[Any], str]:
    """What units of work did, and what stopped them."""
    units: list[UnitOfWork] = []
    try:
        for some in PostgresStream(known).units(messages, after):
            units += some
    except RollviewError as error:
        return [_told(known, unit) for unit in units], str(error)
    return [_told(known, unit) for unit in units], ""


def _told(known: Opening, unit: UnitOfWork) -> Any:
    changes = {
        remote: (_bag(known, change.before), _bag(known, change.after), change.replaces)
        for remote, change in unit.changes.items()
        if len(change.before) or len(change.after) or change.replaces
    }
    bad = sorted(map(repr, unit.quarantined))
    return unit.position, unit.transaction, unit.time, changes, bad


def _bag(known: Opening, rows: Any) -> Counter[str]:
    """Values as the table holds them; those that only Arrow refuses are there as they came."""
    types = [arrow_type(column.type, column.name) for column in known.known["t"].schema]
    return Counter(repr([_held(value, type_) for value, type_ in zip(row, types, strict=True)]) for row in rows)


def _held(value: Any, type_: pa.DataType) -> Any:
    try:
        return pa.scalar(value, type_).as_py()
    except (pa.ArrowException, ValueError, TypeError):
        return value


@pytest.mark.parametrize("poison", [0.0, 0.001])
@pytest.mark.parametrize("quarantines", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_a_log_reads_the_same_by_columns_and_by_rows(
    seed: int, quarantines: bool, poison: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, messages = opening(quarantines=quarantines), Log(seed, poison).messages(60)
    after = random.Random(seed).choice((0, 150, 1050))
    monkeypatch.setattr(stream, "_AT_ONCE", random.Random(seed).choice((500, 20_000, 8 << 20)))
    by_columns = outcome(known, messages, after)

    def refuse(*_: object) -> Any:
        raise NotPlainError

    monkeypatch.setattr(stream, "read_shares", refuse)
    assert outcome(known, messages, after) == by_columns
    assert poison or by_columns[1] == ""


def test_plain_values_are_read_by_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise nothing would be compared above."""

    def refuse(*_: object) -> Any:
        raise AssertionError("read one by one")

    monkeypatch.setattr(PostgresStream, "_collect_rows", refuse)
    units, stopped = outcome(opening(quarantines=False), Log(3, 0.0).messages(60), 0)
    assert (len(units), stopped) == (60, "")


SQLITE: dict[str, tuple[list[Any], list[Any]]] = {
    "boolean": ([0, 1], [2, "t", 1.0]),
    "tinyint": ([-128, 127], [128]),
    "bigint": ([0, 2**63 - 1], ["1", 1.0]),
    "double": ([0.1, 5, -0.0, float("inf"), 2**53], [2**53 + 1, "x"]),
    "decimal(12,2)": ([1.25, -0.1, 0.3, 7, -0.0, 1e-2, 123456789.01], [1.234, 2**60, "1", float("inf"), 0.1 + 0.2]),
    "decimal(38,0)": ([1.0, 10**14, 10**30, 2**53 + 1, 1e22], [1.5]),
    "decimal(38,25)": ([0.1, 3], [b"1"]),
    "string": (["", "表 🦆", "a\0b"], [1, b"x", "\udcff"]),
    "binary": ([b"", b"\0\xff"], ["x"]),
    "date": (["0001-01-01", "9999-12-31"], ["0000-01-01", "20260131", "2026-02-30"]),
    "timestamp_ntz": (
        ["2026-01-31", "2026-01-31T12:00", "2026-01-31 12:00:00", "2026-01-31 12:00:00.123", "2026-01-31 12:00:00.5"],
        ["2026-01-31 12:00:00Z", "0000-01-01 00:00:00", "2026-01-31 24:00:01", "2026-01-31 12:00:00.1234567"],
    ),
}


@pytest.mark.parametrize("type_", SQLITE)
def test_values_of_sqlite_read_the_same_by_columns_and_by_rows(type_: str) -> None:
    chance = random.Random(type_)
    plain, poison = SQLITE[type_]
    table = SourceTable("t", Schema((Column("v", type_),)), Constraints(()))
    settings = SourceSettings("sqlite", "x.db", (TableSettings("t", "t"),), {"on_bad_value": "quarantine"})
    if type_.startswith("decimal"):
        plain = [*plain, *(float(Decimal(chance.randrange(10**9)).scaleb(-2)) for _ in range(500) if "2)" in type_)]
    by_columns = 0
    for number in range(200):
        some = [chance.choice([*plain, None]) for _ in range(5)] + ([chance.choice(poison)] if number % 4 == 0 else [])
        sieve = Sieve(Opening("s", settings, "", {}, {"t": table}))
        rows = _decoded(table, [(value,) for value in some], None, +1, sieve)
        try:
            found = read_columns([some], table.schema)
        except NotPlainError:
            continue
        by_columns += 1
        assert (sieve.found, repr(found["v"].to_pylist())) == ([], repr(as_table(rows, table.schema)["v"].to_pylist()))
    assert by_columns or type_ == "decimal(38,25)"
