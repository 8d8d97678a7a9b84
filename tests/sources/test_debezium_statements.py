"""Debezium's records of statements that change tables, among the events or beside them."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from rollview.sources import SourceSettings, TableSettings
from rollview.sources.debezium.records import Statement, UnknownRecordError, parse
from rollview.sources.debezium.statements import told
from rollview.warehouse import Warehouse
from tests.sizes import times
from tests.sources.harness import Bag, capture, new_warehouse, stored, stored_at_each
from tests.sources.test_debezium import Topics, topics
from tests.sources.test_debezium_columns import INT, LONG, SEVEN, TEXT, ids, names

APART, TOGETHER = True, False
__all__ = ["topics"]
_SPELLED: dict[str, dict[str, Any]] = {
    "int32": {"typeName": "INT", "length": None},
    "int64": {"typeName": "BIGINT"},
    "string": {"typeName": "VARCHAR", "length": 20, "scale": None},
    "io.debezium.time.Timestamp": {"typeName": "DATETIME"},
    "io.debezium.time.MicroTimestamp": {"typeName": "DATETIME", "length": 6},
}


@dataclass
class Server:
    """A table of MySQL, and what a connector writes of it: rows, and the statements in the log.

    Columns have a number each, so that one is the same under every name; rows are by those numbers.
    """

    root: Path
    apart: bool = False
    """Whether statements, rows and ends of transactions are in folders of their own."""
    table: str = "t"
    columns: dict[int, tuple[str, dict[str, Any]]] = field(
        default_factory=lambda: {0: ("id", INT), 1: ("a", INT), 2: ("b", TEXT)}
    )
    rows: dict[int, dict[int, Any]] = field(default_factory=dict)
    file: int = 3
    place: int = 100
    number: int = 0

    def settings(self, **options: str) -> SourceSettings:
        table = TableSettings("t", "shop.t", {"id": "int", "a": "int", "b": "string"}, ("id",))
        told = {"before_images": "whole", "new_columns": "take", **options}
        return SourceSettings("debezium", str(self.root), (table,), told)

    def snapshot(self) -> None:
        for place, row in enumerate(self.rows.values(), 1):
            flag = "last" if place == len(self.rows) else "first" if place == 1 else "true"
            self._send("rows", self._event("r", None, row, None, flag))

    def describe(self) -> None:
        """What the connector writes of a table before it copies its rows."""
        self.state(f"DROP TABLE IF EXISTS shop.{self.table}", "DROP", snapshot="true")
        self.state(f"CREATE TABLE {self.table} (…)", "CREATE", snapshot="true")

    def names(self) -> list[str]:
        return [name for name, _ in self.columns.values()]

    def find(self, name: str) -> int:
        return next(number for number, (own, _) in self.columns.items() if own == name)

    def put(self, key: int, **values: Any) -> None:
        before = self.rows.get(key)
        after = {number: values.get(name) for number, (name, _) in self.columns.items()} | {0: key}
        self.rows[key] = after
        self.commit([self._event("c" if before is None else "u", before, after, str(self.number + 1))])

    def delete(self, key: int) -> None:
        self.commit([self._event("d", self.rows.pop(key), None, str(self.number + 1))])

    def commit(self, events: list[dict[str, Any]]) -> None:
        self.number += 1
        for event in events:
            self._send("rows", event)
        counts = [{"data_collection": f"shop.{self.table}", "event_count": len(events)}]
        self._send("ends", {"status": "END", "id": str(self.number), "data_collections": counts})

    def state(self, ddl: str, kind: str = "ALTER", former: str | None = None, **about: Any) -> None:
        """The record of a statement that was done."""
        columns = [
            {"name": name, **_SPELLED[schema.get("name", schema["type"])]} for name, schema in self.columns.values()
        ]
        change = {"type": kind, "id": f'"shop"."{self.table}"', "previousId": former and f'"shop"."{former}"'}
        source = {**self._source(), "snapshot": "false", **about}
        changes = [] if kind == "" else [{**change, "table": None if kind == "DROP" else {"columns": columns}}]
        payload = {"source": source, "ts_ms": 1000, "databaseName": "shop", "schemaName": None, "ddl": ddl}
        self._send("statements", {"schema": {}, "payload": {**payload, "tableChanges": changes}})

    def rename(self, *pairs: tuple[str, str], says: bool = True) -> None:
        called = dict(pairs)
        self.columns = {n: (called.get(name, name), schema) for n, (name, schema) in self.columns.items()}
        clauses = ", ".join(f"RENAME COLUMN {old} TO {new}" for old, new in pairs)
        if says:
            self.state(f"ALTER TABLE {self.table} {clauses}")

    def drop(self, name: str) -> None:
        gone = self.find(name)
        del self.columns[gone]
        for row in self.rows.values():
            del row[gone]
        self.state(f"ALTER TABLE `{self.table}` DROP COLUMN `{name}`")

    def add(self, name: str, schema: dict[str, Any], ddl: str, older: Any = None) -> int:
        number = 100 + self.place
        self.columns[number] = (name, schema)
        for row in self.rows.values():
            row[number] = older
        self.state(f"ALTER TABLE shop.{self.table} ADD {name} {ddl}")
        return number

    def truncate(self) -> None:
        self.rows.clear()
        self.state(f"TRUNCATE TABLE {self.table}", "")

    def bag(self, *names: str) -> Bag:
        numbers = [self.find(name) for name in names]
        return Counter(tuple(row[number] for number in numbers) for row in self.rows.values())

    def _source(self) -> dict[str, Any]:
        self.place += 10
        log = {"file": f"bin.{self.file:06d}", "pos": self.place}
        return {"connector": "mysql", "name": "erp", "db": "shop", "table": self.table, "ts_ms": 1000, **log}

    def _event(self, op: str, before: Any, after: Any, transaction: str | None, snapshot: str = "false") -> Any:
        images = [
            None if row is None else {name: row[number] for number, (name, _) in self.columns.items()}
            for row in (before, after)
        ]
        source = {**self._source(), "snapshot": snapshot}
        payload = {"op": op, "before": images[0], "after": images[1], "source": source, "ts_ms": 1000}
        part = None if transaction is None else {"id": transaction}
        fields = [{"field": name, **schema} for name, schema in self.columns.values()]
        rows = [{"field": side, "type": "struct", "fields": fields} for side in ("before", "after")]
        return {"schema": {"type": "struct", "fields": rows}, "payload": {**payload, "transaction": part}}

    def _send(self, kind: str, record: dict[str, Any]) -> None:
        folder = self.root / kind if self.apart else self.root
        folder.mkdir(exist_ok=True, parents=True)
        with (folder / "events.jsonl").open("a") as file:
            file.write(json.dumps(record) + "\n")


@pytest.fixture(params=[TOGETHER, APART], ids=["together", "apart"])
def server(tmp_path: Path, request: pytest.FixtureRequest) -> Server:
    return begun(tmp_path / "events", request.param)


def begun(root: Path, apart: bool) -> Server:
    made = Server(root, apart, rows={1: {0: 1, 1: 1, 2: "x"}, 2: {0: 2, 1: 2, 2: "y"}})
    made.describe()
    made.snapshot()
    return made


def check(warehouse: Warehouse, server: Server) -> None:
    """What is held is what is there, and what a copy tells."""
    for _ in range(2):
        assert sorted(names(warehouse)) == sorted(server.names())
        assert stored(warehouse, "t") == server.bag(*names(warehouse))
        warehouse.resnapshot("s")


def check_again(warehouse: Warehouse, server: Server) -> None:
    warehouse.resnapshot("s")
    check(warehouse, server)


def test_a_column_whose_rename_is_stated_is_the_same(server: Server, empty_warehouse: Warehouse) -> None:
    """Also one that changes its name with another, and one that is called otherwise twice."""
    empty_warehouse.add_source("s", server.settings())
    before = ids(empty_warehouse)
    server.rename(("a", "amount"))
    server.put(3, amount=3, b="z")
    server.rename(("amount", "t"))
    server.rename(("t", "c"), ("b", "a"))
    server.put(4, c=4, a="w")
    server.put(1, c=7, a="v")
    server.delete(2)
    capture(empty_warehouse)
    after = ids(empty_warehouse)
    assert (after["c"], after["a"]) == (before["a"], before["b"])
    check(empty_warehouse, server)
    assert ids(empty_warehouse) == after


def test_a_copy_is_in_the_columns_of_what_was_followed(server: Server, empty_warehouse: Warehouse) -> None:
    """No row came after the last statement that was followed, and the next one is followed after the copy."""
    empty_warehouse.add_source("s", server.settings())
    before = ids(empty_warehouse)
    server.rename(("a", "c"))
    server.put(3, c=3, b="z")
    server.rename(("c", "d"), ("b", "c"))
    if server.apart:
        server.put(4, d=4, c="w")
    capture(empty_warehouse)
    held = stored(empty_warehouse, "t")
    assert held == server.bag("id", "d", "c")
    empty_warehouse.resnapshot("s")
    server.rename(("d", "a"))
    empty_warehouse.resnapshot("s")
    assert names(empty_warehouse) == ("id", "d", "c")
    assert stored(empty_warehouse, "t") == held
    server.put(5, a=5, c="v")
    capture(empty_warehouse)
    assert ids(empty_warehouse) == {"id": before["id"], "a": before["a"], "c": before["b"]}
    check(empty_warehouse, server)


def test_a_column_that_is_made_anew_between_two_events_is_another(server: Server, empty_warehouse: Warehouse) -> None:
    """Its block looks as before."""
    empty_warehouse.add_source("s", server.settings())
    before = ids(empty_warehouse)
    server.drop("b")
    server.add("b", TEXT, "varchar(20)")
    server.put(3, a=3, b="z")
    capture(empty_warehouse)
    assert ids(empty_warehouse)["b"] != before["b"]
    assert ids(empty_warehouse)["a"] == before["a"]
    check(empty_warehouse, server)


def test_an_added_column_has_the_constant_that_its_statement_gave_it(
    server: Server, empty_warehouse: Warehouse
) -> None:
    empty_warehouse.add_source("s", server.settings())
    server.add("c", SEVEN, "int NOT NULL DEFAULT 7", 7)
    server.add("d", LONG, "int unsigned NULL")
    server.rename(("c", "e"))
    server.put(3, a=3, b="z", e=8, d=1)
    server.delete(1)
    capture(empty_warehouse)
    check(empty_warehouse, server)


@pytest.mark.parametrize("ddl", ["int DEFAULT (RAND() * 10)", "int AS (a + 1)", "datetime DEFAULT NOW()", "blob"])
def test_a_column_of_which_nobody_tells_what_older_rows_have_is_left_out(
    server: Server, empty_warehouse: Warehouse, ddl: str
) -> None:
    """Although its block would look as if they had NULL there."""
    empty_warehouse.add_source("s", server.settings())
    server.add("c", INT, ddl, 5)
    server.put(3, a=3, b="z", c=8)
    capture(empty_warehouse)
    assert names(empty_warehouse) == ("id", "a", "b")
    assert "left out: c" in str(empty_warehouse.sources()[0].alarm)


def test_a_column_that_only_moves_goes_on(server: Server, empty_warehouse: Warehouse) -> None:
    """Without the statement it might have been dropped and added again."""
    empty_warehouse.add_source("s", server.settings())
    before = ids(empty_warehouse)
    server.columns = {0: ("id", INT), 2: ("b", TEXT), 1: ("a", LONG)}
    server.state("ALTER TABLE t MODIFY a bigint AFTER b")
    server.put(3, a=1 << 40, b="z")
    capture(empty_warehouse)
    assert ids(empty_warehouse) == before
    check(empty_warehouse, server)


def test_a_table_that_gets_another_name_is_followed(server: Server, empty_warehouse: Warehouse) -> None:
    empty_warehouse.add_source("s", server.settings())
    server.put(3, a=3, b="z")
    _check_called_otherwise(server, empty_warehouse)


def test_a_name_that_another_table_had_is_doubtful_beside_rows(tmp_path: Path, empty_warehouse: Warehouse) -> None:
    """Rows of the table that was called u are none of ours."""
    server = begun(tmp_path / "events", APART)
    empty_warehouse.add_source("s", server.settings())
    rows, server.rows, server.table = server.rows, {}, "u"
    server.put(8, a=8, b="of another")
    server.state("DROP TABLE u", "DROP")
    server.rows = rows
    server.state("RENAME TABLE t TO u", former="t")
    server.put(3, a=3, b="z")
    problem = str(empty_warehouse.capture().sources[0].problem)
    assert "got another's name" in problem
    assert len(stored(empty_warehouse, "t")) == 2


def test_statements_are_a_topic_of_their_own_in_kafka(
    tmp_path: Path, empty_warehouse: Warehouse, topics: Topics
) -> None:
    server = Server(tmp_path, rows={1: {0: 1, 1: 1, 2: "x"}, 2: {0: 2, 1: 2, 2: "y"}})

    def send(kind: str, record: dict[str, Any]) -> None:
        name = {"rows": f"bank.shop.{server.table}", "ends": "bank.transaction", "statements": "bank"}[kind]
        topics.producer.produce(name, json.dumps(record).encode(), partition=0)
        topics.producer.flush()

    server._send = send  # type: ignore[method-assign]
    server.snapshot()
    server.put(3, a=3, b="z")
    empty_warehouse.add_source("s", replace(server.settings(), address=topics.address))
    before = ids(empty_warehouse)
    server.drop("b")
    server.add("b", TEXT, "varchar(9)")
    server.rename(("a", "c"), ("b", "a"))
    server.put(4, c=4, a="w")
    server.rename(("c", "b"), ("a", "c"))
    server.rename(("b", "a"), ("c", "b"))
    server.put(5, a=4, b="w")
    capture(empty_warehouse)
    assert stored(empty_warehouse, "t") == server.bag(*names(empty_warehouse))
    assert ids(empty_warehouse)["a"] == before["a"]
    assert ids(empty_warehouse)["b"] != before["b"]
    _check_called_otherwise(server, empty_warehouse)


def _check_called_otherwise(server: Server, empty_warehouse: Warehouse) -> None:
    server.rename(("b", "d"))
    server.rename(("d", "b"))
    server.table = "u"
    server.state("RENAME TABLE t TO u", former="t")
    server.put(4, a=4, b="w")
    server.rename(("a", "c"))
    server.put(5, c=4, b="w")
    for _ in range(2):
        capture(empty_warehouse)
    assert sorted(names(empty_warehouse)) == ["b", "c", "id"]
    assert stored(empty_warehouse, "t") == server.bag(*names(empty_warehouse))


def test_a_table_that_is_dropped_waits_until_there_is_one_of_its_name(
    server: Server, empty_warehouse: Warehouse
) -> None:
    empty_warehouse.add_source("s", server.settings())
    server.put(3, a=3, b="z")
    rows = server.rows
    server.rows = {}
    server.state("DROP TABLE `t` /* generated by server */", "DROP")
    if not server.apart:
        capture(empty_warehouse)
        assert empty_warehouse.snapshot().get("t").waits_at is not None
    server.rows = {}
    server.state("CREATE TABLE t (id int, a int, b varchar(9))", "CREATE")
    server.put(9, a=9, b="new")
    assert rows
    for _ in range(4):
        empty_warehouse.capture()
    assert empty_warehouse.snapshot().get("t").waits_at is None
    assert stored(empty_warehouse, "t") == server.bag("id", "a", "b")


def test_a_table_that_is_emptied_has_no_rows(server: Server, empty_warehouse: Warehouse) -> None:
    empty_warehouse.add_source("s", server.settings())
    server.truncate()
    server.put(9, a=9, b="new")
    capture(empty_warehouse)
    check(empty_warehouse, server)


@pytest.mark.parametrize(
    ("spoil", "becomes"),
    [
        (lambda payload: payload.pop("ddl"), "unclear"),
        (lambda payload: payload.update(ddl=""), "unclear"),
        (lambda payload: payload.update(ddl="ALTER TABLE t RENAME COLUMN a TO other"), "unclear"),
        (lambda payload: payload.update(ddl="ALTER TABLE t RENAME COLUMN a TO c, DO SOMETHING"), "unclear"),
        (lambda payload: payload["tableChanges"][0].update(id='"shop"."other"'), "unclear"),
        (lambda payload: payload["tableChanges"][0].update(table=None), "unclear"),
        (lambda payload: payload.update(tableChanges=[]), "unclear"),
        (lambda payload: payload.update(databaseName="other"), "unclear"),
        (lambda payload: payload.update(tableChanges="none"), "unreadable"),
        (lambda payload: payload.update(tableChanges=[{"type": "ALTER", "id": 5, "table": []}]), "unreadable"),
        (lambda payload: payload["source"].update(ts_ms="noon"), "unreadable"),
        (lambda payload: payload.update(source=[]), "unreadable"),
        (lambda payload: payload["source"].update(connector="oracle"), "nothing"),
    ],
)
def test_a_record_that_is_not_understood_is_never_passed_over(tmp_path: Path, spoil: Any, becomes: str) -> None:
    server = begun(tmp_path / "events", APART)
    server.rename(("a", "c"))
    record = json.loads((tmp_path / "events" / "statements" / "events.jsonl").read_text().splitlines()[-1])
    found = parse(json.dumps(record).encode())
    assert isinstance(found, Statement)
    proven = told(found, ("shop.t",), {})
    assert proven is not None
    assert (proven.renamed, proven.unclear) == ((("a", "c"),), None)
    spoil(record["payload"])
    try:
        found = parse(json.dumps(record).encode())
    except UnknownRecordError:
        assert becomes == "unreadable"
        return
    about = told(found, ("shop.t",), {}) if isinstance(found, Statement) else None
    assert ("nothing" if about is None else "unclear" if about.unclear else "followed") == becomes


def test_without_a_record_a_rename_is_a_column_that_goes_and_one_that_comes(
    server: Server, empty_warehouse: Warehouse
) -> None:
    empty_warehouse.add_source("s", server.settings())
    before = ids(empty_warehouse)
    server.rename(("a", "c"), says=False)
    server.put(3, c=3, b="z")
    capture(empty_warehouse)
    assert names(empty_warehouse) == ("id", "b", "c")
    assert ids(empty_warehouse)["c"] not in before.values()
    assert Counter({(1, "x", None): 1, (2, "y", None): 1, (3, "z", 3): 1}) == stored(empty_warehouse, "t")


def test_a_record_that_comes_after_the_rows_is_too_late(tmp_path: Path, empty_warehouse: Warehouse) -> None:
    """Its place is before rows that were taken without it."""
    server = begun(tmp_path / "events", APART)
    empty_warehouse.add_source("s", server.settings())
    server.drop("b")
    server.add("b", TEXT, "varchar(9)")
    statements = tmp_path / "events" / "statements" / "events.jsonl"
    lines = statements.read_text().splitlines(keepends=True)
    statements.write_text("".join(lines[:-2]))
    server.put(3, a=3, b="z")
    capture(empty_warehouse)
    statements.write_text("".join(lines))
    server.put(4, a=3, b="w")
    assert "nobody can tell which rows" in str(empty_warehouse.capture().sources[0].problem)


def test_records_that_are_found_later_are_passed_by_a_copy(tmp_path: Path, empty_warehouse: Warehouse) -> None:
    """The folder or topic of statements was not there when the rows that come after them were copied."""
    server = begun(tmp_path / "events", APART)
    statements = tmp_path / "events" / "statements"
    server.drop("b")
    server.add("b", TEXT, "varchar(9)")
    moved = statements.rename(tmp_path / "elsewhere")
    # The connector has begun anew.
    (tmp_path / "events" / "rows" / "events.jsonl").write_text("")
    server.rows = {3: {0: 3, 1: 3, server.find("b"): "z"}}
    server.snapshot()
    empty_warehouse.add_source("s", server.settings())
    moved.rename(statements)
    server.put(4, a=4, b="w")
    while empty_warehouse.capture().sources[0].problem is None:
        pass
    check_again(empty_warehouse, server)


@pytest.mark.parametrize("apart", [TOGETHER, APART])
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_a_copy_begins_with_the_newest_snapshot(
    tmp_path: Path, empty_warehouse: Warehouse, apart: bool, rows: int
) -> None:
    """What its streams have before is in it already."""
    server = begun(tmp_path / "events", apart)
    server.put(3, a=3, b="z")
    server.rename(("a", "c"))
    server.delete(1)
    server.rows = dict(list({**server.rows, 7: {0: 7, 1: 7, 2: "seven"}}.items())[:rows])
    server.snapshot()
    server.put(4, c=4, b="w")
    server.rename(("c", "a"))
    server.put(5, a=5, b="v")
    empty_warehouse.add_source("s", server.settings())
    check(empty_warehouse, server)


def test_without_blocks_names_are_followed(server: Server, empty_warehouse: Warehouse) -> None:
    """Settings tell the types then."""
    send = server._send
    server._send = lambda kind, record: send(kind, record.get("payload", record))  # type: ignore[method-assign]
    empty_warehouse.add_source("s", server.settings())
    before = ids(empty_warehouse)
    server.rename(("a", "b"), ("b", "a"))
    server.put(3, b=3, a="z")
    server.drop("a")
    server.put(4, b=4)
    capture(empty_warehouse)
    assert ids(empty_warehouse) == {"id": before["id"], "b": before["a"]}
    assert stored(empty_warehouse, "t") == server.bag(*names(empty_warehouse))


@pytest.mark.parametrize("seed", range(times(6, 40)))
def test_every_csn_is_a_state_of_the_table(tmp_path: Path, seed: int) -> None:
    """Random statements between random rows, captured now and then: each column keeps its values under every name."""
    chance = random.Random(seed)
    server = begun(tmp_path / "events", seed % 2 == 0)
    states = [_State.of(server, (0, 1, 2))]
    with new_warehouse(tmp_path / "w") as warehouse:
        warehouse.add_source("s", server.settings())
        for _ in range(16):
            held = states[-1].columns
            if chance.random() < 0.6:
                kept = _alter(chance, server, tuple(held))
                now = None if kept is None else _State.of(server, kept)
            else:
                _write(chance, server)
                now = _State.of(server, tuple(n for n in server.columns if n not in _UNTOLD))
            if now is not None and now.is_another(states[-1]):
                states.append(now)
            if chance.random() < 0.4:
                capture(warehouse)
        server.put(9)
        states.append(_State.of(server, tuple(n for n in server.columns if n not in _UNTOLD)))
        capture(warehouse)
        _check(warehouse, states)
        # A copy may tell a column in all rows that was left out.
        warehouse.resnapshot("s")
        assert stored(warehouse, "t") == server.bag(*names(warehouse))
    _UNTOLD.clear()


_UNTOLD: set[int] = set()


@dataclass
class _State:
    """``columns``: names of those that are held, by their numbers."""

    columns: dict[int, str]
    rows: list[dict[int, Any]]

    def is_another(self, other: _State) -> bool:
        """Whether there is a csn for it after the other."""
        rows = [Counter(tuple(row.get(number) for number in self.columns) for row in one.rows) for one in (self, other)]
        return self.columns != other.columns or rows[0] != rows[1]

    @classmethod
    def of(cls, server: Server, held: tuple[int, ...]) -> _State:
        columns = {number: server.columns[number][0] for number in held if number in server.columns}
        return cls(columns, [dict(row) for row in server.rows.values()])


def _write(chance: random.Random, server: Server) -> None:
    key = chance.randint(1, 5)
    if key in server.rows and chance.random() < 0.3:
        server.delete(key)
        return
    values = {name: _value(chance, schema) for name, schema in server.columns.values()}
    server.put(key, **{name: value for name, value in values.items() if name != "id"})


def _value(chance: random.Random, schema: dict[str, Any]) -> Any:
    if schema["type"] == "string":
        return chance.choice(["p", "q", None])
    return chance.randint(0, 3) if schema["type"] == "int32" else chance.randint(0, 1 << 40)


def _alter(chance: random.Random, server: Server, held: tuple[int, ...]) -> tuple[int, ...] | None:
    """The columns that are held afterwards, if the statement has a csn of its own."""
    others = [name for name in server.names() if name != "id"]
    free = [name for name in "abcdefg" if name not in others]
    match chance.choice(["add", "drop", "rename", "swap", "again", "widen", "truncate"]):
        case "add":
            schema, ddl, older = chance.choice(
                [
                    (INT, "int", None),
                    (SEVEN, "int NOT NULL DEFAULT 7", 7),
                    (TEXT, "varchar(9) DEFAULT 'it''s'", "it's"),
                    (INT, "int DEFAULT (a + 1)", 5),
                ]
            )
            number = server.add(chance.choice(free), schema, ddl, older)
            if older == 5:
                _UNTOLD.add(number)
        case "drop" if others:
            number = server.find(chance.choice(others))
            server.drop(server.columns[number][0])
            return tuple(one for one in held if one != number) if number in held else None
        case "rename" if others:
            number = server.find(chance.choice(others))
            server.rename((server.columns[number][0], chance.choice(free)))
            return held if number in held else None
        case "swap" if len(others) > 1:
            one, two = (server.find(name) for name in chance.sample(others, 2))
            first, second = server.columns[one][0], server.columns[two][0]
            server.rename((first, second), (second, first))
            return held if {one, two} & set(held) else None
        case "again" if others:
            name = chance.choice(others)
            number = server.find(name)
            server.drop(name)
            server.add(name, TEXT, "varchar(9)")
            return tuple(one for one in held if one != number) if number in held else None
        case "widen":
            for number, (name, schema) in server.columns.items():
                if schema == INT and name != "id" and number not in _UNTOLD:
                    server.columns[number] = (name, LONG)
                    server.state(f"ALTER TABLE t MODIFY {name} bigint")
                    return None
        case "truncate":
            server.truncate()
            return held
    return None


def _check(warehouse: Warehouse, states: list[_State]) -> None:
    relation = warehouse.snapshot().get("t")
    csns = range(1, warehouse.snapshot().moment.csn + 1)
    assert len(csns) == len(states)
    known: dict[str, int] = {}
    for csn, rows, state in zip(csns, stored_at_each(warehouse, "t", csns), states, strict=True):
        then = {column.stored: column.name for column in relation.schema_at(csn)}
        assert sorted(then.values()) == sorted(state.columns.values()), csn
        number = {name: number for number, name in state.columns.items()}
        for place, name in then.items():
            assert known.setdefault(place, number[name]) == number[name], csn
        kept = [(place, known[c.stored]) for place, c in enumerate(relation.schema) if c.stored in then]
        seen = Counter(tuple(row[place] for place, _ in kept) for row in rows.elements())
        assert seen == Counter(tuple(row[number] for _, number in kept) for row in state.rows), csn
