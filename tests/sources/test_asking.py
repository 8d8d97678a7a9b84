"""Sources that answer by keys, on real databases: what they give, what they saw, and that nothing is left behind."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any, LiteralString

import psycopg
import pyarrow as pa
import pytest

from rollview.capture.raw_answers import RawLookup
from rollview.capture.recorded_source import open_recorded
from rollview.errors import AskTooLarge, LostPosition, NotFound, UsageError
from rollview.relations.answers import KeyRequest
from rollview.sources import SourceSettings, TableSettings, asking
from rollview.sources.asking import Ask, AskableSource
from rollview.sources.binlog.charsets import is_read_alike
from rollview.sources.postgres.asking import SnapshotSeen, snapshot
from rollview.sources.protocol import UnitOfWork
from rollview.sources.sections import Section
from rollview.sources.sqlite.asking import LogSeen, asked_rows, read_only
from rollview.warehouse import Warehouse
from tests.servers.mariadb import MariadbServer
from tests.servers.postgres import PostgresServer
from tests.sources.files_harness import FilesHarness
from tests.sources.harness import Bag, Harness, Write, account, tuples
from tests.sources.mariadb_harness import MariadbHarness
from tests.sources.postgres_harness import PostgresHarness
from tests.sources.sqlite_harness import SqliteHarness

COLUMNS = ("id", "owner", "balance")


@pytest.fixture(params=["sqlite", *(pytest.param(k, marks=getattr(pytest.mark, k)) for k in ("postgres", "mariadb"))])
def bank(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Harness]:
    if request.param == "sqlite":
        made: Harness = SqliteHarness(tmp_path)
    elif request.param == "mariadb":
        made = MariadbHarness(request.getfixturevalue("mariadb_server"))
    else:
        made = PostgresHarness(request.getfixturevalue("postgres_server"))
    with closing(made):
        yield made


@pytest.fixture
def source(bank: Harness, empty_warehouse: Warehouse) -> Iterator[Any]:
    empty_warehouse.add_source("bank", bank.settings())
    catalog = empty_warehouse.catalog
    with closing(open_recorded(catalog, catalog.source("bank"))) as opened:
        yield opened


def remote(bank: Harness, name: str) -> str:
    return next(table.remote for table in bank.settings().tables if table.relation == name)


def accounts(bank: Harness, *numbers: int) -> Ask:
    return Ask(remote(bank, "account"), COLUMNS, ("id",), frozenset((number,) for number in numbers))


def test_rows_come_by_keys_of_several_tables_at_once(bank: Harness, source: Any) -> None:
    assert isinstance(source, AskableSource)
    notes = Ask(remote(bank, "note"), ("text",), ("text",), frozenset({("same",), ("nope",), (None,)}))
    answer = source.ask([accounts(bank, 1, 3, 99), notes])
    assert Counter(answer.rows[0]) == Counter([account(1, "ann", "10.00"), account(3, None, None)])
    assert answer.rows[1] == (("same",), ("same",))


def test_columns_are_those_asked_for_in_that_order(bank: Harness, source: Any) -> None:
    wish = Ask(
        remote(bank, "account"), ("owner", "id"), ("owner", "id"), frozenset({("ann", 1), ("ann", 2), ("bob", 2)})
    )
    assert Counter(source.ask([wish]).rows[0]) == Counter([("ann", 1), ("bob", 2)])


def test_keys_are_values_whatever_they_say(bank: Harness, source: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    hostile = ["x'); DROP TABLE note; --", '"', "\\", "%s", "表 🦆", "{}", "$[0]", "\0", "a\0b", "a\0c", "a\0d", "\0z"]
    held = [text for text in hostile if "\0" not in text or not isinstance(bank, PostgresHarness)]
    bank.write(*(Write("note", None, (text,)) for text in (*held, "a")))
    monkeypatch.setattr(asking, "MOST_KEYS", 3)
    wish = Ask(remote(bank, "note"), ("text",), ("text",), frozenset((text,) for text in hostile))
    assert Counter(source.ask([wish]).rows[0]) == Counter((text,) for text in held)
    assert bank.rows("note")[("same",)] == 2


def test_answers_are_bounded(bank: Harness, empty_warehouse: Warehouse) -> None:
    empty_warehouse.add_source("bank", replace(bank.settings(), options={"ask_rows": "2"}))
    catalog = empty_warehouse.catalog
    with closing(open_recorded(catalog, catalog.source("bank"))) as opened:
        assert isinstance(opened, AskableSource)
        with pytest.raises(AskTooLarge, match="rows of 3 keys at once: it has more than 2 rows"):
            opened.ask([accounts(bank, 1, 2, 3)])
        assert len(opened.ask([accounts(bank, 1, 2)]).rows[0]) == 2


def test_what_cannot_be_asked_is_refused(bank: Harness, source: Any) -> None:
    table = remote(bank, "account")
    for wish, error, says in (
        (Ask("nope", ("id",), ("id",), frozenset()), NotFound, "captured table 'nope'"),
        (Ask(table, ("nope",), ("nope",), frozenset()), NotFound, "'nope'"),
        (Ask(table, ("owner",), ("id",), frozenset()), UsageError, "among those asked for"),
        (Ask(table, ("id",), (), frozenset()), UsageError, "among those asked for"),
        (Ask(table, ("balance",), ("balance",), frozenset()), UsageError, "may be equal here and not there"),
    ):
        with pytest.raises(error) as told:
            source.ask([wish])
        assert says in told.value.message


def _delta(unit: UnitOfWork, table: str) -> Bag:
    found: Bag = Counter()
    if table in unit.changes:
        for some, sign in ((unit.changes[table].before, -1), (unit.changes[table].after, 1)):
            rows = tuples(some) if isinstance(some, pa.Table) else iter(some)
            for row in rows if not isinstance(some, Section) else some:
                found[row] += sign
    return found


@pytest.mark.parametrize("seed", range(4))
def test_an_answer_is_brought_to_any_state_by_what_it_saw(
    bank: Harness, source: Any, empty_warehouse: Warehouse, seed: int
) -> None:
    """The law, on a history of random commits with answers in between."""
    random, table = Random(seed), remote(bank, "account")
    rows = {number: row for row in bank.rows("account") for number in [row[0]]}
    states, answers = [Counter(rows.values())], []
    position = empty_warehouse.catalog.source("bank").position
    units: list[tuple[UnitOfWork, str]] = []
    for step in range(8):
        number = random.randint(1, 5)
        new = account(number, f"o{step}", f"{step}.50") if random.random() < 0.7 or number not in rows else None
        bank.write(Write("account", rows.pop(number, None), new))
        rows |= {number: new} if new is not None else {}
        states.append(Counter(rows.values()))
        if random.random() < 0.6:
            answers.append(source.ask([accounts(bank, 1, 2, 3, 4, 5)]))
        batch = source.read(position, 1000)
        for unit in batch.units:
            units.append((unit, position))
            position = unit.position
        position = batch.position
    assert len(units) == 8
    for answer in answers:
        for at, state in enumerate(states):
            found = Counter(answer.rows[0])
            for place, (unit, after) in enumerate(units, start=1):
                saw = answer.seen.saw(unit, after)
                assert saw is not None
                if saw != (place <= at):
                    for row, count in _delta(unit, table).items():
                        found[row] += -count if saw else count
            assert +found == +state
            assert -found == Counter()


def test_asking_writes_nothing_and_leaves_nothing(bank: Harness, source: Any) -> None:
    before, notes = sorted(bank.leftovers()), bank.rows("note")
    source.ask([accounts(bank, 1)])
    assert sorted(bank.leftovers()) == before
    assert bank.rows("note") == notes
    bank.write(Write("note", None, ("writers go on",)))
    source.read(source.ask([accounts(bank, 1)]).seen.through, 10)


def test_files_cannot_be_asked(tmp_path: Path, empty_warehouse: Warehouse) -> None:
    with closing(FilesHarness(tmp_path)) as harness:
        empty_warehouse.add_source("bank", harness.settings())
        catalog = empty_warehouse.catalog
        with closing(open_recorded(catalog, catalog.source("bank"))) as opened:
            assert not isinstance(opened, AskableSource)


# SQLite


def _unit(position: str, transaction: str = "1") -> UnitOfWork:
    return UnitOfWork(position, transaction, datetime(2026, 1, 1, tzinfo=UTC), {})


@pytest.mark.parametrize(("seen", "saw"), [("3-a,1-b", False), ("5-a,2-b", True), ("4-a,1-b", None), ("5-a,1-b", None)])
def test_an_answer_may_lie_inside_a_unit(seen: str, saw: bool | None) -> None:
    assert LogSeen(seen).saw(_unit("5-c,2-d"), "3-a,1-b") is saw


def test_sqlite_writes_nothing_while_it_is_asked(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "some.db", isolation_level=None)) as connection:
        connection.execute("CREATE TABLE t (a INTEGER)")
        with read_only(connection), pytest.raises(sqlite3.OperationalError, match="readonly"):
            connection.execute("INSERT INTO t VALUES (1)")
        connection.execute("INSERT INTO t VALUES (1)")


def test_sqlite_gives_up_what_takes_too_long(tmp_path: Path) -> None:
    with closing(SqliteHarness(tmp_path)) as bank:
        bank.write(*(Write("note", None, (str(number),)) for number in range(3000)))
        wish, limits = Ask("note", ("text",), ("text",), frozenset({("7",)})), bank.settings().asking
        assert asked_rows(bank.connection, wish, limits) == [("7",)]
        with pytest.raises(AskTooLarge, match="that takes longer than 0 seconds"):
            asked_rows(bank.connection, wish, replace(limits, seconds=0))
        assert asked_rows(bank.connection, wish, limits) == [("7",)]


def test_sqlite_finds_keys_by_its_index(tmp_path: Path) -> None:
    """Asking costs what the keys cost, not what the table does."""
    with closing(SqliteHarness(tmp_path)) as bank:
        query = "SELECT id FROM account WHERE (id) IN (SELECT json_extract(value, '$[0]') FROM json_each(?))"
        plan = [row[-1] for row in bank.connection.execute("EXPLAIN QUERY PLAN " + query, ("[[1]]",))]
        assert plan[0].startswith("SEARCH account USING INTEGER PRIMARY KEY")


def test_what_sqlite_takes_for_equal_and_spark_does_not_is_left_out(tmp_path: Path, empty_warehouse: Warehouse) -> None:
    path = tmp_path / "any.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE t (name TEXT COLLATE NOCASE, n INTEGER)")
        connection.execute("INSERT INTO t VALUES ('a', 1), ('A', 2)")
    tables = (TableSettings("t", "t"),)
    empty_warehouse.add_source("any", SourceSettings("sqlite", str(path), tables))
    catalog = empty_warehouse.catalog
    with closing(open_recorded(catalog, catalog.source("any"))) as opened:
        assert isinstance(opened, AskableSource)
        both = frozenset({("A",), ("b",)})
        assert opened.ask([Ask("t", ("name", "n"), ("name",), both)]).rows == ((("A", 2),),)


# PostgreSQL


@pytest.mark.parametrize(
    ("transaction", "saw"),
    [
        ("99", True),
        ("100", False),
        ("90", False),
        (str(2**32 - 1), True),
        (str(2**31 + 150), True),
        (str(2**31 + 95), True),
        ("2000", False),
    ],
)
def test_ids_of_32_bits_are_a_little_ahead_of_the_snapshot_or_before_it(transaction: str, saw: bool) -> None:
    """Two rounds of ids later: what is just below zero belongs to the round before, and what is 2³¹ + 5 old is old."""
    end = 2 * 2**32 + 100
    seen = SnapshotSeen("0/0", end, frozenset({end - 10}))
    assert seen.saw(_unit("0/1", transaction), "0/0") is saw
    assert seen.missed("0/1", transaction) is not saw


@pytest.mark.postgres
def test_a_transaction_that_is_open_is_not_seen_though_later_ones_are(
    postgres_server: PostgresServer, empty_warehouse: Warehouse
) -> None:
    with closing(PostgresHarness(postgres_server)) as bank, psycopg.connect(bank.url) as slow:
        empty_warehouse.add_source("bank", bank.settings())
        catalog = empty_warehouse.catalog
        record = catalog.source("bank")
        with closing(open_recorded(catalog, record)) as source:
            assert isinstance(source, AskableSource)
            slow.execute("UPDATE account SET balance = 99 WHERE id = 1")
            bank.write(Write("account", account(2, "bob", "20.50"), account(2, "bob", "7.00")))
            answer = source.ask([accounts(bank, 1, 2)])
            slow.commit()
            assert Counter(answer.rows[0]) == Counter([account(1, "ann", "10.00"), account(2, "bob", "7.00")])
            later, first = source.read(record.position, 100).units
            assert answer.seen.saw(later, record.position) is True
            assert answer.seen.saw(first, later.position) is False


@pytest.mark.postgres
def test_postgres_writes_nothing_while_it_is_asked_and_keeps_no_snapshot(postgres_server: PostgresServer) -> None:
    with closing(PostgresHarness(postgres_server)) as bank, psycopg.connect(bank.url, autocommit=True) as asking_:
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction), snapshot(asking_):
            asking_.execute("INSERT INTO note VALUES ('no')")
        (state,) = bank.connection.execute(
            "SELECT state FROM pg_stat_activity WHERE pid = %s", (asking_.info.backend_pid,)
        ).fetchone() or ("gone",)
        assert state == "idle"


@pytest.mark.postgres
def test_types_that_postgres_compares_in_its_own_way_are_refused(
    postgres_server: PostgresServer, empty_warehouse: Warehouse
) -> None:
    with closing(PostgresHarness(postgres_server)) as bank:
        bank.connection.execute("CREATE TABLE padded (code CHAR(5)); ALTER TABLE padded REPLICA IDENTITY FULL")
        empty_warehouse.add_source("bank", SourceSettings("postgres", bank.url, (TableSettings("padded", "padded"),)))
        catalog = empty_warehouse.catalog
        with closing(open_recorded(catalog, catalog.source("bank"))) as source:
            assert isinstance(source, AskableSource)
            with pytest.raises(UsageError, match="compares character\\(5\\) in its own way"):
                source.ask([Ask("padded", ("code",), ("code",), frozenset({("ab   ",)}))])


@pytest.mark.postgres
@pytest.mark.parametrize("anew", ["DROP TABLE account", "ALTER TABLE account RENAME TO account_before"])
def test_a_table_that_was_made_anew_is_not_asked(
    postgres_server: PostgresServer, empty_warehouse: Warehouse, anew: LiteralString
) -> None:
    """It has the same name and columns, and the log has none of the rows that it began with."""
    with closing(PostgresHarness(postgres_server)) as bank:
        empty_warehouse.add_source("bank", bank.settings())
        catalog = empty_warehouse.catalog
        with closing(open_recorded(catalog, catalog.source("bank"))) as source:
            assert isinstance(source, AskableSource)
            bank.connection.execute("CREATE TABLE another (LIKE account INCLUDING ALL)")
            bank.connection.execute(anew)
            bank.connection.execute("ALTER TABLE another RENAME TO account")
            with pytest.raises(LostPosition, match="was made anew"):
                source.ask([accounts(bank, 1)])
            with pytest.raises(LostPosition, match="was made anew"), source.stream():
                """It is not begun."""


_STATEMENT = r"(?:statement|execute [^:]*): \s*(.*)"
_ALLOWED = ("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", "SET ", "LOCK TABLE", "SELECT ", "ROLLBACK")


@pytest.mark.postgres
def test_postgres_sees_only_statements_that_read_and_are_bounded(
    postgres_server: PostgresServer, empty_warehouse: Warehouse
) -> None:
    with closing(PostgresHarness(postgres_server)) as bank:
        empty_warehouse.add_source("bank", bank.settings())
        catalog = empty_warehouse.catalog
        bank.connection.execute(f"ALTER DATABASE {bank.database} SET log_statement = 'all'".encode())
        log = postgres_server.data / "log"
        with closing(open_recorded(catalog, catalog.source("bank"))) as source:
            assert isinstance(source, AskableSource)
            begin = log.stat().st_size
            source.ask([accounts(bank, 1, 2, 424242)])
            told = log.read_text()[begin:]
        statements = re.findall(_STATEMENT, told)
        assert [text for text in statements if not text.startswith(_ALLOWED)] == []
        keys = '("id") IN (SELECT * FROM unnest($1::int8[]))'
        by_keys = f'SELECT "id", "owner", "balance" FROM "public"."account" WHERE {keys}'
        assert [text for text in statements if 'FROM "public"."account"' in text] == [by_keys]
        assert any(text.startswith("LOCK TABLE") and "ACCESS SHARE" in text for text in statements)
        assert any("statement_timeout" in text for text in statements)
        # The same for algorithms that compensate by themselves, of which nothing is left there either.
        begin, snapshot = log.stat().st_size, empty_warehouse.snapshot()
        with closing(RawLookup(catalog, empty_warehouse.root / "data")) as lookup:
            account = snapshot.get("account")
            lookup.hold([account])
            lookup.answer([KeyRequest(account, ("id",), frozenset({(1,), (2,), (424242,)}))], snapshot.moment.csn)
        statements = re.findall(_STATEMENT, log.read_text()[begin:])
        assert [text for text in statements if 'FROM "public"."account"' in text] == [by_keys]
        assert not any(text.startswith(("INSERT", "UPDATE", "DELETE", "CREATE")) for text in statements)
        left = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in%'"
        assert bank.connection.execute(left.encode()).fetchone() == (0,)


# MariaDB


@pytest.mark.mariadb
def test_texts_are_found_in_every_character_set_and_others_are_in_no_row(
    mariadb_server: MariadbServer, empty_warehouse: Warehouse
) -> None:
    with closing(MariadbHarness(mariadb_server)) as bank:
        sets = [name for (name,) in bank.execute("SELECT character_set_name FROM information_schema.character_sets")]
        sets = [str(name) for name in sets if is_read_alike("varchar", str(name))]
        for name in sets:
            bank.execute(f"CREATE TABLE in_{name} (word VARCHAR(9) CHARACTER SET {name}, n INT)")
            if name.startswith("utf8"):
                bank.execute(f"INSERT INTO in_{name} VALUES ('aé', 1), ('a€', 2), ('a表', 3), ('a\x81', 4)")
                continue
            for byte in range(1, 128 if name == "ascii" else 256):
                bank.execute(f"INSERT INTO in_{name} VALUES (_{name} X'61{byte:02x}', {byte})")
            # Bytes that are no character.
            bank.execute(f"DELETE FROM in_{name} WHERE CONVERT(CONVERT(word USING utf8mb4) USING {name}) <> word")
        bank.execute("INSERT INTO in_utf8mb4 VALUES ('a🦆', 5)", "COMMIT")
        tables = tuple(TableSettings(f"in_{name}", f"in_{name}") for name in sets)
        empty_warehouse.add_source("bank", SourceSettings("mariadb", bank.url, tables))
        catalog = empty_warehouse.catalog
        with closing(open_recorded(catalog, catalog.source("bank"))) as source:
            assert isinstance(source, AskableSource)
            for name in sets:
                rows = bank.rows(f"in_{name}")
                keys = frozenset({*rows, ("a🦆", 5), ("a表", 3), ("aж🦆", 1)})
                both = Ask(f"in_{name}", ("word", "n"), ("word", "n"), keys)
                word = replace(both, equal=("word",), keys=frozenset((word,) for word, _ in keys))
                nothing = replace(word, keys=frozenset({("表🦆",)}))
                answer = source.ask([both, word, nothing])
                assert [Counter(some) for some in answer.rows] == [rows, rows, Counter()], name


@pytest.mark.postgres
def test_who_asks_twice_and_sees_the_same_does_not_wait_for_the_log_again(
    postgres_server: PostgresServer, empty_warehouse: Warehouse
) -> None:
    """Reading removes dead rows, which is logged and which nobody brings to the disk."""
    with closing(PostgresHarness(postgres_server)) as bank:
        empty_warehouse.add_source("bank", bank.settings())
        bank.connection.execute("UPDATE account SET owner = owner || '!'")
        catalog = empty_warehouse.catalog
        with closing(open_recorded(catalog, catalog.source("bank"))) as source:
            assert isinstance(source, AskableSource)
            seen = [source.ask([accounts(bank, 1, 2)]).seen for _ in range(4)]
            bank.connection.execute("UPDATE account SET owner = owner || '!'")
            after = source.ask([accounts(bank, 1, 2)]).seen
        assert all(isinstance(one, SnapshotSeen) for one in seen)
        by_snapshot: dict[object, set[str]] = {}
        for one in (*seen, after):
            by_snapshot.setdefault((one.end, one.running), set()).add(one.through)  # type: ignore[attr-defined]
        assert all(len(places) == 1 for places in by_snapshot.values())
        assert len(by_snapshot) > 1, "what was committed since is seen"


_BY_KEYS = "SELECT `id`, `owner`, `balance` FROM `account` WHERE (`id`) IN ((1), (2), (424242))"
_READS = ("SET ", "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY", "SHOW ", "SELECT ", "ROLLBACK", "COMMIT")


@pytest.mark.mariadb
def test_mariadb_sees_one_connection_and_only_statements_that_read_and_are_bounded(
    mariadb_server: MariadbServer, empty_warehouse: Warehouse
) -> None:
    with closing(MariadbHarness(mariadb_server)) as bank:
        empty_warehouse.add_source("bank", bank.settings())
        catalog = empty_warehouse.catalog
        bank.execute("SET GLOBAL log_output = 'TABLE'", "TRUNCATE mysql.general_log", "SET GLOBAL general_log = ON")
        try:
            with closing(open_recorded(catalog, catalog.source("bank"))) as source:
                assert isinstance(source, AskableSource)
                asked = [source.ask([accounts(bank, 1, 2, 424242)]) for _ in range(3)]
        finally:
            bank.execute("SET GLOBAL general_log = OFF")
        assert [len(one.rows[0]) for one in asked] == [2, 2, 2]
        own = "thread_id <> CONNECTION_ID() AND command_type"
        log = f"SELECT CONVERT(argument USING utf8mb4) FROM mysql.general_log WHERE {own}"
        assert len(bank.execute(f"{log} = 'Connect'")) == 1
        statements = [str(text) for (text,) in bank.execute(f"{log} = 'Query'")]
        assert [text for text in statements if not text.startswith(_READS)] == []
        rows = [text for text in statements if "FROM `account`" in text]
        assert [" ".join(text.split()) for text in rows] == [_BY_KEYS] * 3
        assert any("max_statement_time" in text for text in statements)
        assert sum(text.startswith("START TRANSACTION") for text in statements) == 3
        idle = "SELECT id FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND command = 'Sleep'"
        database = f"{idle} AND db = '{bank.database}'"
        assert bank.execute(database) == []
