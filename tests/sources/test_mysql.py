"""What is special about MySQL: its global transaction ids, its settings, and how its log may be shortened."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing

import pytest

from rollview.errors import EnvironmentFault, SourceDown
from rollview.sources import SourceSettings, TableSettings
from rollview.warehouse import Warehouse
from tests.servers.mariadb import MariadbServer
from tests.servers.mysql import MysqlServer
from tests.sources.harness import ACCOUNTS, Write, account, capture, stored
from tests.sources.mariadb_harness import MariadbHarness
from tests.sources.mysql_harness import MysqlHarness

pytestmark = pytest.mark.mysql


@pytest.fixture
def bank(mysql_server: MysqlServer) -> Iterator[MysqlHarness]:
    with closing(MysqlHarness(mysql_server)) as harness:
        yield harness


@pytest.fixture
def warehouse(empty_warehouse: Warehouse, bank: MysqlHarness) -> Warehouse:
    empty_warehouse.add_source("bank", bank.settings())
    return empty_warehouse


def one_table(bank: MysqlHarness, table: str, *columns: str) -> SourceSettings:
    return SourceSettings("mysql", bank.url, (TableSettings(table, table, columns=columns),))


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("binlog_row_metadata = MINIMAL", "SET PERSIST binlog_row_metadata = FULL;"),
        ("binlog_row_image = MINIMAL", "SET PERSIST binlog_row_image = FULL;"),
        ("binlog_format = MIXED", "SET PERSIST binlog_format = ROW;"),
        ("binlog_row_value_options = PARTIAL_JSON", "SET PERSIST binlog_row_value_options = '';"),
        ("binlog_transaction_compression = ON", "SET PERSIST binlog_transaction_compression = OFF;"),
    ],
)
def test_a_setting_is_repaired_by_what_is_told(
    empty_warehouse: Warehouse, bank: MysqlHarness, wrong: str, right: str
) -> None:
    bank.execute(f"SET GLOBAL {wrong}")
    (found,) = empty_warehouse.check_source("s", bank.settings()).findings
    assert (found.repair, found.blocks) == (right, True)
    bank.execute(right)
    assert empty_warehouse.check_source("s", bank.settings()).findings == ()


def test_ids_are_switched_on_by_what_is_told(warehouse: Warehouse, bank: MysqlHarness) -> None:
    for step in ("gtid_mode = ON_PERMISSIVE", "gtid_mode = OFF_PERMISSIVE", "gtid_mode = OFF"):
        bank.execute(f"SET GLOBAL {step}")
    bank.execute("SET GLOBAL enforce_gtid_consistency = OFF", "INSERT INTO note VALUES ('without an id')")
    (found,) = warehouse.check_source("s", bank.settings()).findings
    warehouse.capture()
    assert warehouse.sources()[0].state == "lost_position"
    bank.execute(*(part for part in str(found.repair).split(";") if part.strip()))
    assert warehouse.check_source("s", bank.settings()).findings == ()
    warehouse.resnapshot("bank")
    bank.execute("INSERT INTO note VALUES ('with one')")
    capture(warehouse)
    assert stored(warehouse, "note") == bank.rows("note")


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("binlog_transaction_compression = ON", "compressed"),
        ("gtid_next = 'AUTOMATIC:payroll'", "tag"),
    ],
)
def test_a_session_that_logs_otherwise_is_noticed(
    warehouse: Warehouse, bank: MysqlHarness, setting: str, reason: str
) -> None:
    bank.write(Write("note", None, ("before",)))
    with closing(bank.server.connect(bank.database)) as other, other.cursor() as cursor:
        cursor.execute(f"SET SESSION {setting}")
        cursor.execute("UPDATE account SET balance = 1 WHERE id = 1")
    problems = [str(warehouse.capture().sources[0].problem) for _ in range(2)]
    assert reason in problems[-1]
    assert warehouse.sources()[0].state == "lost_position"
    assert stored(warehouse, "account") == Counter(ACCOUNTS)
    if reason == "tag":
        assert "not understood" in warehouse.check_source("s", bank.settings()).findings[0].what
        bank.execute("RESET BINARY LOGS AND GTIDS")
    warehouse.resnapshot("bank")
    assert stored(warehouse, "account") == bank.rows("account")


def test_parts_of_json_stop_the_source_only_in_its_own_tables(empty_warehouse: Warehouse, bank: MysqlHarness) -> None:
    for table in ("ours", "theirs"):
        bank.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, v int, j json)")
        bank.execute(f"""INSERT INTO {table} VALUES (1, 1, '{{"a": "{"x" * 100}", "b": 1}}')""")
    (found,) = empty_warehouse.check_source("s", one_table(bank, "ours")).findings
    assert "json" in found.what
    empty_warehouse.add_source("s", one_table(bank, "ours", "id", "v"))
    bank.execute("SET binlog_row_value_options = PARTIAL_JSON")
    bank.execute("UPDATE theirs SET v = 2, j = JSON_SET(j, '$.b', 2)", "INSERT INTO ours VALUES (2, 2, '[]')")
    capture(empty_warehouse)
    assert stored(empty_warehouse, "ours") == Counter([(1, 1), (2, 2)])
    bank.execute("UPDATE ours SET v = 3, j = JSON_SET(j, '$.b', 2) WHERE id = 1")
    empty_warehouse.capture()
    assert empty_warehouse.sources()[0].state == "lost_position"
    assert stored(empty_warehouse, "ours") == Counter([(1, 1), (2, 2)])


def test_a_server_that_began_anew_is_noticed(warehouse: Warehouse, bank: MysqlHarness) -> None:
    bank.execute("RESET BINARY LOGS AND GTIDS", "INSERT INTO note VALUES ('after')")
    warehouse.capture()
    assert warehouse.sources()[0].state == "lost_position"
    warehouse.resnapshot("bank")
    bank.execute("INSERT INTO note VALUES ('more')")
    capture(warehouse)
    assert stored(warehouse, "note") == bank.rows("note")


def test_a_log_is_read_from_its_very_beginning(empty_warehouse: Warehouse, bank: MysqlHarness) -> None:
    bank.execute("RESET BINARY LOGS AND GTIDS")
    empty_warehouse.add_source("bank", bank.settings())
    assert empty_warehouse.catalog.source("bank").position == "-"
    bank.execute("INSERT INTO note VALUES ('first')", "FLUSH BINARY LOGS", "INSERT INTO note VALUES ('second')")
    assert capture(empty_warehouse).units == 2
    assert stored(empty_warehouse, "note") == bank.rows("note")


def test_transactions_of_other_servers_have_a_place_too(warehouse: Warehouse, bank: MysqlHarness) -> None:
    """As on a replica: numbers of several servers, and not in their order."""
    other = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
    for number in (7, 3, 5):
        bank.execute(f"SET gtid_next = '{other}:{number}'", f"INSERT INTO note VALUES ('{number}')")
        bank.execute("SET gtid_next = AUTOMATIC", f"INSERT INTO note VALUES ('own {number}')")
        assert capture(warehouse).units == 2
    assert f"{other}:3:5:7" in (warehouse.catalog.source("bank").position or "")
    assert stored(warehouse, "note") == bank.rows("note")


def test_a_table_made_from_a_query_is_no_work_of_ours(warehouse: Warehouse, bank: MysqlHarness) -> None:
    bank.execute("CREATE TABLE copied AS SELECT * FROM note", "INSERT INTO note VALUES ('then')")
    assert capture(warehouse).units == 1
    assert stored(warehouse, "note") == bank.rows("note")


def test_a_vector_is_not_read_past(empty_warehouse: Warehouse, bank: MysqlHarness) -> None:
    bank.execute("CREATE TABLE v (id int, e vector(3), u int unsigned)")
    (found,) = empty_warehouse.check_source("s", one_table(bank, "v", "id", "u")).findings
    assert "does not know" in found.what
    empty_warehouse.add_source("s", bank.settings())
    bank.execute("ALTER TABLE account ADD COLUMN e vector(3) AFTER id", "UPDATE account SET balance = 2 WHERE id = 1")
    empty_warehouse.capture()
    assert empty_warehouse.sources()[0].state == "lost_position"
    assert stored(empty_warehouse, "account") == Counter(ACCOUNTS)


def test_the_copy_waits_for_a_transaction_that_is_under_way(empty_warehouse: Warehouse, bank: MysqlHarness) -> None:
    with closing(bank.server.connect(bank.database)) as other, other.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("INSERT INTO note VALUES ('slow')")
        timer = threading.Timer(1.5, other.commit)
        timer.start()
        empty_warehouse.add_source("bank", bank.settings())
        timer.join()
    assert ("slow",) in stored(empty_warehouse, "note")
    assert capture(empty_warehouse).units == 0


def test_a_copy_that_waits_too_long_is_tried_again_later(
    empty_warehouse: Warehouse, bank: MysqlHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rollview.sources.mysql.source._TRIES", 1)
    with closing(bank.server.connect(bank.database)) as other, other.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("INSERT INTO note VALUES ('slow')")
        with pytest.raises(SourceDown, match="not let go"):
            empty_warehouse.add_source("bank", bank.settings())
        other.rollback()


def test_a_user_with_a_password_and_just_the_rights_that_are_asked_for(
    empty_warehouse: Warehouse, bank: MysqlHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = bank.database
    bank.execute(f"CREATE USER {user} IDENTIFIED BY 'canary-7'", f"GRANT SELECT ON {bank.database}.* TO {user}")
    bank.execute(f"GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {user}")
    monkeypatch.setenv("STOCK_URL", f"mysql://{user}:canary-7@127.0.0.1:{bank.server.port}/{bank.database}")
    given = SourceSettings("mysql", "env:STOCK_URL", bank.settings().tables)
    with pytest.raises(EnvironmentFault, match="may not lock") as refused:
        empty_warehouse.add_source("bank", given)
    assert "canary-7" not in str(refused.value)
    bank.execute(str(refused.value.hint).rstrip(";"))
    empty_warehouse.add_source("bank", given)
    bank.write(Write("account", None, account(9, "new", None)))
    capture(empty_warehouse)
    assert stored(empty_warehouse, "account") == bank.rows("account")
    bank.execute(f"DROP USER {user}")


@pytest.mark.mariadb
def test_one_is_not_taken_for_the_other(
    empty_warehouse: Warehouse, bank: MysqlHarness, mariadb_server: MariadbServer
) -> None:
    with closing(MariadbHarness(mariadb_server)) as other:
        for kind, harness in (("mysql", other), ("mariadb", bank)):
            given = SourceSettings(kind, harness.url, harness.settings().tables)
            (found,) = empty_warehouse.check_source("s", given).findings
            assert f"the kind of the source is {harness.kind}" in found.what
