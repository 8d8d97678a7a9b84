"""Values at the edge of what can be represented: each arrives as it is, or is in quarantine with its position."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from rollview.errors import UsageError
from rollview.sources import SourceSettings, TableSettings
from rollview.warehouse import Warehouse
from tests.servers.mariadb import MariadbServer
from tests.servers.postgres import PostgresServer
from tests.sources.harness import NAN, capture, stored
from tests.sources.mariadb_harness import MariadbHarness
from tests.sources.mysql_harness import MysqlHarness
from tests.sources.postgres_harness import PostgresHarness
from tests.sources.sqlite_harness import SqliteHarness


class Bad:
    """Has no representation."""


BAD = Bad()
INF = float("inf")
NINES = "9" * 38

Case = tuple[str, str, Any]
"""A type, a value as SQL, and what arrives."""

POSTGRES: list[Case] = [
    ("date", "'infinity'", BAD),
    ("date", "'-infinity'", BAD),
    ("date", "'10000-01-01'", BAD),
    ("date", "'0001-01-01 BC'", BAD),
    ("date", "'0001-01-01'", date(1, 1, 1)),
    ("date", "'9999-12-31'", date(9999, 12, 31)),
    ("timestamp", "'infinity'", BAD),
    ("timestamp", "'-infinity'", BAD),
    ("timestamp", "'294276-01-01'", BAD),
    ("timestamp", "'0001-01-01'", datetime(1, 1, 1)),
    ("timestamp", "'2026-03-29 02:30:00.000001'", datetime(2026, 3, 29, 2, 30, 0, 1)),
    ("timestamptz", "'infinity'", BAD),
    ("timestamptz", "'4713-01-01 BC'", BAD),
    ("timestamptz", "'9999-12-31 23:59:59.999999+00'", datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)),
    ("numeric(12,2)", "'NaN'", BAD),
    ("numeric(38,0)", NINES, Decimal(NINES)),
    ("numeric(38,38)", "0.1", Decimal("0.1" + "0" * 37)),
    ("float8", "'NaN'", NAN),
    ("float8", "'Infinity'", INF),
    ("float8", "'-Infinity'", -INF),
    ("float8", "'-0'", -0.0),
    ("float8", "5e-324", 5e-324),
    ("float4", "'NaN'", NAN),
    ("bigint", "-9223372036854775808", -(2**63)),
    ("bigint", "9223372036854775807", 2**63 - 1),
    ("oid", "4294967295", 2**32 - 1),
    ("text", "''", ""),
    ("text", r"E'a\tb\nc\\d\r'", "a\tb\nc\\d\r"),
    ("text", "'zoë 表 🦆'", "zoë 表 🦆"),
    ("char(3)", "'a'", "a  "),
    ("bytea", r"'\x00ff'", b"\x00\xff"),
    ("time", "'24:00:00'", "24:00:00"),
    ("jsonb", "'1e400'", "1" + "0" * 400),
]

MARIADB: list[Case] = [
    ("date", "'0000-00-00'", BAD),
    ("date", "'2026-00-10'", BAD),
    ("date", "'2026-02-00'", BAD),
    ("date", "'1000-01-01'", date(1000, 1, 1)),
    ("date", "'9999-12-31'", date(9999, 12, 31)),
    ("datetime", "'0000-00-00 00:00:00'", BAD),
    ("datetime", "'2026-02-00 01:00:00'", BAD),
    ("datetime(6)", "'9999-12-31 23:59:59.999999'", datetime(9999, 12, 31, 23, 59, 59, 999999)),
    ("datetime(3)", "'2026-03-29 02:30:00.001'", datetime(2026, 3, 29, 2, 30, 0, 1000)),
    ("timestamp NULL", "'0000-00-00 00:00:00'", BAD),
    ("timestamp(6) NULL", "'2038-01-19 03:14:07.999999'", datetime(2038, 1, 19, 3, 14, 7, 999999, tzinfo=UTC)),
    ("time", "'-838:59:59'", "-838:59:59"),
    ("time(6)", "'00:00:00.000001'", "00:00:00.000001"),
    ("time(6)", "'-00:00:00.000001'", BAD),
    ("time(2)", "'-01:00:00'", BAD),
    ("year", "2155", 2155),
    ("tinyint(1)", "127", 127),
    ("bigint", "-9223372036854775808", -(2**63)),
    ("bigint unsigned", "18446744073709551615", Decimal(2**64 - 1)),
    ("int unsigned", "4294967295", 2**32 - 1),
    ("decimal(38,0)", NINES, Decimal(NINES)),
    ("decimal(12,2)", "-0.01", Decimal("-0.01")),
    ("float", "1e-38", struct.unpack("f", struct.pack("f", 1e-38))[0]),
    ("double", "1.7976931348623157e308", 1.7976931348623157e308),
    ("varchar(9)", "''", ""),
    ("varchar(9)", r"'a\0b'", "a\0b"),
    ("varchar(9)", "'a  '", "a  "),
    ("varchar(9)", "'🦆'", "🦆"),
    ("varchar(9) character set latin1", "'zoë'", "zoë"),
    ("char(3)", "'a  '", "a"),
    ("binary(3)", "x'61'", b"a\0\0"),
    ("varbinary(9)", "x'ff00'", b"\xff\x00"),
]

SQLITE: list[Case] = [
    ("INTEGER", "'text'", BAD),
    ("INTEGER", "1.5", BAD),
    ("INTEGER", "-9223372036854775808", -(2**63)),
    ("INTEGER", "x'00'", BAD),
    ("BOOLEAN", "2", BAD),
    ("BOOLEAN", "1", True),
    ("DECIMAL(4,2)", "1.005", BAD),
    ("DECIMAL(4,2)", "100", BAD),
    ("DECIMAL(4,2)", "9e999", BAD),
    ("DECIMAL(4,2)", "'99.99'", Decimal("99.99")),
    ("NUMERIC(5)", "7", Decimal(7)),
    ("REAL", "9e999", INF),
    ("REAL", "-9e999", -INF),
    ("REAL", "'text'", BAD),
    ("REAL", "9007199254740993", 9007199254740992.0),
    ("REAL", "0.1", 0.1),
    ("TEXT", "x'61'", BAD),
    ("TEXT", "CAST(x'ff' AS TEXT)", BAD),
    ("TEXT", "''", ""),
    ("TEXT", "'a' || char(0) || 'b'", "a\0b"),
    ("TEXT", "'🦆'", "🦆"),
    ("BLOB", "'text'", BAD),
    ("BLOB", "x'00ff'", b"\x00\xff"),
    ("DATE", "'31.12.2026'", BAD),
    ("DATE", "'20261231'", BAD),
    ("DATE", "'0000-00-00'", BAD),
    ("DATE", "'0001-01-01'", date(1, 1, 1)),
    ("DATETIME", "'2026-01-01T00:00:00Z'", BAD),
    ("DATETIME", "1767225600", BAD),
    ("DATETIME", "'2026-03-29 02:30:00.123456'", datetime(2026, 3, 29, 2, 30, 0, 123456)),
]

MATRIX = {"postgres": POSTGRES, "mariadb": MARIADB, "mysql": MARIADB, "sqlite": SQLITE}


SERVERS = ("postgres", "mariadb", "mysql")


@pytest.fixture(params=["sqlite", *(pytest.param(k, marks=getattr(pytest.mark, k)) for k in SERVERS)])
def bank(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    if request.param == "sqlite":
        made: Any = SqliteHarness(tmp_path)
    elif request.param == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres_server")
        made = PostgresHarness(server)
    else:
        other: MariadbServer = request.getfixturevalue(f"{request.param}_server")
        made = MysqlHarness(other) if request.param == "mysql" else MariadbHarness(other)
        made.execute("SET sql_mode = 'ALLOW_INVALID_DATES', time_zone = '+00:00'")
    with closing(made):
        yield made


def execute(bank: Any, text: str) -> None:
    if isinstance(bank, MariadbHarness):
        bank.execute(text)
    else:
        bank.connection.execute(text if bank.kind == "sqlite" else text.encode())


def fill(bank: Any, cases: list[Case], first: int) -> None:
    """A row for each case, with a value in its own column only, and one of NULL."""
    execute(bank, f"INSERT INTO t (id) VALUES ({first})")
    for place, (_, value, _) in enumerate(cases):
        execute(bank, f"INSERT INTO t (id, c{place}) VALUES ({first + 1 + place}, {value})")


def test_every_value_arrives_or_is_in_quarantine(bank: Any, empty_warehouse: Warehouse) -> None:
    cases = MATRIX[bank.kind]
    columns = ", ".join(f"c{place} {type_}" for place, (type_, _, _) in enumerate(cases))
    execute(bank, f"CREATE TABLE t (id INTEGER PRIMARY KEY, {columns})")
    if bank.kind == "postgres":
        execute(bank, "ALTER TABLE t REPLICA IDENTITY FULL")
    fill(bank, cases, 100)
    options = {"on_bad_value": "quarantine"}
    settings = SourceSettings(bank.kind, bank.settings().address, (TableSettings("t", "t"),), options)
    empty_warehouse.add_source("s", settings)
    fill(bank, cases, 200)
    capture(empty_warehouse)
    for first in (100, 200):
        check(empty_warehouse, cases, first)
    bad = sum(case[2] is BAD for case in cases)
    assert empty_warehouse.quarantine("s").missing == 2 * bad
    execute(bank, "UPDATE t SET id = id + 300 WHERE id < 200")
    execute(bank, "DELETE FROM t WHERE id BETWEEN 200 AND 300")
    capture(empty_warehouse)
    check(empty_warehouse, cases, 400)
    assert empty_warehouse.quarantine("s").missing == bad
    assert empty_warehouse.resnapshot("s").units == 0
    assert empty_warehouse.quarantine("s").missing == bad
    execute(bank, "DELETE FROM t")
    capture(empty_warehouse)
    assert stored(empty_warehouse, "t") == {}
    assert empty_warehouse.quarantine("s").missing == 0


def check(warehouse: Warehouse, cases: list[Case], first: int) -> None:
    rows = {row[0]: row[1:] for row in stored(warehouse, "t")}
    aside = {row.row: row.column for row in warehouse.quarantine("s").rows}
    nothing = (None,) * len(cases)
    assert rows[first] == nothing
    for place, (type_, value, expected) in enumerate(cases):
        number = first + 1 + place
        if expected is BAD:
            assert number not in rows, (type_, value)
            assert aside[f"id={number}"] == f"c{place}", (type_, value)
        else:
            assert number in rows, (type_, value, aside.get(f"id={number}"))
            wanted = (*nothing[:place], expected, *nothing[place + 1 :])
            assert repr(tuple(map(in_utc, rows[number]))) == repr(wanted), (type_, value)


def in_utc(value: Any) -> Any:
    return value.astimezone(UTC) if isinstance(value, datetime) and value.tzinfo else value


@pytest.mark.mariadb
def test_a_value_that_the_driver_cannot_read_stops_the_source(
    mariadb_server: MariadbServer, empty_warehouse: Warehouse
) -> None:
    with closing(MariadbHarness(mariadb_server)) as bank:
        bank.execute("CREATE TABLE t (d date)", "SET sql_mode = 'ALLOW_INVALID_DATES'")
        options = {"on_bad_value": "quarantine"}
        empty_warehouse.add_source("s", SourceSettings("mariadb", bank.url, (TableSettings("t", "t"),), options))
        bank.execute("INSERT INTO t VALUES ('2026-02-31')")
        empty_warehouse.capture()
        assert empty_warehouse.sources()[0].state == "bad_value"


def test_there_are_two_ways_with_bad_values() -> None:
    with pytest.raises(UsageError, match="on_bad_value is 'skip'"):
        SourceSettings("sqlite", "x", (TableSettings("t", "t"),), {"on_bad_value": "skip"})
