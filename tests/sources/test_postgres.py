"""What is special about PostgreSQL: its types, its log, and how it may be lost."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest

from rollview.core.interval import Interval
from rollview.errors import BadValue, SourceDown, UsageError
from rollview.sources import SourceSettings, TableSettings
from rollview.sources.postgres.messages import UnknownMessageError, decode, lsn_text, parse_lsn
from rollview.sources.postgres.values import spark_type
from rollview.warehouse import Warehouse
from tests.servers.postgres import PostgresServer
from tests.sources.harness import ACCOUNTS, Write, account, capture, stored, stored_at_each
from tests.sources.postgres_harness import PostgresHarness

pytestmark = pytest.mark.postgres


@pytest.fixture
def bank(postgres_server: PostgresServer) -> Iterator[PostgresHarness]:
    with closing(PostgresHarness(postgres_server)) as harness:
        yield harness


@pytest.fixture
def warehouse(empty_warehouse: Warehouse, bank: PostgresHarness) -> Warehouse:
    empty_warehouse.add_source("bank", bank.settings())
    return empty_warehouse


def settings(bank: PostgresHarness, *tables: str, types: dict[str, str] | None = None) -> SourceSettings:
    return SourceSettings("postgres", bank.url, tuple(TableSettings(t, t, types or {}) for t in tables))


NAN, INFINITY = float("nan"), float("inf")
TYPES: dict[str, tuple[str, list[tuple[str, Any]]]] = {
    "boolean": ("boolean", [("true", True), ("false", False)]),
    "smallint": ("smallint", [("-32768", -32768)]),
    "int": ("int", [("2147483647", 2147483647)]),
    "bigint": ("bigint", [("-9223372036854775808", -(2**63))]),
    "real": ("float", [("1.5", 1.5), ("'NaN'", NAN), ("'-Infinity'", -INFINITY)]),
    "double precision": ("double", [("0.1", 0.1), ("1e-300", 1e-300), ("'NaN'", NAN), ("'-0'", -0.0)]),
    "numeric(12,2)": ("decimal(12,2)", [("-1234567890.10", Decimal("-1234567890.10"))]),
    "numeric(38,38)": ("decimal(38,38)", [("0." + "9" * 38, Decimal("0." + "9" * 38))]),
    "text": ("string", [("''", ""), (r"E'a\tb\n\\N\"'", 'a\tb\n\\N"'), ("'表 🦆'", "表 🦆")]),
    "char(5)": ("string", [("'ab'", "ab   ")]),
    "varchar(3)": ("string", [("'abc'", "abc")]),
    "bytea": ("binary", [(r"'\x00ff'", b"\x00\xff"), ("''", b"")]),
    "date": ("date", [("'0001-01-01'", date(1, 1, 1)), ("'9999-12-31'", date(9999, 12, 31))]),
    "timestamp": (
        "timestamp_ntz",
        [
            ("'2026-03-29 02:30:00.123456'", datetime(2026, 3, 29, 2, 30, 0, 123456)),
            ("'1500-01-01'", datetime(1500, 1, 1)),
        ],
    ),
    "timestamptz": (
        "timestamp",
        [
            ("'2026-10-25 02:30:00.5+02'", datetime(2026, 10, 25, 0, 30, 0, 500000, tzinfo=UTC)),
            ("'2026-10-25 02:30:00+01'", datetime(2026, 10, 25, 1, 30, tzinfo=UTC)),
        ],
    ),
    "uuid": ("string", [("'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")]),
    "jsonb": ("string", [("""'{"b": 1, "a": [null]}'""", '{"a": [null], "b": 1}')]),
    "interval": ("string", [("'1 day 2 hours'", "P1DT2H")]),
    "mood": ("string", [("'sad'", "sad")]),
    "cents": ("decimal(10,2)", [("1.25", Decimal("1.25"))]),
}
SETUP = "CREATE TYPE mood AS ENUM ('sad', 'glad'); CREATE DOMAIN cents AS numeric(10,2) CHECK (value > 0);"


def test_every_type_comes_as_it_is_by_copy_and_by_log(empty_warehouse: Warehouse, bank: PostgresHarness) -> None:
    bank.connection.execute(SETUP.encode())
    columns = ", ".join(f"c{place} {type_}" for place, type_ in enumerate(TYPES))
    bank.connection.execute(f"CREATE TABLE t (id int PRIMARY KEY, {columns})".encode())
    bank.connection.execute("ALTER TABLE t REPLICA IDENTITY FULL")
    expected: Counter[str] = Counter()

    def fill(first: int) -> None:
        for number in range(first, first + 4):
            chosen = [cases[number % len(cases)] if number % 4 < 3 else ("NULL", None) for _, cases in TYPES.values()]
            values = ", ".join(text for text, _ in chosen)
            bank.connection.execute(f"INSERT INTO t VALUES ({number}, {values})".encode())
            expected[repr((number, *(value for _, value in chosen)))] += 1

    fill(0)
    empty_warehouse.add_source("s", settings(bank, "t"))
    schema = empty_warehouse.snapshot().get("t").schema
    assert [column.type for column in schema][1:] == [type_ for type_, _ in TYPES.values()]
    fill(4)
    capture(empty_warehouse)
    found = Counter(repr(tuple(map(_plain, row))) for row in stored(empty_warehouse, "t").elements())
    assert found == expected
    bank.connection.execute("UPDATE t SET id = id + 100; DELETE FROM t WHERE id < 106")
    capture(empty_warehouse)
    assert sorted(row[0] for row in stored(empty_warehouse, "t")) == [106, 107]


def _plain(value: Any) -> Any:
    return value.astimezone(UTC) if isinstance(value, datetime) and value.tzinfo else value


POISON = [
    ("date", "'infinity'"),
    ("date", "'10000-01-01'"),
    ("date", "'0001-01-01 BC'"),
    ("timestamp", "'-infinity'"),
    ("timestamptz", "'4713-01-01 BC'"),
    ("timestamp", "'294276-01-01'"),
    ("numeric(12,2)", "'NaN'"),
]


@pytest.mark.parametrize(("type_", "value"), POISON)
def test_a_value_that_spark_has_not_stops_the_source_there(
    empty_warehouse: Warehouse, bank: PostgresHarness, type_: str, value: str
) -> None:
    bank.connection.execute(f"CREATE TABLE t (v {type_}); ALTER TABLE t REPLICA IDENTITY FULL".encode())
    empty_warehouse.add_source("s", settings(bank, "t"))
    bank.connection.execute("INSERT INTO t VALUES (NULL)")
    bank.connection.execute(f"INSERT INTO t VALUES ({value})".encode())
    bank.connection.execute("INSERT INTO t VALUES (NULL)")
    for _ in range(2):
        (done,) = empty_warehouse.capture().sources
        assert done.problem is not None
        assert "column 'v'" in done.problem
        assert empty_warehouse.sources()[0].state == "bad_value"
        assert stored(empty_warehouse, "t") == Counter({(None,): 1})
    with pytest.raises(BadValue):
        empty_warehouse.resnapshot("s")


def test_a_type_without_counterpart_is_refused_until_one_is_chosen(
    empty_warehouse: Warehouse, bank: PostgresHarness
) -> None:
    bank.connection.execute("CREATE TABLE t (n numeric, a int[], m money); ALTER TABLE t REPLICA IDENTITY FULL")
    checked = empty_warehouse.check_source("s", settings(bank, "t"))
    assert [finding.what.partition(" of ")[0] for finding in checked.findings if finding.blocks] == [
        "column 'n'",
        "column 'a'",
        "column 'm'",
    ]
    chosen = {"n": "decimal(38,4)", "a": "string", "m": "string"}
    empty_warehouse.add_source("s", settings(bank, "t", types=chosen))
    bank.connection.execute("INSERT INTO t VALUES (1.5, '{1,NULL}', 2)")
    capture(empty_warehouse)
    assert stored(empty_warehouse, "t") == Counter({(Decimal("1.5000"), "{1,NULL}", "$2.00"): 1})
    bank.connection.execute("INSERT INTO t VALUES (1.23456, NULL, NULL)")
    (done,) = empty_warehouse.capture().sources
    assert "1.23456" in (done.problem or "")


def test_large_values_that_an_update_leaves_alone_are_kept(empty_warehouse: Warehouse, bank: PostgresHarness) -> None:
    bank.connection.execute("CREATE TABLE t (id int PRIMARY KEY, n int, big text, blob bytea)")
    bank.connection.execute("ALTER TABLE t REPLICA IDENTITY FULL; ALTER TABLE t ALTER big SET STORAGE EXTERNAL")
    bank.connection.execute(
        "INSERT INTO t SELECT i, 0, repeat(md5(i::text), 3000), decode(repeat(md5(i::text), 30000), 'hex')"
        " FROM generate_series(1, 20) i"
    )
    empty_warehouse.add_source("s", settings(bank, "t"))
    for _ in range(5):
        bank.connection.execute("UPDATE t SET n = n + 1")
    capture(empty_warehouse)
    assert stored(empty_warehouse, "t") == Counter(bank.connection.execute("SELECT * FROM t").fetchall())


def test_truncate_inside_a_transaction(warehouse: Warehouse, bank: PostgresHarness) -> None:
    bank.write(Write("note", None, ("before",)))
    with bank.connection.transaction():
        bank.connection.execute("INSERT INTO note VALUES ('lost')")
        bank.connection.execute("TRUNCATE note, account")
        bank.connection.execute("INSERT INTO note VALUES ('same'), ('kept'); INSERT INTO account VALUES (1, 'ann', 10)")
        bank.connection.execute("DELETE FROM note WHERE text = 'kept'")
    bank.write(Write("note", None, ("after",)))
    capture(warehouse)
    assert stored(warehouse, "note") == Counter({("same",): 1, ("after",): 1})
    assert stored(warehouse, "note", 3) == Counter({("same",): 1})
    assert stored(warehouse, "account", 3) == Counter([ACCOUNTS[0]])
    assert stored(warehouse, "note", 2) == Counter({("same",): 2, ("",): 1, ("before",): 1})


def test_truncate_cascade(empty_warehouse: Warehouse, bank: PostgresHarness) -> None:
    bank.connection.execute(
        "CREATE TABLE p (id int PRIMARY KEY); CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES p);"
        "ALTER TABLE p REPLICA IDENTITY FULL; ALTER TABLE c REPLICA IDENTITY FULL;"
        "INSERT INTO p VALUES (1); INSERT INTO c VALUES (1, 1)"
    )
    empty_warehouse.add_source("s", settings(bank, "p", "c"))
    bank.connection.execute("TRUNCATE p CASCADE")
    capture(empty_warehouse)
    assert stored(empty_warehouse, "c") == stored(empty_warehouse, "p") == Counter()


def test_tables_that_take_each_others_names_keep_their_own_rows_until_they_are_copied(
    empty_warehouse: Warehouse, bank: PostgresHarness
) -> None:
    bank.connection.execute(
        "CREATE TABLE p (id int PRIMARY KEY); CREATE TABLE q (id int PRIMARY KEY); INSERT INTO p VALUES (1);"
        "ALTER TABLE p REPLICA IDENTITY FULL; ALTER TABLE q REPLICA IDENTITY FULL; INSERT INTO q VALUES (10)"
    )
    empty_warehouse.add_source("s", settings(bank, "p", "q"))
    first = empty_warehouse.snapshot().moment.csn
    bank.connection.execute("ALTER TABLE p RENAME TO r; ALTER TABLE q RENAME TO p; ALTER TABLE r RENAME TO q")
    bank.connection.execute("DELETE FROM q WHERE id = 1; INSERT INTO q VALUES (2)")
    capture(empty_warehouse)
    assert stored(empty_warehouse, "p", first + 1) == Counter({(2,): 1})
    assert stored(empty_warehouse, "q", first + 1) == Counter({(10,): 1})
    assert stored(empty_warehouse, "p") == Counter({(10,): 1})
    assert stored(empty_warehouse, "q") == Counter({(2,): 1})


def test_keys_shift_over_many_rows(warehouse: Warehouse, bank: PostgresHarness) -> None:
    """Without its primary key nobody can say which rows were updated, but every row is right."""
    bank.connection.execute("INSERT INTO account SELECT i, 'x', i FROM generate_series(10, 3009) i")
    bank.connection.execute("ALTER TABLE account DROP CONSTRAINT account_pkey")
    bank.connection.execute("UPDATE account SET id = id + 1")
    capture(warehouse)
    assert stored(warehouse, "account") == bank.rows("account")
    (change,) = warehouse.catalog.changes("account", Interval(2, 3))
    assert (change.inserted, change.deleted, change.updated) == (3003, 3003, None)


def test_rolled_back_work_is_not_seen(warehouse: Warehouse, bank: PostgresHarness) -> None:
    with bank.connection.transaction():
        bank.connection.execute("INSERT INTO note VALUES ('outer')")
        try:
            with bank.connection.transaction():
                bank.connection.execute("INSERT INTO note VALUES ('inner')")
                raise ZeroDivisionError
        except ZeroDivisionError:
            pass
    bank.connection.execute("BEGIN; INSERT INTO note VALUES ('never'); ROLLBACK")
    assert capture(warehouse).units == 1
    assert stored(warehouse, "note") == bank.rows("note")


def test_a_transaction_that_began_first_and_committed_last(warehouse: Warehouse, bank: PostgresHarness) -> None:
    with psycopg.connect(bank.url) as slow:
        slow.execute("INSERT INTO note VALUES ('slow')")
        for number in range(5):
            bank.write(Write("note", None, (str(number),)))
            capture(warehouse)
        slow.commit()
    capture(warehouse)
    assert stored(warehouse, "note") == bank.rows("note")
    assert stored(warehouse, "note", 6)[("slow",)] == 0
    assert stored(warehouse, "note", 7)[("slow",)] == 1


def test_transfers_under_eight_writers_keep_the_sum_at_every_csn(warehouse: Warehouse, bank: PostgresHarness) -> None:
    bank.connection.execute("TRUNCATE account; INSERT INTO account SELECT i, 'x', 100 FROM generate_series(1, 20) i")

    def transfer(seed: int) -> None:
        with psycopg.connect(bank.url, autocommit=True) as connection:
            for turn in range(40):
                lower, upper = sorted(((seed * 7 + turn) % 20 + 1, (seed * 3 + turn * 5) % 20 + 1))
                with connection.transaction():
                    connection.execute("UPDATE account SET balance = balance - 1 WHERE id = %s", (lower,))
                    connection.execute("UPDATE account SET balance = balance + 1 WHERE id = %s", (upper,))

    threads = [threading.Thread(target=transfer, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        capture(warehouse)
    capture(warehouse)
    last = warehouse.snapshot().moment.csn
    assert last > 250
    for rows in stored_at_each(warehouse, "account", range(2, last + 1, 7)):
        assert (len(rows), sum(row[2] for row in rows)) == (20, 2000)
    assert stored(warehouse, "account") == bank.rows("account")
    times = [entry.source_time for entry in warehouse.catalog.ledger()]
    assert all(time.tzinfo is not None for time in times)


def test_writes_to_other_tables_pin_no_log(warehouse: Warehouse, bank: PostgresHarness) -> None:
    bank.connection.execute("CREATE TABLE unrelated (v text)")
    behind_by = "pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn)"
    retained = f"SELECT {behind_by} FROM pg_replication_slots WHERE slot_name = %s".encode()
    (slot,) = bank.slots()
    for _ in range(3):
        bank.connection.execute("INSERT INTO unrelated SELECT repeat('x', 1000) FROM generate_series(1, 5000)")
        assert capture(warehouse).units == 0
        (behind,) = bank.connection.execute(retained, (slot,)).fetchone() or (None,)
        assert behind is not None
        assert behind < 1_000_000
    assert warehouse.snapshot().moment.csn == 1


def test_a_log_that_grows_beyond_the_cap_is_told(empty_warehouse: Warehouse, bank: PostgresHarness) -> None:
    """Nobody reads for a while: the server keeps its log, and whoever looks is told; then it is let go."""
    chosen = replace(bank.settings(), options={"log_alarm": "4 MB"})
    empty_warehouse.add_source("bank", chosen)
    assert capture(empty_warehouse).notes == ()
    bank.connection.execute("CREATE TABLE other (v text)")
    bank.connection.execute("INSERT INTO other SELECT repeat(md5(g::text), 30) FROM generate_series(1, 9000) g")
    found = [one for one in empty_warehouse.check_source("bank").findings if "more than 4194304" in one.what]
    assert [one.blocks for one in found] == [False]
    for _ in range(20):
        capture(empty_warehouse)
        bank.connection.execute("CHECKPOINT")
        (source,) = empty_warehouse.sources()
        if source.alarm is None:
            break
    assert source.alarm is None
    assert source.slot == "reserved"
    assert source.kept_bytes is not None
    assert source.kept_bytes < 4 << 20


def test_a_slot_that_somebody_else_moved_is_a_lost_position(warehouse: Warehouse, bank: PostgresHarness) -> None:
    bank.write(Write("note", None, ("missed",)))
    bank.connection.execute("SELECT pg_replication_slot_advance(%s, pg_current_wal_lsn())", (bank.slots()[0],))
    (done,) = warehouse.capture().sources
    assert "somebody else moved" in (done.problem or "")
    assert warehouse.sources()[0].state == "lost_position"


@pytest.mark.parametrize("fact", ["system", "timeline"])
def test_another_server_under_the_same_name_is_a_lost_position(
    warehouse: Warehouse, bank: PostgresHarness, fact: str
) -> None:
    memory = dict(warehouse.catalog.source("bank").memory)
    with warehouse.catalog.write() as writer:
        writer.sources.set_memory("bank", {**memory, fact: 77})
    (done,) = warehouse.capture().sources
    assert "cannot be read on" in (done.problem or "")
    warehouse.resnapshot("bank")
    bank.write(Write("note", None, ("on",)))
    capture(warehouse)
    assert stored(warehouse, "note") == bank.rows("note")


def test_a_log_that_ends_before_our_position_is_a_lost_position(warehouse: Warehouse, bank: PostgresHarness) -> None:
    position = warehouse.catalog.source("bank").position
    with warehouse.catalog.write() as writer:
        writer.sources.advance("bank", position, "FFFFFF/0")
    (done,) = warehouse.capture().sources
    assert "log ends at" in (done.problem or "")


def test_a_table_without_whole_old_rows_is_refused_untouched(empty_warehouse: Warehouse, bank: PostgresHarness) -> None:
    bank.connection.execute("CREATE TABLE plain (v int); INSERT INTO plain VALUES (1)")
    checked = empty_warehouse.check_source("s", settings(bank, "plain", "none"))
    repairs = [finding.repair for finding in checked.findings if finding.blocks]
    assert repairs == ['ALTER TABLE "public"."plain" REPLICA IDENTITY FULL;', None]
    with pytest.raises(UsageError, match="does not log whole old rows"):
        empty_warehouse.add_source("s", settings(bank, "plain"))
    bank.connection.execute("UPDATE plain SET v = 2")
    assert bank.leftovers() == []
    bank.connection.execute((repairs[0] or "").encode())
    empty_warehouse.add_source("s", settings(bank, "plain"))
    bank.connection.execute("UPDATE plain SET v = 3")
    capture(empty_warehouse)
    assert stored(empty_warehouse, "plain") == Counter({(3,): 1})


def test_changes_of_the_layout(warehouse: Warehouse, bank: PostgresHarness) -> None:
    """Names, new columns and wider types are followed; a promise that is gone is dropped; a lost table waits."""
    bank.connection.execute("ALTER TABLE account ADD COLUMN extra int DEFAULT 5")
    bank.connection.execute("INSERT INTO account VALUES (10, 'x', 1, 2); UPDATE account SET extra = 6")
    bank.connection.execute("ALTER TABLE account DROP COLUMN extra")
    bank.connection.execute("ALTER TABLE account ALTER owner TYPE varchar(200)")
    bank.write(Write("account", None, account(11, "y", "1.00")))
    capture(warehouse)
    assert stored(warehouse, "account") == bank.rows("account")
    bank.connection.execute("ALTER TABLE account RENAME owner TO holder; ALTER TABLE account ADD COLUMN owner text")
    bank.connection.execute("INSERT INTO account VALUES (12, 'holder', 1, 'owner')")
    assert "owner is holder now; owner is new" in capture(warehouse).notes[0]
    assert warehouse.snapshot().get("account").schema.names == ("id", "holder", "balance", "owner")
    assert stored(warehouse, "account") == bank.rows("account")
    bank.connection.execute("ALTER TABLE account DROP CONSTRAINT account_pkey")
    bank.connection.execute("INSERT INTO account VALUES (12, 'twice', 1, 'owner')")
    capture(warehouse)
    assert warehouse.snapshot().get("account").constraints.primary_key == ()
    assert stored(warehouse, "account")[(12, "twice", Decimal("1.00"), "owner")] == 1
    bank.connection.execute("DROP TABLE note")
    capture(warehouse)
    assert [one.name for one in warehouse.snapshot().tables() if one.waits_at is not None] == ["note"]


def test_columns_that_take_the_places_of_others_are_others(warehouse: Warehouse, bank: PostgresHarness) -> None:
    bank.connection.execute("ALTER TABLE account ADD COLUMN b2 numeric(12,2)")
    bank.connection.execute("UPDATE account SET b2 = balance; ALTER TABLE account DROP COLUMN balance")
    bank.connection.execute("ALTER TABLE account RENAME b2 TO balance; ALTER TABLE account ADD COLUMN o2 varchar(100)")
    capture(warehouse)
    assert warehouse.snapshot().get("account").schema.names == ("id", "owner", "balance", "o2")
    bank.connection.execute("UPDATE account SET o2 = owner; ALTER TABLE account DROP COLUMN owner")
    bank.connection.execute("ALTER TABLE account RENAME o2 TO owner; INSERT INTO account VALUES (9, 1.5, 'last')")
    capture(warehouse)
    relation = warehouse.snapshot().get("account")
    assert relation.schema.names == ("id", "balance", "owner")
    assert [column.stored for column in relation.schema] == ["id", "balance%_4", "o2"]
    assert stored(warehouse, "account") == bank.rows("account")


def test_a_source_that_is_down_hurts_nobody_else(
    warehouse: Warehouse, bank: PostgresHarness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BANK", bank.url)
    other = SourceSettings("postgres", "env:BANK", (TableSettings("second", "note"),))
    warehouse.add_source("other", other)
    assert warehouse.sources()[1].address == "env:BANK"
    monkeypatch.setenv("BANK", "postgresql://u:very-secret@127.0.0.1:1/none")
    bank.write(Write("note", None, ("x",)))
    first, second = warehouse.capture().sources
    assert (first.problem, first.units) == (None, 1)
    assert second.retryable
    assert "does not answer" in (second.problem or "")
    everything = (
        repr(warehouse.catalog.sources()) + repr(second) + (warehouse.root / "catalog.db").read_bytes().decode("latin1")
    )
    assert "very-secret" not in everything
    monkeypatch.setenv("BANK", bank.url)
    assert warehouse.capture(["other"]).sources[0].problem is None
    assert warehouse.sources()[1].problem is None
    warehouse.remove_source("other")


def test_a_password_is_refused_in_settings(bank: PostgresHarness) -> None:
    with pytest.raises(UsageError, match="password"):
        SourceSettings("postgres", "postgresql://u:secret@host/db", (TableSettings("t", "t"),))


def test_a_server_elsewhere_must_show_a_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    from rollview.sources.postgres.server import PostgresServer

    server = PostgresServer("s", "postgresql://u@db.example.com/d", 1.0)
    assert server._parameters["sslmode"] == "verify-full"
    assert "sslmode" not in PostgresServer("s", "postgresql://u@127.0.0.1/d", 1.0)._parameters
    assert (
        PostgresServer("s", "postgresql://u@db.example.com/d?sslmode=require", 1.0)._parameters["sslmode"] == "require"
    )
    with pytest.raises(SourceDown), PostgresServer("s", "postgresql://u:secret@127.0.0.1:1/d", 1.0).connected():
        pass


def test_log_positions_need_sixty_four_bits() -> None:
    for lsn in (0, 1, 2**32 - 1, 2**32, 2**32 + 1, 2**64 - 1):
        assert parse_lsn(lsn_text(lsn)) == lsn
    assert lsn_text(2**32 + 255) == "1/FF"
    assert parse_lsn("1/0") > parse_lsn("0/FFFFFFFF")


def test_an_unknown_message_is_refused() -> None:
    with pytest.raises(UnknownMessageError):
        decode(b"Z123")


def test_decimals_beyond_spark_have_no_type() -> None:
    assert spark_type(1700, ((39 << 16) | 2) + 4, "b", None) is None
    assert spark_type(1700, ((5 << 16) | (-2 & 0x7FF)) + 4, "b", None) is None
    assert spark_type(1700, -1, "b", None) is None
    assert spark_type(1700, ((38 << 16) | 38) + 4, "b", None) == "decimal(38,38)"
