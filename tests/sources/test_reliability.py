"""Failure modes that others met, each with the promise it must keep.

Kept elsewhere: a lost position (test_shared), old rows that are not whole (test_mariadb, test_postgres,
test_debezium), log positions of sixty-four bits (test_postgres), kills between all steps (test_kills).
"""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from rollview.errors import NotFound
from rollview.sources import SourceSettings, TableSettings
from rollview.warehouse import Warehouse
from tests.servers.mariadb import MariadbServer
from tests.servers.postgres import _Programs, running_postgres
from tests.sources.harness import Harness, Write, account, capture, stored
from tests.sources.mariadb_harness import MariadbHarness
from tests.sources.mysql_harness import MysqlHarness
from tests.sources.postgres_harness import PostgresHarness
from tests.sources.sqlite_harness import SqliteHarness

SQL_KINDS = [
    "sqlite",
    *(pytest.param(kind, marks=getattr(pytest.mark, kind)) for kind in ("postgres", "mariadb", "mysql")),
]


@pytest.fixture(params=SQL_KINDS)
def bank(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    if request.param == "sqlite":
        made: Any = SqliteHarness(tmp_path)
    else:
        server = request.getfixturevalue(f"{request.param}_server")
        made = {"postgres": PostgresHarness, "mariadb": MariadbHarness, "mysql": MysqlHarness}[request.param](server)
    with closing(made):
        yield made


def run(bank: Any) -> Callable[[str], Any]:
    return bank.execute if isinstance(bank, MariadbHarness) else lambda text: bank.connection.execute(text)


def settings(bank: Any, *tables: str) -> SourceSettings:
    given = bank.settings()
    return SourceSettings(given.kind, given.address, tuple(TableSettings(table, table) for table in tables))


@pytest.mark.postgres
def test_05_an_older_copy_of_the_server_is_noticed(empty_warehouse: Warehouse, tmp_path: Path) -> None:
    """The data folder is put back to what it was before the last commits that were captured."""
    with running_postgres() as server:
        harness = PostgresHarness(server)
        empty_warehouse.add_source("bank", harness.settings())
        programs = _Programs.find(16, server.data)

        def stop() -> None:
            programs.run("pg_ctl", "-D", server.data, "-m", "fast", "-w", "stop")

        def start() -> None:
            programs.run("pg_ctl", "-w", "-D", server.data, "-l", server.data / "log", "start")

        harness.connection.close()
        stop()
        shutil.copytree(server.data, tmp_path / "old", copy_function=shutil.copy2)
        start()
        with psycopg.connect(harness.url, autocommit=True) as connection:
            connection.execute("INSERT INTO note SELECT 'lost' FROM generate_series(1, 5000)")
        assert capture(empty_warehouse).units == 1
        stop()
        for path in server.data.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        for path in (tmp_path / "old").iterdir():
            (shutil.copytree if path.is_dir() else shutil.copy2)(path, server.data / path.name)
        owner = server.data.stat()
        for path in server.data.rglob("*"):
            shutil.chown(path, owner.st_uid, owner.st_gid)
        start()
        (done,) = empty_warehouse.capture().sources
        assert "cannot be read on" in (done.problem or "")
        assert empty_warehouse.sources()[0].state == "lost_position"
        assert stored(empty_warehouse, "note")[("lost",)] == 5000


def test_09_keys_that_shift_lose_no_row(empty_warehouse: Warehouse, bank: Any) -> None:
    execute = run(bank)
    execute("CREATE TABLE pair (a INT, b INT, v VARCHAR(9), PRIMARY KEY (a, b))")
    if bank.kind == "postgres":
        execute("ALTER TABLE pair REPLICA IDENTITY FULL")
    rows = ", ".join(f"({number}, {number % 7}, 'v{number}')" for number in range(2000))
    execute(f"INSERT INTO pair VALUES {rows}")
    empty_warehouse.add_source("bank", settings(bank, "pair"))
    execute("UPDATE pair SET a = a + 2000, b = b + 1")
    execute("UPDATE pair SET a = a - 2000 WHERE b < 4")
    execute("UPDATE pair SET v = 'same'")
    capture(empty_warehouse)
    assert stored(empty_warehouse, "pair") == bank.rows("pair")
    assert len(stored(empty_warehouse, "pair", 1)) == 2000


def test_10_rows_that_go_and_come_again_keep_their_order(empty_warehouse: Warehouse, bank: Any) -> None:
    empty_warehouse.add_source("bank", bank.settings())
    chance = random.Random(10)
    present = {row[0]: row for row in bank.rows("account")}
    for number in range(250):
        writes = []
        for _ in range(chance.randint(1, 4)):
            key = chance.randint(1, 5)
            new = account(key, chance.choice(["a", None]), f"{chance.randint(0, 2)}.00")
            old = present.pop(key, None)
            if old is None or chance.random() < 0.6:
                present[key] = new
                writes.append(Write("account", old, new))
            else:
                writes.append(Write("account", old))
        bank.write(*writes)
        if number % 60 == 0:
            capture(empty_warehouse)
            assert stored(empty_warehouse, "account") == bank.rows("account")
    capture(empty_warehouse)
    assert stored(empty_warehouse, "account") == bank.rows("account")


@pytest.mark.mariadb
@pytest.mark.parametrize("seed", range(3))
def test_16_a_transaction_that_began_first_and_committed_last(
    empty_warehouse: Warehouse, mariadb_server: MariadbServer, seed: int
) -> None:
    chance = random.Random(seed)
    with closing(MariadbHarness(mariadb_server)) as bank:
        empty_warehouse.add_source("bank", bank.settings())
        others = [mariadb_server.connect(bank.database) for _ in range(3)]
        for place, other in enumerate(others):
            other.cursor().execute("BEGIN")
            other.cursor().execute(f"INSERT INTO note VALUES ('long {place}')")
        chance.shuffle(others)
        for number in range(6):
            bank.write(Write("note", None, (f"short {number}",)))
            if others and chance.random() < 0.5:
                others.pop().commit()
            if chance.random() < 0.5:
                capture(empty_warehouse)
        for other in others:
            other.commit()
        capture(empty_warehouse)
        assert stored(empty_warehouse, "note") == bank.rows("note")


@pytest.mark.mariadb
def test_18_numbers_of_transactions_pass_the_edge_of_thirty_two_bits(
    empty_warehouse: Warehouse, mariadb_server: MariadbServer
) -> None:
    with closing(MariadbHarness(mariadb_server)) as bank:
        empty_warehouse.add_source("bank", bank.settings())
        before = int(str(bank.execute("SELECT @@gtid_binlog_pos")[0][0]).rpartition("-")[2])
        bank.execute(f"SET gtid_seq_no = {max(before + 10, 2**32 - 1)}", "INSERT INTO note VALUES ('at the edge')")
        bank.execute("INSERT INTO note VALUES ('beyond')")
        assert capture(empty_warehouse).units == 2
        bank.execute("INSERT INTO note VALUES ('further')")
        assert capture(empty_warehouse).units == 1
        assert stored(empty_warehouse, "note") == bank.rows("note")
        position = empty_warehouse.catalog.source("bank").position or ""
        assert int(position.rpartition("-")[2]) > 2**32


@pytest.mark.mariadb
def test_20_texts_that_the_source_takes_for_equal_are_all_kept(
    empty_warehouse: Warehouse, mariadb_server: MariadbServer
) -> None:
    with closing(MariadbHarness(mariadb_server)) as bank:
        bank.execute(
            "CREATE TABLE word (w VARCHAR(20) COLLATE utf8mb4_general_ci PRIMARY KEY, n INT)",
            "CREATE TABLE loose (w VARCHAR(20) COLLATE utf8mb4_general_ci)",
            "INSERT INTO word VALUES ('a', 1), ('b', 2)",
            "INSERT INTO loose VALUES ('a'), ('A'), ('a ')",
        )
        given = settings(bank, "word", "loose")
        checked = empty_warehouse.check_source("s", given)
        assert checked.ready
        assert [finding.what for finding in checked.findings if "byte by byte" in finding.what]
        empty_warehouse.add_source("s", given)
        bank.execute("UPDATE word SET w = 'A' WHERE w = 'a'", "REPLACE INTO word VALUES ('B ', 3)")
        bank.execute("DELETE FROM loose WHERE w = 'a' LIMIT 1", "UPDATE loose SET w = 'A  ' WHERE w = 'A' LIMIT 1")
        capture(empty_warehouse)
        for table in ("word", "loose"):
            assert stored(empty_warehouse, table) == bank.rows(table)
        assert len(stored(empty_warehouse, "loose", 1)) == 3


@pytest.mark.mariadb
def test_21_what_is_rolled_back_beside_tables_without_transactions_is_not_seen(
    empty_warehouse: Warehouse, mariadb_server: MariadbServer
) -> None:
    with closing(MariadbHarness(mariadb_server)) as bank:
        bank.execute("CREATE TABLE other (v INT) ENGINE = MyISAM", "CREATE TEMPORARY TABLE passing (v INT)")
        empty_warehouse.add_source("bank", bank.settings())
        mixed = ("INSERT INTO note VALUES ('never')", "INSERT INTO other VALUES (1)", "INSERT INTO passing VALUES (1)")
        bank.execute("BEGIN", *mixed, "ROLLBACK")
        bank.execute("BEGIN", *mixed, "INSERT INTO note VALUES ('kept')", "COMMIT")
        capture(empty_warehouse)
        assert stored(empty_warehouse, "note") == bank.rows("note")
        assert stored(empty_warehouse, "note")[("never",)] == 1


def test_21_a_warehouse_that_is_gone_is_said_so(warehouse: Warehouse, harness: Harness) -> None:
    if harness.kind != "sqlite":
        pytest.skip("the same for every kind")
    root = warehouse.root
    warehouse.close()
    (root / "catalog.db").unlink()
    with pytest.raises(NotFound, match="catalog"):
        Warehouse.open(root)
    shutil.rmtree(root)
    with pytest.raises(NotFound, match="warehouse"):
        Warehouse.open(root)
    assert sqlite3.connect(harness.path).execute("SELECT count(*) FROM account").fetchone() == (3,)  # type: ignore[attr-defined]
