"""What is special about MariaDB and MySQL: their types, and what a session may do to the log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from rollview.sources import SourceSettings, TableSettings
from rollview.warehouse import Warehouse
from tests.servers.mariadb import MariadbServer
from tests.sources.harness import ACCOUNTS, Write, capture, stored
from tests.sources.mariadb_harness import MariadbHarness
from tests.sources.mysql_harness import MysqlHarness


@pytest.fixture(params=[pytest.param(kind, marks=getattr(pytest.mark, kind)) for kind in ("mariadb", "mysql")])
def bank(request: pytest.FixtureRequest) -> Iterator[MariadbHarness]:
    server: MariadbServer = request.getfixturevalue(f"{request.param}_server")
    with closing(MysqlHarness(server) if request.param == "mysql" else MariadbHarness(server)) as harness:
        yield harness


@pytest.fixture
def warehouse(empty_warehouse: Warehouse, bank: MariadbHarness) -> Warehouse:
    empty_warehouse.add_source("bank", bank.settings())
    return empty_warehouse


def settings(bank: MariadbHarness, *tables: str) -> SourceSettings:
    return SourceSettings(bank.kind, bank.url, tuple(TableSettings(table, table) for table in tables))


TYPES: dict[str, tuple[str, str, Any]] = {
    "tinyint": ("tinyint", "-128", -128),
    "tinyint unsigned": ("smallint", "255", 255),
    "smallint unsigned": ("int", "65535", 65535),
    "mediumint": ("int", "-8388608", -8388608),
    "int unsigned": ("bigint", "4294967295", 4294967295),
    "bigint": ("bigint", "-9223372036854775808", -(2**63)),
    "bigint unsigned": ("decimal(20,0)", "18446744073709551615", Decimal(2**64 - 1)),
    "decimal(12,2)": ("decimal(12,2)", "-1234567890.10", Decimal("-1234567890.10")),
    "decimal(38,10)": ("decimal(38,10)", "0.0000000001", Decimal("0.0000000001")),
    "float": ("float", "1.1", 1.100000023841858),
    "double": ("double", "0.1", 0.1),
    "varchar(20)": ("string", "'zoë 表 🦆'", "zoë 表 🦆"),
    "varchar(21) character set latin1": ("string", "'zoë'", "zoë"),
    "char(5)": ("string", "'ab '", "ab"),
    "text": ("string", "''", ""),
    "enum('sad','glad')": ("string", "'glad'", "glad"),
    "binary(4)": ("binary", "x'00ff'", b"\x00\xff\x00\x00"),
    "varbinary(9)": ("binary", "x'ff00'", b"\xff\x00"),
    "blob": ("binary", "x'80'", b"\x80"),
    "date": ("date", "'2026-02-28'", date(2026, 2, 28)),
    "datetime(6)": ("timestamp_ntz", "'2026-03-29 02:30:00.123456'", datetime(2026, 3, 29, 2, 30, 0, 123456)),
    "datetime": ("timestamp_ntz", "'1000-01-01 00:00:00'", datetime(1000, 1, 1)),
    "timestamp(3) null": ("timestamp", "'2026-10-25 00:30:00.5'", datetime(2026, 10, 25, 0, 30, 0, 500000, tzinfo=UTC)),
    "time": ("string", "'-12:34:56'", "-12:34:56"),
    "year": ("int", "2026", 2026),
}


def test_every_type_comes_as_it_is_by_copy_and_by_log(empty_warehouse: Warehouse, bank: MariadbHarness) -> None:
    columns = ", ".join(f"c{place} {type_}" for place, type_ in enumerate(TYPES))
    bank.execute(f"CREATE TABLE t (id int PRIMARY KEY, {columns})", "SET time_zone = '+00:00'")
    values = ", ".join(text for _, text, _ in TYPES.values())
    bank.execute(f"INSERT INTO t VALUES (1, {values})", "INSERT INTO t (id) VALUES (2)")
    empty_warehouse.add_source("s", settings(bank, "t"))
    schema = empty_warehouse.snapshot().get("t").schema
    assert [column.type for column in schema][1:] == [type_ for type_, _, _ in TYPES.values()]
    bank.execute(f"INSERT INTO t VALUES (3, {values})", "INSERT INTO t (id) VALUES (4)")
    capture(empty_warehouse)
    expected = tuple(value for _, _, value in TYPES.values())
    nothing = (None,) * len(TYPES)
    rows = stored(empty_warehouse, "t")
    assert rows == Counter([(1, *expected), (2, *nothing), (3, *expected), (4, *nothing)])
    bank.execute("UPDATE t SET id = id + 10", "DELETE FROM t WHERE id < 13")
    capture(empty_warehouse)
    assert stored(empty_warehouse, "t") == Counter([(13, *expected), (14, *nothing)])


def test_a_date_that_is_none_stops_the_source(empty_warehouse: Warehouse, bank: MariadbHarness) -> None:
    bank.execute("CREATE TABLE t (d date)", "SET sql_mode = ''")
    empty_warehouse.add_source("s", settings(bank, "t"))
    bank.execute("INSERT INTO t VALUES ('0000-00-00')")
    (done,) = empty_warehouse.capture().sources
    assert "column 'd'" in (done.problem or "")
    assert empty_warehouse.sources()[0].state == "bad_value"
    assert stored(empty_warehouse, "t") == Counter()


@pytest.mark.parametrize("setting", ["binlog_row_image = MINIMAL", "binlog_format = STATEMENT"])
def test_a_session_that_logs_less_is_noticed(warehouse: Warehouse, bank: MariadbHarness, setting: str) -> None:
    bank.write(Write("note", None, ("before",)))
    bank.execute(f"SET SESSION {setting}", "UPDATE account SET balance = 1 WHERE id = 1")
    warehouse.capture()
    (done,) = warehouse.capture().sources
    assert done.problem is not None
    assert warehouse.sources()[0].state == "lost_position"
    assert stored(warehouse, "account") == Counter(ACCOUNTS)
    assert stored(warehouse, "note")[("before",)] == 1
    warehouse.resnapshot("bank")
    assert stored(warehouse, "account") == bank.rows("account")


def test_a_compressed_log_is_noticed(warehouse: Warehouse, bank: MariadbHarness) -> None:
    if bank.kind == "mysql":
        pytest.skip("compresses whole transactions, as sessions ask for (test_mysql)")
    bank.execute("SET GLOBAL log_bin_compress = ON, log_bin_compress_min_len = 10")
    try:
        (found,) = warehouse.check_source("s", bank.settings()).findings
        bank.execute(f"INSERT INTO note VALUES ('{'x' * 199}')")
    finally:
        bank.execute("SET GLOBAL log_bin_compress_min_len = 256", str(found.repair))
    warehouse.capture()
    assert warehouse.sources()[0].state == "lost_position"
    warehouse.resnapshot("bank")
    assert stored(warehouse, "note") == bank.rows("note")


def test_unrelated_work_moves_the_position_only(warehouse: Warehouse, bank: MariadbHarness) -> None:
    bank.execute("CREATE TABLE other (v int)", "INSERT INTO other VALUES (1), (2)", "TRUNCATE TABLE other")
    position = warehouse.catalog.source("bank").position
    assert capture(warehouse).units == 0
    assert warehouse.catalog.source("bank").position != position
    assert warehouse.snapshot().moment.csn == 1


@pytest.mark.parametrize("remark", ["/* ApplicationName=x */ ", "-- at night\n", "# at night\n"])
def test_a_remark_before_a_statement_hides_nothing(warehouse: Warehouse, bank: MariadbHarness, remark: str) -> None:
    bank.execute(f"{remark}TRUNCATE TABLE note", "INSERT INTO note VALUES ('a')")
    capture(warehouse)
    assert stored(warehouse, "note") == bank.rows("note") == Counter({("a",): 1})
    bank.execute(f"{remark}RENAME TABLES note TO notes", "INSERT INTO notes VALUES ('b')")
    if bank.kind == "mariadb":
        bank.execute(f"{remark}SET STATEMENT lock_wait_timeout = 9 FOR TRUNCATE TABLE account")
    capture(warehouse)
    assert stored(warehouse, "note") == bank.rows("notes")
    assert stored(warehouse, "account") == bank.rows("account")


def test_rolled_back_work_is_not_seen(warehouse: Warehouse, bank: MariadbHarness) -> None:
    bank.execute("BEGIN", "INSERT INTO note VALUES ('never')", "ROLLBACK")
    bank.execute("BEGIN", "INSERT INTO note VALUES ('a')", "SAVEPOINT s", "INSERT INTO note VALUES ('b')")
    bank.execute("ROLLBACK TO s", "INSERT INTO note VALUES ('c')", "COMMIT")
    assert capture(warehouse).units == 1
    assert stored(warehouse, "note") == bank.rows("note")


def test_changes_of_the_layout(warehouse: Warehouse, bank: MariadbHarness) -> None:
    bank.execute("ALTER TABLE account ADD COLUMN extra int FIRST", "INSERT INTO account VALUES (9, 10, 'x', 1)")
    capture(warehouse)
    assert (10, "x", Decimal("1.00"), 9) in stored(warehouse, "account")
    bank.execute("ALTER TABLE account CHANGE owner holder varchar(100)", "INSERT INTO account VALUES (9, 11, 'y', 1)")
    assert "owner is holder now" in capture(warehouse).notes[0]
    columns = "SELECT id, holder, balance, extra FROM account"
    assert stored(warehouse, "account") == Counter(bank.execute(columns))
    bank.execute("ALTER TABLE account DROP PRIMARY KEY", "INSERT INTO account VALUES (9, 11, 'y', 1)")
    capture(warehouse)
    assert warehouse.snapshot().get("account").constraints.primary_key == ()
    bank.execute("ALTER TABLE account CONVERT TO CHARACTER SET latin1")
    warehouse.capture()
    assert warehouse.sources()[0].state == "lost_position"
    warehouse.resnapshot("bank")
    assert stored(warehouse, "account") == Counter(bank.execute(columns))


def test_a_table_that_is_put_in_the_place_of_another_goes_on(warehouse: Warehouse, bank: MariadbHarness) -> None:
    """As tools do that change the columns of a large table beside its writers."""
    before = warehouse.snapshot().get("account")
    bank.execute(
        "CREATE TABLE _account_new (id INT PRIMARY KEY, owner VARCHAR(100), balance DECIMAL(12,2), extra INT)",
        "INSERT INTO _account_new (id, owner, balance) SELECT id, owner, balance FROM account",
        "RENAME TABLE account TO _account_old, _account_new TO account",
        "INSERT INTO account VALUES (10, 'x', 1, 6)",
        "DROP TABLE _account_old",
    )
    assert "copied again" in capture(warehouse).notes[0]
    assert stored(warehouse, "account") == bank.rows("account")
    now = warehouse.snapshot().get("account")
    assert (now.schema.columns[:3], now.schema.names) == (before.schema.columns, ("id", "owner", "balance", "extra"))
    assert stored(warehouse, "account", 1) == Counter((*row, None) for row in ACCOUNTS)
    bank.execute("DELETE FROM account WHERE id < 3")
    capture(warehouse)
    assert stored(warehouse, "account") == bank.rows("account")


@pytest.mark.parametrize("type_", ["varchar(9) character set utf16", "enum('zoë') character set latin1"])
def test_a_text_that_the_log_tells_wrongly_is_not_taken(
    empty_warehouse: Warehouse, bank: MariadbHarness, type_: str
) -> None:
    bank.execute(f"CREATE TABLE t (id int, c {type_})", "CREATE TABLE later (id int, c varchar(9))")
    (found,) = empty_warehouse.check_source("s", settings(bank, "t")).findings
    assert "in character set" in found.what
    empty_warehouse.add_source("s", settings(bank, "later"))
    bank.execute(f"ALTER TABLE later MODIFY c {type_}", "INSERT INTO later VALUES (1, 'zoë')")
    capture(empty_warehouse)
    assert empty_warehouse.snapshot().get("later").schema.names == ("id",)


def test_rows_that_a_foreign_key_changes_are_seen_or_the_table_is_not_taken(
    empty_warehouse: Warehouse, bank: MariadbHarness
) -> None:
    bank.execute("CREATE TABLE p (id int PRIMARY KEY)", "INSERT INTO p VALUES (1), (2)")
    bank.execute("CREATE TABLE c (p int, CONSTRAINT own FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE)")
    bank.execute("INSERT INTO c VALUES (1), (2)")
    findings = empty_warehouse.check_source("s", settings(bank, "c")).findings
    if findings:
        assert "ON DELETE CASCADE" in findings[0].what
        bank.execute(str(findings[0].repair).rstrip(";"))
    empty_warehouse.add_source("s", settings(bank, "c"))
    bank.execute("DELETE FROM p WHERE id = 1")
    capture(empty_warehouse)
    assert stored(empty_warehouse, "c") == bank.rows("c")
    bank.execute("DELETE FROM c WHERE p NOT IN (SELECT id FROM p)")
    bank.execute("ALTER TABLE c ADD CONSTRAINT more FOREIGN KEY (p) REFERENCES p (id) ON UPDATE SET NULL")
    empty_warehouse.capture()
    assert empty_warehouse.sources()[0].state == "lost_position"


def test_other_ways_to_change_all_rows_are_noticed(warehouse: Warehouse, bank: MariadbHarness) -> None:
    bank.execute("CREATE TABLE other (text VARCHAR(200) COLLATE utf8mb4_bin) PARTITION BY KEY (text)")
    warehouse.capture()
    assert warehouse.sources()[0].state == "active"
    bank.execute("ALTER TABLE other EXCHANGE PARTITION p0 WITH TABLE note")
    warehouse.capture()
    assert warehouse.sources()[0].state == "lost_position"
    warehouse.resnapshot("bank")
    assert stored(warehouse, "note") == bank.rows("note") == Counter()


def test_what_is_missing_is_told(empty_warehouse: Warehouse, bank: MariadbHarness) -> None:
    bank.execute("CREATE TABLE t (b bit(3), d decimal(65,0)) ENGINE = MyISAM")
    checked = empty_warehouse.check_source("s", settings(bank, "t", "none"))
    said = " ".join(finding.what for finding in checked.findings)
    assert all(part in said for part in ("MyISAM", "'b'", "'d'", "'none'"))
    assert checked.findings[0].repair == "ALTER TABLE `t` ENGINE = InnoDB;"


@pytest.mark.parametrize("text", ["TRUNCATE TABLE note", "ALTER TABLE account RENAME COLUMN owner TO x"])
def test_a_statement_that_only_some_versions_run_is_not_guessed(
    warehouse: Warehouse, bank: MariadbHarness, text: str
) -> None:
    bank.execute("/*!40000 ALTER TABLE note DISABLE KEYS */", "INSERT INTO note VALUES ('a')")
    capture(warehouse)
    assert stored(warehouse, "note") == bank.rows("note")
    bank.execute(f"/*!50000 {text} */")
    warehouse.capture()
    assert warehouse.sources()[0].state == "lost_position"
    warehouse.resnapshot("bank")
    assert stored(warehouse, "note") == bank.rows("note")
