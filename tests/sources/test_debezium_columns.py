"""Debezium's events whose tables get other columns, told by their schema blocks."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from rollview.errors import UsageError
from rollview.sources import SourceSettings, TableSettings
from rollview.warehouse import Warehouse
from tests.sizes import times
from tests.sources.harness import Bag, capture, new_warehouse, stored, stored_at_each

TAKE = {"new_columns": "take"}
INT = {"type": "int32", "optional": True}
LONG = {"type": "int64", "optional": True}
TEXT = {"type": "string", "optional": True}
SEVEN = {"type": "int32", "optional": False, "default": 7}
DAY = {"type": "int32", "optional": False, "name": "io.debezium.time.Date", "default": 0}
DECIMAL = "org.apache.kafka.connect.data.Decimal"


def decimal(precision: int) -> dict[str, Any]:
    about = {"scale": "0", "connect.decimal.precision": str(precision)}
    return {"type": "bytes", "name": DECIMAL, "optional": True, "parameters": about}


@dataclass
class TableEvents:
    """A table at a source, and what a connector with schemas.enable=true writes of it."""

    root: Path
    columns: dict[str, dict[str, Any]] = field(default_factory=lambda: {"id": INT, "a": INT, "b": TEXT})
    rows: dict[int, dict[str, Any]] = field(default_factory=dict)
    number: int = 100

    def settings(self, types: dict[str, str] | None = None, **options: str) -> SourceSettings:
        declared = {"id": "int", "a": "int", "b": "string"} if types is None else types
        table = TableSettings("t", "public.t", declared, ("id",))
        return SourceSettings("debezium", str(self.root), (table,), {"before_images": "whole", **TAKE, **options})

    def snapshot(self) -> None:
        for place, row in enumerate(self.rows.values()):
            flag = "first" if place == 0 else "last" if place == len(self.rows) - 1 else "true"
            self._send(self._event("r", None, row, None, flag if len(self.rows) > 1 else "last"))

    def again(self) -> None:
        """The connector's files are lost, and it copies its table again."""
        for path in self.root.iterdir():
            path.unlink()
        self.number += 1
        self.snapshot()

    def alter(self, statement: Callable[[dict[str, dict[str, Any]]], None], **older: Any) -> None:
        statement(self.columns)
        self.rows = {
            key: {name: row.get(name, older.get(name)) for name in self.columns} for key, row in self.rows.items()
        }

    def add(self, name: str, schema: dict[str, Any], older: Any = None) -> None:
        self.alter(lambda columns: columns.update({name: schema}), **{name: older})

    def drop(self, name: str) -> None:
        self.alter(lambda columns: columns.pop(name))  # type: ignore[arg-type, return-value]

    def rename(self, old: str, new: str) -> None:
        self.columns = {new if name == old else name: schema for name, schema in self.columns.items()}
        self.rows = {
            key: {new if name == old else name: value for name, value in row.items()} for key, row in self.rows.items()
        }

    def put(self, *rows: dict[str, Any]) -> None:
        self.commit([self.change(row) for row in rows])

    def change(self, row: dict[str, Any]) -> dict[str, Any]:
        before, after = self.rows.get(row["id"]), {name: row.get(name) for name in self.columns}
        self.rows[row["id"]] = after
        return self._event("c" if before is None else "u", before, after, str(self.number + 1))

    def delete(self, key: int) -> None:
        self.commit([self._event("d", self.rows.pop(key), None, str(self.number + 1))])

    def commit(self, events: list[dict[str, Any]]) -> None:
        self.number += 1
        for event in events:
            self._send(event)
        told = [{"data_collection": "public.t", "event_count": len(events)}]
        self._send({"status": "END", "id": str(self.number), "event_count": len(events), "data_collections": told})

    def bag(self, *names: str) -> Bag:
        return Counter(tuple(row[name] for name in names) for row in self.rows.values())

    def _event(self, op: str, before: Any, after: Any, transaction: str | None, snapshot: str = "false") -> Any:
        about = {"db": "shop", "schema": "public", "table": "t", "ts_ms": 1000, "snapshot": snapshot}
        payload = {"op": op, "before": before, "after": after, "source": about, "ts_ms": 1000}
        part = None if transaction is None else {"id": transaction}
        fields = [{"field": name, **schema} for name, schema in self.columns.items()]
        rows = [{"field": side, "type": "struct", "fields": fields} for side in ("before", "after")]
        return {"schema": {"type": "struct", "fields": rows}, "payload": {**payload, "transaction": part}}

    def _send(self, record: dict[str, Any]) -> None:
        with (self.root / f"{self.number:06d}.jsonl").open("a") as file:
            file.write(json.dumps(record) + "\n")


@pytest.fixture
def table(tmp_path: Path) -> TableEvents:
    root = tmp_path / "events"
    root.mkdir()
    made = TableEvents(root, rows={1: {"id": 1, "a": 1, "b": "x"}, 2: {"id": 2, "a": 2, "b": "y"}})
    made.snapshot()
    return made


def names(warehouse: Warehouse) -> tuple[str, ...]:
    return warehouse.snapshot().get("t").schema.names


def ids(warehouse: Warehouse) -> dict[str, int]:
    columns = warehouse.schema_at("t", warehouse.snapshot().moment.csn).columns
    return {one.column: one.id for one in columns}


def test_an_added_column_is_null_in_older_rows(table: TableEvents, empty_warehouse: Warehouse) -> None:
    """The change has the csn of the first rows that show it, and later old rows are whole."""
    empty_warehouse.add_source("s", table.settings())
    csn = empty_warehouse.snapshot().moment.csn
    table.add("d", TEXT)
    table.put({"id": 3, "a": 3, "b": "z", "d": "new"})
    capture(empty_warehouse)
    assert empty_warehouse.snapshot().moment.csn == csn + 1
    assert names(empty_warehouse) == ("id", "a", "b", "d")
    assert stored(empty_warehouse, "t") == table.bag(*names(empty_warehouse))
    table.put({"id": 1, "a": 1, "b": "x", "d": "y"})
    table.delete(2)
    capture(empty_warehouse)
    assert stored(empty_warehouse, "t") == table.bag(*names(empty_warehouse))
    empty_warehouse.resnapshot("s")
    assert stored(empty_warehouse, "t") == table.bag(*names(empty_warehouse))


@pytest.mark.parametrize("schema", [DAY, SEVEN, {**SEVEN, "optional": True}, {"type": "int32", "optional": False}])
def test_a_column_whose_older_values_nobody_tells_waits_for_a_copy(
    table: TableEvents, empty_warehouse: Warehouse, schema: dict[str, Any]
) -> None:
    """A default in a block may stand for an expression at the source: here older rows have something else."""
    empty_warehouse.add_source("s", table.settings())
    table.add("c", schema, 5)
    table.put({"id": 3, "a": 3, "b": "z", "c": 8})
    capture(empty_warehouse)
    assert names(empty_warehouse) == ("id", "a", "b")
    assert stored(empty_warehouse, "t") == table.bag("id", "a", "b")
    alarm = str(empty_warehouse.sources()[0].alarm)
    assert "left out: c" in alarm
    assert "rollview source resnapshot s" in alarm
    empty_warehouse.resnapshot("s")
    assert names(empty_warehouse) == ("id", "a", "b")
    table.again()
    empty_warehouse.capture()
    empty_warehouse.resnapshot("s")
    assert names(empty_warehouse) == ("id", "a", "b", "c")
    table.put({"id": 4, "a": 3, "b": "z", "c": 9})
    capture(empty_warehouse)
    assert len(stored(empty_warehouse, "t")) == 4
    if schema is not DAY:
        assert stored(empty_warehouse, "t") == table.bag("id", "a", "b", "c")
    assert empty_warehouse.sources()[0].alarm is None


def test_a_column_without_a_sure_type_is_left_out(table: TableEvents, empty_warehouse: Warehouse) -> None:
    empty_warehouse.add_source("s", table.settings())
    table.add("c", {"type": "struct", "optional": True})
    table.put({"id": 3, "a": 3, "b": "z", "c": {"x": 1}})
    capture(empty_warehouse)
    assert stored(empty_warehouse, "t") == table.bag("id", "a", "b")


def test_what_was_left_out_from_the_beginning_is_no_new_column(table: TableEvents, empty_warehouse: Warehouse) -> None:
    empty_warehouse.add_source("s", table.settings({"id": "int", "b": "string"}))
    table.put({"id": 3, "a": 3, "b": "z"})
    table.add("c", TEXT)
    table.put({"id": 4, "a": 3, "b": "z", "c": "c"})
    capture(empty_warehouse)
    assert names(empty_warehouse) == ("id", "b", "c")
    assert stored(empty_warehouse, "t") == table.bag("id", "b", "c")


def test_types_that_widen_keep_their_column_and_others_are_left_out(
    table: TableEvents, empty_warehouse: Warehouse
) -> None:
    empty_warehouse.add_source("s", table.settings())
    before = ids(empty_warehouse)
    table.columns["a"] = LONG
    table.put({"id": 3, "a": 1 << 40, "b": "z"})
    capture(empty_warehouse)
    assert ids(empty_warehouse) == before
    assert empty_warehouse.snapshot().get("t").schema.columns[1].type == "bigint"
    assert stored(empty_warehouse, "t") == table.bag("id", "a", "b")
    table.columns["a"] = TEXT
    table.rows = {key: {**row, "a": str(row["a"])} for key, row in table.rows.items()}
    table.put({"id": 4, "a": "four", "b": "z"}, {"id": 1, "a": "one", "b": "x"})
    capture(empty_warehouse)
    assert names(empty_warehouse) == ("id", "b")
    assert stored(empty_warehouse, "t") == table.bag("id", "b")
    table.again()
    assert empty_warehouse.capture().sources[0].problem is not None
    empty_warehouse.resnapshot("s", widen=True)
    assert names(empty_warehouse) == ("id", "b", "a")
    assert ids(empty_warehouse)["a"] != before["a"]
    assert stored(empty_warehouse, "t") == table.bag("id", "b", "a")


def test_a_dropped_column_is_gone_and_its_name_is_another_column_later(
    table: TableEvents, empty_warehouse: Warehouse
) -> None:
    empty_warehouse.add_source("s", table.settings())
    before = ids(empty_warehouse)
    table.drop("a")
    table.put({"id": 3, "b": "z"})
    capture(empty_warehouse)
    assert names(empty_warehouse) == ("id", "b")
    table.add("a", INT)
    table.put({"id": 4, "a": 4, "b": "z"})
    capture(empty_warehouse)
    assert ids(empty_warehouse)["a"] != before["a"]
    for _ in range(2):
        assert stored(empty_warehouse, "t") == table.bag("id", "b", "a")
        empty_warehouse.resnapshot("s")


def test_a_column_that_may_have_been_made_anew_is_left_out(table: TableEvents, empty_warehouse: Warehouse) -> None:
    """Between two events it was dropped and added again: it comes last then."""
    empty_warehouse.add_source("s", table.settings())
    table.drop("a")
    table.add("a", INT)
    table.put({"id": 3, "a": 3, "b": "z"})
    capture(empty_warehouse)
    assert names(empty_warehouse) == ("id", "b")
    assert stored(empty_warehouse, "t") == table.bag("id", "b")


def test_rows_of_one_transaction_before_and_after_a_change(table: TableEvents, empty_warehouse: Warehouse) -> None:
    empty_warehouse.add_source("s", table.settings())
    first = table.change({"id": 3, "a": 3, "b": "z"})
    table.add("c", TEXT)
    table.drop("b")
    table.commit([first, table.change({"id": 4, "a": 4, "c": "four"})])
    capture(empty_warehouse)
    assert names(empty_warehouse) == ("id", "a", "c")
    assert stored(empty_warehouse, "t") == table.bag("id", "a", "c")


def test_a_rename_is_followed_only_if_it_was_said(table: TableEvents, empty_warehouse: Warehouse) -> None:
    empty_warehouse.add_source("s", table.settings())
    before = ids(empty_warehouse)
    empty_warehouse.say_rename("t", "a", "amount")
    table.put({"id": 3, "a": 3, "b": "z"})
    capture(empty_warehouse)
    assert names(empty_warehouse) == ("id", "a", "b")
    table.rename("a", "amount")
    table.rename("b", "text")
    table.put({"id": 4, "amount": 4, "text": "w"})
    capture(empty_warehouse)
    assert names(empty_warehouse) == ("id", "amount", "text")
    after = ids(empty_warehouse)
    assert after["amount"] == before["a"]
    assert after["text"] not in before.values()
    seen = Counter((row["id"], row["amount"]) for row in table.rows.values())
    assert Counter(row[:2] for row in stored(empty_warehouse, "t").elements()) == seen
    empty_warehouse.resnapshot("s")
    assert ids(empty_warehouse) == after
    assert Counter(row[:2] for row in stored(empty_warehouse, "t").elements()) == seen


def test_a_copy_that_the_connector_makes_again_follows_as_well(table: TableEvents, empty_warehouse: Warehouse) -> None:
    empty_warehouse.add_source("s", table.settings())
    before = ids(empty_warehouse)
    empty_warehouse.say_rename("t", "a", "amount")
    table.rename("a", "amount")
    table.columns["amount"] = LONG
    table.drop("b")
    table.add("c", TEXT, "told by the copy")
    table.put({"id": 3, "amount": 1 << 40, "c": "c"})
    table.again()
    assert empty_warehouse.capture().sources[0].problem is not None
    empty_warehouse.resnapshot("s")
    assert names(empty_warehouse) == ("id", "amount", "c")
    assert ids(empty_warehouse)["amount"] == before["a"]
    assert stored(empty_warehouse, "t") == table.bag("id", "amount", "c")
    table.put({"id": 4, "amount": 4, "c": "d"})
    capture(empty_warehouse)
    assert stored(empty_warehouse, "t") == table.bag("id", "amount", "c")


@pytest.mark.parametrize("option", ["ignore", "stop"])
def test_what_the_option_says_becomes_of_new_columns(
    table: TableEvents, empty_warehouse: Warehouse, option: str
) -> None:
    empty_warehouse.add_source("s", table.settings(new_columns=option))
    table.add("c", TEXT)
    table.put({"id": 3, "a": 3, "b": "z", "c": "c"})
    problem = empty_warehouse.capture().sources[0].problem
    assert (problem is None) == (option == "ignore")
    assert empty_warehouse.sources()[0].alarm is None
    if option == "stop":
        with pytest.raises(UsageError):
            empty_warehouse.say_rename("t", "a", "amount")
        return
    assert names(empty_warehouse) == ("id", "a", "b")
    assert stored(empty_warehouse, "t") == table.bag("id", "a", "b")


def test_schema_change_records_are_passed_over(table: TableEvents, empty_warehouse: Warehouse) -> None:
    empty_warehouse.add_source("s", table.settings())
    table._send(
        {"source": {"db": "shop"}, "databaseName": "shop", "ddl": "ALTER TABLE t ADD c text", "tableChanges": []}
    )
    table.add("c", TEXT)
    table.put({"id": 3, "a": 3, "b": "z", "c": "c"})
    capture(empty_warehouse)
    assert stored(empty_warehouse, "t") == table.bag("id", "a", "b", "c")


@pytest.mark.parametrize("seed", range(times(4, 20)))
def test_every_csn_is_a_state_of_the_table(tmp_path: Path, table: TableEvents, seed: int) -> None:
    """Random columns come and go between random rows, captured now and then; a copy made again says the same."""
    chance = random.Random(seed)
    table.add("n", INT)
    table.again()
    states = [dict(table.rows)]

    def write(number: int) -> None:
        key = chance.randint(1, 5)
        if key in table.rows and chance.random() < 0.3:
            table.delete(key)
        else:
            others = {name: _value(chance, schema) for name, schema in table.columns.items()}
            table.put({**others, "id": key, "n": number})
        states.append(dict(table.rows))

    with new_warehouse(tmp_path / "w") as warehouse:
        warehouse.add_source("s", table.settings({"id": "int", "a": "int", "b": "string", "n": "int"}))
        for number in range(12):
            _alter(chance, table)
            write(number)
            if chance.random() < 0.5:
                capture(warehouse)
        capture(warehouse)
        _check(warehouse, states, {name for name, schema in table.columns.items() if "default" in schema})
        held = stored(warehouse, "t")
        warehouse.resnapshot("s")
        assert stored(warehouse, "t") == held


def _value(chance: random.Random, schema: dict[str, Any]) -> Any:
    return chance.choice(["p", "q", None]) if schema["type"] == "string" else chance.randint(0, 3)


def _alter(chance: random.Random, table: TableEvents) -> None:
    others = [name for name in table.columns if name not in ("id", "n")]
    match chance.choice(["add", "drop", "widen", "nothing"]):
        case "add":
            name = chance.choice([one for one in "abcdefgh" if one not in others])
            schema, older = chance.choice([(INT, None), (SEVEN, 5)])
            table.add(name, schema, older)
        case "drop" if others:
            table.drop(chance.choice(others))
        case "widen" if others:
            name = chance.choice(others)
            if table.columns[name]["type"] == "int32":
                table.columns = {**table.columns, name: {**table.columns[name], "type": "int64"}}


def _check(warehouse: Warehouse, states: list[dict[int, dict[str, Any]]], untold: set[str]) -> None:
    """Columns that a row's csn had and the newest has, by what they are stored as; ``untold`` ones are not taken."""
    relation = warehouse.snapshot().get("t")
    csns = range(1, warehouse.snapshot().moment.csn + 1)
    present = next(iter(states[-1].values()), dict.fromkeys(relation.schema.names))
    assert set(relation.schema.names) == set(present) - untold
    assert len(csns) == len(states)
    for csn, rows, state in zip(csns, stored_at_each(warehouse, "t", csns), states, strict=True):
        then = {c.stored: c.name for c in relation.schema_at(csn)}
        kept = [(place, then[c.stored]) for place, c in enumerate(relation.schema) if c.stored in then]
        seen = Counter(tuple(row[place] for place, _ in kept) for row in rows.elements())
        assert seen == Counter(tuple(row[name] for _, name in kept) for row in state.values()), csn
