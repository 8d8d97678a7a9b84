"""Transactions over several sources: all parts in one csn, or none (Zhuge et al., *The Strobe Algorithms*)."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import psycopg
import pymysql
import pytest

from rollview.errors import NotFound, UsageError
from rollview.sources import GlobalSettings, SourceSettings, TableSettings
from rollview.warehouse import Warehouse
from tests.servers.mariadb import MariadbServer
from tests.servers.postgres import PostgresServer, running_postgres
from tests.sources.harness import Bag, stored
from tests.sources.mariadb_harness import MariadbHarness
from tests.sources.mysql_harness import MysqlHarness
from tests.sources.postgres_harness import PostgresHarness
from tests.sources.sqlite_harness import SqliteHarness

pytestmark = pytest.mark.postgres

UNKNOWN_XID = 1397
BOTH = GlobalSettings(sources=("pg", "my"))
ANN, BOB = (
    "UPDATE account SET balance = balance - 1 WHERE id = 1",
    "UPDATE account SET balance = balance + 1 WHERE id = 2",
)


@pytest.fixture(scope="module")
def two_phase_server() -> Iterator[PostgresServer]:
    with running_postgres(settings={"max_prepared_transactions": "20"}) as server:
        yield server


@pytest.fixture
def pg(two_phase_server: PostgresServer) -> Iterator[PostgresHarness]:
    with closing(PostgresHarness(two_phase_server)) as harness:
        yield harness
        for (gid,) in harness.connection.execute(
            "SELECT gid FROM pg_prepared_xacts WHERE database = current_database()"
        ).fetchall():
            harness.connection.execute(f"ROLLBACK PREPARED '{gid}'".encode())


@pytest.fixture(params=[pytest.param(kind, marks=getattr(pytest.mark, kind)) for kind in ("mariadb", "mysql")])
def my(request: pytest.FixtureRequest) -> Iterator[MariadbHarness]:
    server: MariadbServer = request.getfixturevalue(f"{request.param}_server")
    with closing(MysqlHarness(server) if request.param == "mysql" else MariadbHarness(server)) as harness:
        yield harness


@pytest.fixture
def warehouse(empty_warehouse: Warehouse, pg: PostgresHarness, my: MariadbHarness) -> Warehouse:
    for name, harness in (("pg", pg), ("my", my)):
        tables = (TableSettings(f"{name}_account", "account"),)
        empty_warehouse.add_source(name, SourceSettings(harness.kind, harness.url, tables, {}, BOTH))
    return empty_warehouse


def prepare_pg(pg: PostgresHarness, gid: str, statement: str = ANN) -> None:
    with psycopg.connect(pg.url, autocommit=True) as connection:
        connection.execute(f"BEGIN; {statement}; PREPARE TRANSACTION '{gid}'".encode())


def prepare_my(my: MariadbHarness, gid: str, statement: str = BOB) -> None:
    with closing(my.server.connect(my.database)) as connection, connection.cursor() as cursor:
        for text in (f"XA START '{gid}','my'", statement, f"XA END '{gid}','my'", f"XA PREPARE '{gid}','my'"):
            cursor.execute(text)


def commit_pg(pg: PostgresHarness, gid: str) -> None:
    pg.connection.execute(f"COMMIT PREPARED '{gid}'".encode())


def commit_my(my: MariadbHarness, gid: str) -> None:
    """The transaction is anybody's once the server has noticed that its connection is gone."""
    for pause in (0.05,) * 100:
        try:
            my.execute(f"XA COMMIT '{gid}','my'")
            return
        except pymysql.MySQLError as error:
            if error.args[0] != UNKNOWN_XID:
                raise
            time.sleep(pause)
    raise AssertionError(f"{gid} is nobody's")


def total(warehouse: Warehouse, csn: int | None = None) -> Decimal:
    return sum(
        (row[2] * count for name in ("pg", "my") for row, count in _money(stored(warehouse, f"{name}_account", csn))),
        Decimal(0),
    )


def _money(bag: Bag) -> list[tuple[tuple[int, str, Decimal], int]]:
    return [(row, count) for row, count in bag.items() if row[2] is not None]  # type: ignore[misc]


def captured(warehouse: Warehouse) -> dict[str, int]:
    done = warehouse.capture().sources
    assert [one.problem for one in done] == [None] * len(done)
    return {one.name: one.units for one in done}


def test_both_parts_become_one_csn(warehouse: Warehouse, pg: PostgresHarness, my: MariadbHarness) -> None:
    prepare_pg(pg, "g1")
    prepare_my(my, "g1")
    assert captured(warehouse) == {"pg": 0, "my": 0}
    commit_pg(pg, "g1")
    pg.connection.execute("INSERT INTO account VALUES (50, 'after', 0)")
    assert captured(warehouse) == {"pg": 0, "my": 0}
    assert [(one.global_id, one.source, one.missing, one.overdue) for one in warehouse.held()] == [
        ("g1", "pg", ("my",), False)
    ]
    my.execute("INSERT INTO account VALUES (51, 'other', 0)")
    assert captured(warehouse) == {"pg": 0, "my": 1}
    commit_my(my, "g1")
    assert captured(warehouse) == {"pg": 2, "my": 1}
    assert warehouse.held() == ()
    entry = next(entry for entry in warehouse.catalog.ledger() if entry.global_id)
    assert (entry.global_id, entry.source, [part.source for part in entry.parts]) == ("g1", "pg", ["my"])
    assert {change.relation for change in entry.changes} == {"pg_account", "my_account"}
    before = total(warehouse, 2)
    assert all(total(warehouse, csn) == before for csn in range(2, warehouse.snapshot().moment.csn + 1))
    assert stored(warehouse, "pg_account") == pg.rows("account")
    assert stored(warehouse, "my_account") == my.rows("account")


def test_a_prepared_transaction_is_seen_when_it_ends(
    warehouse: Warehouse, pg: PostgresHarness, my: MariadbHarness
) -> None:
    """However long it waits, whatever else is committed, and whichever way it ends; each process reads anew."""
    for gid in ("kept", "dropped"):
        prepare_pg(pg, gid, f"INSERT INTO account VALUES ({len(gid)}0, '{gid}', 0)")
        prepare_my(my, gid, f"INSERT INTO account VALUES ({len(gid)}0, '{gid}', 0)")
    for number in range(100, 104):
        for harness in (pg, my):
            text = f"INSERT INTO account VALUES ({number}, 'n', 0)"
            pg.connection.execute(text.encode()) if harness is pg else my.execute(text)
        with Warehouse.open(warehouse.root) as other:
            assert captured(other) == {"pg": 1, "my": 1}
    waiting = {source.name: source for source in warehouse.sources()}
    assert waiting["pg"].oldest_open == "the prepared transaction 'kept'"
    assert "XA transaction" in (waiting["my"].oldest_open or "")
    assert all(source.open_since is not None for source in waiting.values())
    pg.connection.execute("ROLLBACK PREPARED 'dropped'")
    my.execute("XA ROLLBACK 'dropped','my'")
    assert captured(warehouse) == {"pg": 0, "my": 0}
    commit_pg(pg, "kept")
    commit_my(my, "kept")
    assert captured(warehouse) == {"pg": 1, "my": 1}
    assert captured(warehouse) == {"pg": 0, "my": 0}
    assert [source.oldest_open for source in warehouse.sources()] == [None, None]
    assert stored(warehouse, "pg_account") == pg.rows("account")
    assert stored(warehouse, "my_account") == my.rows("account")
    slot = pg.connection.execute(
        "SELECT confirmed_flush_lsn >= pg_current_wal_flush_lsn() - 100000 FROM pg_replication_slots"
    )
    assert slot.fetchone() == (True,)


def test_crossed_commits_are_one_unit(warehouse: Warehouse, pg: PostgresHarness, my: MariadbHarness) -> None:
    for gid, row in (("one", 1), ("two", 2)):
        prepare_pg(pg, gid, f"UPDATE account SET balance = balance - 1 WHERE id = {row}")
        prepare_my(my, gid, f"UPDATE account SET balance = balance + 1 WHERE id = {row}")
    commit_pg(pg, "one")
    commit_pg(pg, "two")
    commit_my(my, "two")
    commit_my(my, "one")
    before = total(warehouse)
    captured(warehouse)
    (entry,) = warehouse.catalog.ledger()[2:]
    assert (entry.global_id, len(entry.parts)) == ("one, two", 3)
    assert total(warehouse) == before


def test_a_part_that_never_comes_is_told_and_decided(
    empty_warehouse: Warehouse, pg: PostgresHarness, my: MariadbHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    impatient = GlobalSettings(sources=("pg", "my"), limit="0 seconds")
    for name, harness in (("pg", pg), ("my", my)):
        tables = (TableSettings(f"{name}_account", "account"),)
        empty_warehouse.add_source(name, SourceSettings(harness.kind, harness.url, tables, {}, impatient))
    prepare_pg(pg, "g")
    commit_pg(pg, "g")
    captured(empty_warehouse)
    (held,) = empty_warehouse.status().held
    assert (held.global_id, held.overdue, held.decision) == ("g", True, None)
    assert held.seconds >= 0
    empty_warehouse.decide("g", "wait")
    assert captured(empty_warehouse) == {"pg": 0, "my": 0}
    assert empty_warehouse.held()[0].decision == "wait"
    empty_warehouse.decide("g", "release")
    assert captured(empty_warehouse) == {"pg": 1, "my": 0}
    assert stored(empty_warehouse, "pg_account") == pg.rows("account")
    prepare_my(my, "g")
    commit_my(my, "g")
    assert captured(empty_warehouse) == {"pg": 0, "my": 1}
    assert stored(empty_warehouse, "my_account") == my.rows("account")
    assert [entry.global_id for entry in empty_warehouse.catalog.ledger()] == [None, None, "g", "g"]
    with pytest.raises(NotFound, match="'g'"):
        empty_warehouse.decide("g", "wait")


def test_a_table_of_global_transactions_serves_every_kind(
    empty_warehouse: Warehouse, pg: PostgresHarness, tmp_path: Path
) -> None:
    """The application says in each part which transaction it belongs to, and how many parts that has."""
    lite = SqliteHarness(tmp_path)
    columns = "(gid varchar(40), parts varchar(40))"
    lite.connection.execute(f"CREATE TABLE part {columns}")
    pg.connection.execute(f"CREATE TABLE part {columns}; ALTER TABLE part REPLICA IDENTITY FULL".encode())
    marked = GlobalSettings("part", "gid", "parts")
    for name, kind, address in (("pg", "postgres", pg.url), ("lite", "sqlite", str(lite.path))):
        tables = (TableSettings(f"{name}_account", "account"), TableSettings(f"{name}_part", "part"))
        empty_warehouse.add_source(name, SourceSettings(kind, address, tables, {}, marked))
    pg.connection.execute(f"BEGIN; {ANN}; INSERT INTO part VALUES ('m1', 'pg,lite'); COMMIT".encode())
    pg.connection.execute(f"BEGIN; {ANN}; INSERT INTO part VALUES ('m2', '2'); COMMIT".encode())
    assert captured(empty_warehouse) == {"pg": 0, "lite": 0}
    assert empty_warehouse.held()[0].missing == ("lite",)
    for gid, parts in (("m1", "pg,lite"), ("m2", "2")):
        lite.connection.execute("BEGIN")
        lite.connection.execute(BOB)
        lite.connection.execute("INSERT INTO part VALUES (?, ?)", (gid, parts))
        lite.connection.execute("COMMIT")
    assert captured(empty_warehouse) == {"pg": 1, "lite": 1}
    assert empty_warehouse.catalog.ledger()[-1].global_id == "m1, m2"
    assert stored(empty_warehouse, "lite_account") == lite.rows("account")
    lite.close()


def test_wrong_settings_are_refused() -> None:
    for wrong in ({}, {"table": "t"}, {"parts": "p"}, {"sources": ("a",), "limit": "soon"}):
        with pytest.raises(UsageError):
            GlobalSettings(**wrong)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="not captured"):
        SourceSettings("sqlite", "x", (TableSettings("t", "t"),), {}, GlobalSettings("m", "id", "parts"))
    settings = SourceSettings("sqlite", "x", (TableSettings("t", "t"),), {}, BOTH)
    assert SourceSettings.from_json(json.loads(json.dumps(settings.to_json()))) == settings
