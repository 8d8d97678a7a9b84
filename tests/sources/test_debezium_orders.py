"""Debezium's records of statements in the orders and forms in which connectors write them, and what is refused."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from rollview.capture.recorded_source import open_recorded
from rollview.errors import LostPosition, NotFound
from rollview.sources import SourceSettings, TableSettings
from rollview.sources.debezium.records import Statement, TableAfter
from rollview.sources.debezium.statements import TableStatement, told
from rollview.sources.debezium.streams import FolderStreams
from rollview.sources.protocol import Source
from rollview.warehouse import Warehouse
from tests.sources.debezium_harness import TYPES, Connector
from tests.sources.harness import account, capture, stored
from tests.sources.test_debezium_columns import INT, LONG, TEXT, ids, names
from tests.sources.test_debezium_statements import APART, TOGETHER, Server, begun, check

MICRO = {"type": "int64", "name": "io.debezium.time.MicroTimestamp", "optional": True}
MILLI = {"type": "int64", "name": "io.debezium.time.Timestamp", "optional": True}


@pytest.fixture(params=[TOGETHER, APART], ids=["together", "apart"])
def server(tmp_path: Path, request: pytest.FixtureRequest) -> Server:
    return begun(tmp_path / "events", request.param)


def problem(warehouse: Warehouse) -> str:
    """What stops the source, once what comes before it is captured."""
    for _ in range(4):
        (done,) = warehouse.capture().sources
        if done.problem:
            return done.problem
    return ""


def lines(server: Server) -> Path:
    return server.root / ("statements" if server.apart else "") / "events.jsonl"


def restart(server: Server) -> None:
    """Before anything was written."""
    (server.root / ("rows" if server.apart else "") / "events.jsonl").write_text("")


def anew(server: Server) -> None:
    server.drop("b")
    server.add("b", TEXT, "varchar(9)")


def opened(warehouse: Warehouse) -> Source:
    return open_recorded(warehouse.catalog, warehouse.catalog.source("s"))


def held_is_there(warehouse: Warehouse, server: Server) -> bool:
    return stored(warehouse, "t") == server.bag(*names(warehouse))


def test_alter_table_rename_tells_nothing_but_the_new_name(server: Server, empty_warehouse: Warehouse) -> None:
    empty_warehouse.add_source("s", server.settings())
    server.table = "u"
    server.state("ALTER TABLE t RENAME TO u")
    server.put(3, a=3, b="z")
    capture(empty_warehouse)
    capture(empty_warehouse)
    assert held_is_there(empty_warehouse, server)
    assert len(server.rows) == 3
    # What the connector copied has the former name.
    with pytest.raises(LostPosition, match="have the connector copy its tables again"):
        empty_warehouse.resnapshot("s")
    other = replace(server.settings(), tables=(replace(server.settings().tables[0], relation="v", remote="shop.u"),))
    with pytest.raises(LostPosition, match="have the connector copy its tables again"):
        empty_warehouse.add_source("v", other)


@pytest.mark.parametrize("at_once", [True, False])
def test_a_table_whose_name_another_gets_in_the_same_statement_is_not_followed(
    server: Server, empty_warehouse: Warehouse, at_once: bool
) -> None:
    """RENAME TABLE t TO t_old, t_new TO t is a record for each pair, at the same place."""
    empty_warehouse.add_source("s", server.settings())
    server.table = "t_old"
    server.state("RENAME TABLE t TO t_old", former="t")
    if not at_once:
        assert [capture(empty_warehouse).units for _ in range(3)] == [0, 0, 0]
    server.place -= 10
    server.table = "t"
    server.state("RENAME TABLE t_new TO t", former="t_new")
    server.put(11, a=11, b="new")
    assert "has another name since" in problem(empty_warehouse)


def test_a_table_does_not_get_the_name_of_another_that_is_captured(server: Server, empty_warehouse: Warehouse) -> None:
    settings = server.settings()
    other = replace(settings.tables[0], relation="u", remote="shop.u")
    restart(server)
    for table, flag in (("t", "first"), ("t", "last_in_data_collection"), ("u", "last")):
        server.table = table
        key = {"first": 1, "last_in_data_collection": 2, "last": 1}[flag]
        server._send("rows", server._event("r", None, server.rows[key], None, flag))
    empty_warehouse.add_source("s", replace(settings, tables=(*settings.tables, other)))
    server.state("DROP TABLE `u`", "DROP")
    server.state("RENAME TABLE t TO u", former="t")
    server.put(4, a=4, b="w")
    assert "has the name of another that is captured" in problem(empty_warehouse)


@pytest.mark.parametrize("after_a_row", [True, False])
def test_a_statement_in_the_log_of_another_server(
    tmp_path: Path, empty_warehouse: Warehouse, after_a_row: bool
) -> None:
    """The connector goes on at one whose log has smaller numbers."""
    server = begun(tmp_path / "events", APART)
    empty_warehouse.add_source("s", server.settings())
    server.put(3, a=3, b="z")
    capture(empty_warehouse)
    server.file = 2
    if after_a_row:
        server.put(4, a=4, b="w")
    anew(server)
    server.put(5, a=5, b="v")
    if after_a_row:
        capture(empty_warehouse)
        assert held_is_there(empty_warehouse, server)
    else:
        assert "nobody can tell which rows" in problem(empty_warehouse)


def test_a_statement_of_the_former_servers_log_may_come_before(tmp_path: Path, empty_warehouse: Warehouse) -> None:
    server = begun(tmp_path / "events", APART)
    empty_warehouse.add_source("s", server.settings())
    server.put(3, a=3, b="z")
    anew(server)
    server.file = 2
    server.put(4, a=4, b="w")
    assert "nobody can tell which rows" in problem(empty_warehouse)


def test_an_event_of_truncate_needs_no_transaction(server: Server, empty_warehouse: Warehouse) -> None:
    """As MySQL's connector writes it with skipped.operations=none."""
    empty_warehouse.add_source("s", server.settings())
    server.put(3, a=3, b="z")
    capture(empty_warehouse)
    server.rename(("a", "c"))
    server.put(5, c=5, b="v")
    server.rows.clear()
    server._send("rows", server._event("t", None, None, None))
    server.put(4, c=4, b="w")
    capture(empty_warehouse)
    assert "c" in names(empty_warehouse)
    check(empty_warehouse, server)


@pytest.mark.parametrize("ddl", ["DROP DATABASE shop", "drop schema if exists `SHOP`"])
def test_a_database_that_is_dropped_is_a_lost_position(tmp_path: Path, empty_warehouse: Warehouse, ddl: str) -> None:
    server = begun(tmp_path / "events", TOGETHER)
    empty_warehouse.add_source("s", server.settings())
    server.state(ddl, "")
    assert "the database was dropped" in problem(empty_warehouse)


@pytest.mark.parametrize(
    ("ddl", "kind"),
    [
        ("ALTER TABLE t DROP PARTITION p0", "ALTER"),
        ("ALTER TABLE t EXCHANGE PARTITION p0 WITH TABLE u", "ALTER"),
        ("ALTER IGNORE TABLE t ADD UNIQUE (a)", "ALTER"),
        ("ALTER TABLE T DROP COLUMN b, ADD COLUMN b varchar(9)", "ALTER"),
        ("TRUNCATE TABLE t NOWAIT", ""),
        ("TRUNCATE TABLE T", ""),
        ("/*!50000 TRUNCATE TABLE t */", ""),
    ],
)
def test_a_statement_that_is_not_understood_is_a_lost_position(
    tmp_path: Path, empty_warehouse: Warehouse, ddl: str, kind: str
) -> None:
    server = begun(tmp_path / "events", TOGETHER)
    empty_warehouse.add_source("s", server.settings())
    server.state(ddl, kind)
    server.put(3, a=3, b="z")
    assert "table 'shop.t'" in problem(empty_warehouse)


@pytest.mark.parametrize(
    ("ddl", "kind"),
    [
        ("CREATE UNIQUE INDEX i ON t (a)", "ALTER"),
        ("DROP INDEX i ON t", "ALTER"),
        ("ALTER TABLE t ADD INDEX (a), COMMENT 'TRUNCATE t'", "ALTER"),
        ("ALTER TABLE t ADD PARTITION (PARTITION p9 VALUES LESS THAN (9))", "ALTER"),
        ("ALTER TABLE t MODIFY b varchar(20) NOT NULL", "ALTER"),
        ("ANALYZE TABLE t", ""),
        ("TRUNCATE TABLE other NOWAIT", ""),
        ("TRUNCATE TABLE other.t", ""),
        ("DROP DATABASE other", ""),
    ],
)
def test_what_changes_neither_rows_nor_columns_passes(
    tmp_path: Path, empty_warehouse: Warehouse, ddl: str, kind: str
) -> None:
    server = begun(tmp_path / "events", TOGETHER)
    empty_warehouse.add_source("s", server.settings())
    before = ids(empty_warehouse)
    server.state(ddl, kind)
    server.put(3, a=3, b="z")
    capture(empty_warehouse)
    assert ids(empty_warehouse) == before
    check(empty_warehouse, server)


@pytest.mark.parametrize(("ddl", "older"), [("int", None), ("int DEFAULT 5", 5), ("int DEFAULT (a + 1)", "untold")])
def test_columns_in_parentheses(server: Server, empty_warehouse: Warehouse, ddl: str, older: Any) -> None:
    empty_warehouse.add_source("s", server.settings())
    gone = server.find("b")
    del server.columns[gone]
    server.columns |= {98: ("c", INT), 99: ("b", TEXT)}
    for row in server.rows.values():
        row |= {98: 5 if older == "untold" else older, 99: None}
    server.state(f"ALTER TABLE t DROP b, ADD (c {ddl}, b varchar(9))")
    server.put(3, a=3, b="z", c=7)
    capture(empty_warehouse)
    assert held_is_there(empty_warehouse, server)
    assert ("c" in names(empty_warehouse)) == (older != "untold")


@pytest.mark.parametrize(
    ("old", "new", "ddl", "is_the_same"),
    [
        (INT, LONG, "MODIFY a bigint", True),
        (INT, LONG, "MODIFY a int unsigned", False),
        (INT, INT, "MODIFY a mediumint", False),
        (INT, INT, "CHANGE a c int NOT NULL", True),
        (TEXT, TEXT, "MODIFY a varchar(40)", True),
        (TEXT, TEXT, "CHANGE a c varchar(5)", False),
        (MICRO, MILLI, "MODIFY a datetime", False),
        (MILLI, MILLI, "MODIFY a datetime NULL", True),
    ],
)
@pytest.mark.parametrize("is_described", [True, False])
def test_a_type_that_may_change_values_makes_another_column(
    server: Server,
    empty_warehouse: Warehouse,
    old: dict[str, Any],
    new: dict[str, Any],
    ddl: str,
    is_the_same: bool,
    is_described: bool,
) -> None:
    """A server that is not strict logs no row of it. Without a record of the former type nobody knows."""
    server.columns[1] = ("a", old)
    value = "x" if old == TEXT else 1000
    for row in server.rows.values():
        row[1] = value
    lines(server).write_text("")
    restart(server)
    if is_described:
        server.describe()
    server.snapshot()
    type_ = {"int32": "int", "string": "string"}.get(old["type"], "timestamp_ntz")
    settings = server.settings()
    table = replace(settings.tables[0], types={"id": "int", "a": type_, "b": "string"})
    empty_warehouse.add_source("s", replace(settings, tables=(table,)))
    before = ids(empty_warehouse)
    name = "c" if ddl.startswith("CHANGE") else "a"
    server.columns[1] = (name, new)
    server.state(f"ALTER TABLE t {ddl}")
    server.put(3, **{name: value, "b": "z"})
    capture(empty_warehouse)
    after = ids(empty_warehouse)
    assert (before["a"] in after.values()) == (is_the_same and is_described)
    assert (name in after) == (is_the_same and is_described)


def test_a_statement_that_is_written_twice_is_followed_once(server: Server, empty_warehouse: Warehouse) -> None:
    empty_warehouse.add_source("s", server.settings())
    server.put(3, a=3, b="z")
    for between in (False, True):
        server.rename(("a", "b"), ("b", "a"))
        line = lines(server).read_text().splitlines(keepends=True)[-1]
        if between:
            server.put(4, **{name: None for name in server.names() if name != "id"})
            capture(empty_warehouse)
        with lines(server).open("a") as file:
            file.write(line)
        server.put(5, **{name: None for name in server.names() if name != "id"})
        capture(empty_warehouse)
        check(empty_warehouse, server)


def test_a_position_that_is_read_again_knows_what_it_knew(tmp_path: Path, empty_warehouse: Warehouse) -> None:
    server = begun(tmp_path / "events", APART)
    empty_warehouse.add_source("s", server.settings())
    server.put(3, a=3, b="z")
    capture(empty_warehouse)
    server.put(4, a=4, b="w")
    anew(server)
    server.put(5, a=5, b="w")
    with closing(opened(empty_warehouse)) as source:
        position = empty_warehouse.catalog.source("s").position
        first = source.read(position, 100)
        again = source.read(position, 100)
    assert [unit.position for unit in first.units] == [unit.position for unit in again.units] != []
    capture(empty_warehouse)
    assert held_is_there(empty_warehouse, server)


def test_statements_about_other_tables_are_passed_however_many_they_are(
    tmp_path: Path, empty_warehouse: Warehouse
) -> None:
    server = begun(tmp_path / "events", APART)
    empty_warehouse.add_source("s", server.settings())
    server.put(3, a=3, b="z")
    capture(empty_warehouse)
    server.table = "other"
    for _ in range(9):
        server.state("CREATE TABLE other (id int)", "CREATE")
    server.table = "t"
    anew(server)
    server.put(3, a=3, b="z")
    with closing(opened(empty_warehouse)) as source:
        position = empty_warehouse.catalog.source("s").position
        batch = source.read(position, 4)
    assert json.loads(batch.position)["statements"][0] == 2 + 9 + 1
    capture(empty_warehouse)
    assert held_is_there(empty_warehouse, server)


def test_no_row_is_taken_before_a_statement_that_cannot_be_read(tmp_path: Path, empty_warehouse: Warehouse) -> None:
    server = begun(tmp_path / "events", APART)
    empty_warehouse.add_source("s", server.settings())
    with lines(server).open("a") as file:
        file.write('{"broken\n')
    anew(server)
    server.put(3, a=3, b="z")
    assert "cannot be read" in problem(empty_warehouse)
    assert len(stored(empty_warehouse, "t")) == 2


def test_a_copy_reads_statements_after_the_rows(
    tmp_path: Path, empty_warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connector writes meanwhile, and its folder of statements has the first name."""
    server = begun(tmp_path / "events", APART)
    server.put(3, a=3, b="z")
    folders = {"statements": "a", "rows": "b", "ends": "c"}
    for folder, name in folders.items():
        (server.root / folder).rename(server.root / name)
    send = server._send
    server._send = lambda kind, record: send(folders[kind], record)  # type: ignore[method-assign]
    records, busy = FolderStreams.records, []

    def meanwhile(self: FolderStreams, stream: str, after: Any) -> Any:
        if stream == "b" and not busy:
            busy.append(True)
            server.truncate()
            server.put(4, a=4, b="w")
        yield from records(self, stream, after)

    monkeypatch.setattr(FolderStreams, "records", meanwhile)
    empty_warehouse.add_source("s", server.settings())
    server.put(5, a=5, b="v")
    capture(empty_warehouse)
    assert held_is_there(empty_warehouse, server)


def test_rows_in_pieces_beside_others_are_no_copy(server: Server, empty_warehouse: Warehouse) -> None:
    empty_warehouse.add_source("s", server.settings())
    server.put(3, a=3, b="z")
    capture(empty_warehouse)
    for row in server.rows.values():
        server._send("rows", server._event("r", None, row, None, "incremental"))
    assert "copied its tables again" in problem(empty_warehouse)
    with pytest.raises(LostPosition, match="in pieces"):
        empty_warehouse.resnapshot("s")


def test_a_table_that_is_gone_before_it_is_captured_is_not_found(server: Server, empty_warehouse: Warehouse) -> None:
    server.state("DROP TABLE `t`", "DROP")
    server.put(3, a=3, b="z")
    with pytest.raises(NotFound):
        empty_warehouse.add_source("s", server.settings())


@pytest.mark.parametrize("topics", [True, False])
@pytest.mark.parametrize("collections", [True, False])
def test_the_newest_of_two_copies_counts(
    tmp_path: Path, empty_warehouse: Warehouse, topics: bool, collections: bool
) -> None:
    """With the flags of new and of old connectors, which tell where a table begins or not; one may be empty."""
    sent: list[tuple[str, Any]] = []
    connector = Connector(lambda table, record: sent.append((table, record)))
    rows = {"account": [account(1, "ann", "1.00"), account(2, "bob", "2.00")], "note": [("x",), ("y",)]}
    for left in (rows, rows, {"account": rows["account"], "note": []} if topics else rows):
        every = [(table, row, row is told_rows[-1]) for table, told_rows in left.items() for row in told_rows]
        for place, (table, row, is_last) in enumerate(every):
            middle = "true" if not collections else f"{'last' if is_last else 'first'}_in_data_collection"
            flag = "first" if place == 0 else "last" if place == len(every) - 1 else middle
            connector._send(table, connector.envelope(table, "r", None, row, None, flag))
        connector.transaction([("account", "c", None, account(7, "c", "1.00")), ("note", "c", None, ("z",))])
    for table, record in sent:
        folder = tmp_path / "events" / (table if topics else "")
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "events.jsonl").open("a") as file:
            file.write(json.dumps(record) + "\n")
    tables = (
        TableSettings("account", "public.account", TYPES["account"], ("id",)),
        TableSettings("note", "note", TYPES["note"]),
    )
    settings = SourceSettings("debezium", str(tmp_path / "events"), tables, {"before_images": "whole"})
    empty_warehouse.add_source("s", settings)
    assert stored(empty_warehouse, "note") == dict.fromkeys([("z",)] if topics else [("x",), ("y",), ("z",)], 1)
    assert sum(stored(empty_warehouse, "account").values()) == 3


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("CREATE OR REPLACE TABLE t (a int COMMENT 'if not exists')", "is_new"),
        ("CREATE TABLE IF NOT EXISTS t (a int)", "if_gone"),
        ("/* by hand */ CREATE TABLE IF NOT EXISTS t (a int)", "if_gone"),
    ],
)
def test_a_table_is_made_anew_if_there_is_none_only_where_that_is_said(text: str, field: str) -> None:
    after = TableAfter("CREATE", ("shop.t", "t"), (), {"a": "int"})
    found = told(Statement("shop", text, (after,), datetime.now(UTC)), ("shop.t",), {})
    assert isinstance(found, TableStatement)
    assert getattr(found, field)
    assert found.if_gone == (field == "if_gone")
