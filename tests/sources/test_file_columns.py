"""Folders whose files get other columns: known by name, taken, left out or refused as the option says."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rollview.errors import AlreadyExists, NotFound, UsageError
from rollview.sources import SourceSettings
from rollview.warehouse import Warehouse
from tests.sizes import times
from tests.sources.harness import capture, new_warehouse, stored, stored_at_each
from tests.sources.test_files import inbox, put, settings

__all__ = ["inbox"]


def by_option(inbox: Path, format_: str, option: str, types: dict[str, str] | None = None) -> SourceSettings:
    made = settings(inbox, format_, types)
    return replace(made, options={**made.options, "new_columns": option, "settle_seconds": "0"})


def write(path: Path, rows: list[dict[str, Any]], schema: pa.Schema | None = None) -> None:
    pq.write_table(pa.Table.from_pylist(rows, schema), path)


def test_a_new_column_is_taken_as_text_from_csv(inbox: Path, empty_warehouse: Warehouse) -> None:
    put(inbox / "a.csv", "id,state,amount\n1,CA,1\n")
    empty_warehouse.add_source("s", by_option(inbox, "csv", "take"))
    csn = empty_warehouse.snapshot().moment.csn
    put(inbox / "b.csv", "note,id,state,amount\nx,2,WI,2\n")
    capture(empty_warehouse)
    assert empty_warehouse.snapshot().moment.csn == csn + 1
    assert empty_warehouse.snapshot().get("orders").schema.names == ("id", "state", "amount", "note")
    assert stored(empty_warehouse, "orders") == Counter([(1, "CA", 1, None), (2, "WI", 2, "x")])
    assert stored(empty_warehouse, "orders", csn) == Counter([(1, "CA", 1, None)])
    put(inbox / "c.csv", "id\n3\n")
    capture(empty_warehouse)
    assert stored(empty_warehouse, "orders")[(3, None, None, None)] == 1


def test_a_new_column_is_left_out_until_it_is_asked_for(inbox: Path, empty_warehouse: Warehouse) -> None:
    put(inbox / "a.jsonl", '{"id": 1, "flag": true}\n')
    empty_warehouse.add_source("s", by_option(inbox, "json", "ignore"))
    assert stored(empty_warehouse, "orders") == Counter([(1, None, None)])
    empty_warehouse.add_source("s", by_option(inbox, "json", "take"))
    put(inbox / "b.jsonl", '{"id": 2, "flag": null, "size": 3}\n')
    capture(empty_warehouse)
    schema = empty_warehouse.snapshot().get("orders").schema
    assert [(c.name, c.type) for c in schema][3:] == [("flag", "boolean"), ("size", "bigint")]
    assert stored(empty_warehouse, "orders") == Counter([(1, None, None, True, None), (2, None, None, None, 3)])


@pytest.mark.parametrize("value", ["1.5", "[1]", '{"a": 1}'])
def test_a_value_without_a_sure_type_stops_the_source(inbox: Path, empty_warehouse: Warehouse, value: str) -> None:
    put(inbox / "a.jsonl", '{"id": 1}\n')
    empty_warehouse.add_source("s", by_option(inbox, "json", "take"))
    put(inbox / "b.jsonl", f'{{"id": 2, "x": {value}}}\n')
    (done,) = empty_warehouse.capture().sources
    assert done.problem is not None
    assert "declare one" in done.problem
    (inbox / "b.jsonl").unlink()
    capture(empty_warehouse)


def test_an_unknown_option_is_refused(inbox: Path) -> None:
    with pytest.raises(UsageError, match="new_columns"):
        by_option(inbox, "csv", "guess")


def test_a_column_that_no_file_has_any_more_is_gone(inbox: Path, empty_warehouse: Warehouse) -> None:
    put(inbox / "a.csv", "id,state,amount\n1,CA,1\n")
    put(inbox / "b.csv", "id,state,amount\n2,WI,2\n")
    empty_warehouse.add_source("s", by_option(inbox, "csv", "ignore"))
    put(inbox / "a.csv", "id,amount\n1,1\n", age=30)
    capture(empty_warehouse)
    assert stored(empty_warehouse, "orders") == Counter([(1, None, 1), (2, "WI", 2)])
    put(inbox / "b.csv", "id,amount\n2,2\n", age=30)
    capture(empty_warehouse)
    assert empty_warehouse.snapshot().get("orders").schema.names == ("id", "amount")
    assert stored(empty_warehouse, "orders") == Counter([(1, 1), (2, 2)])


def test_a_key_that_is_gone_stops_the_source(inbox: Path, empty_warehouse: Warehouse) -> None:
    put(inbox / "a.csv", "id,state,amount\n1,CA,1\n")
    made = settings(inbox, "csv", None, "id")
    empty_warehouse.add_source("s", replace(made, options={**made.options, "new_columns": "take"}))
    put(inbox / "a.csv", "number,state,amount\n1,CA,1\n", age=30)
    empty_warehouse.capture()
    assert empty_warehouse.sources()[0].state == "schema_changed"


def test_types_of_parquet_files(inbox: Path, empty_warehouse: Warehouse) -> None:
    """A wider one is followed; where no type holds all values the files disagree; another one is another column."""
    write(inbox / "a.parquet", [{"id": 1, "n": 1}], pa.schema([("id", pa.int64()), ("n", pa.int32())]))
    empty_warehouse.add_source("s", by_option(inbox, "parquet", "take", {}))
    column = empty_warehouse.schema_at("orders", 1).columns[1]
    write(inbox / "b.parquet", [{"id": 2, "n": 1 << 40}])
    capture(empty_warehouse)
    assert stored(empty_warehouse, "orders") == Counter([(1, 1), (2, 1 << 40)])
    wider = empty_warehouse.schema_at("orders", empty_warehouse.snapshot().moment.csn).columns[1]
    assert (column.type, wider.type, wider.id) == ("int", "bigint", column.id)
    write(inbox / "c.parquet", [{"id": 3, "n": "x"}])
    (done,) = empty_warehouse.capture().sources
    assert done.problem is not None
    assert "as string" in done.problem
    write(inbox / "a.parquet", [{"id": 1, "n": "one"}])
    write(inbox / "b.parquet", [{"id": 2, "n": "two"}])
    capture(empty_warehouse)
    assert stored(empty_warehouse, "orders") == Counter([(1, "one"), (2, "two"), (3, "x")])
    other = empty_warehouse.schema_at("orders", empty_warehouse.snapshot().moment.csn).columns[1]
    assert (other.type, other.id == column.id) == ("string", False)


@pytest.mark.parametrize("seed", range(times(3, 20)))
@pytest.mark.parametrize("format_", ["json", "parquet"])
def test_every_csn_is_a_state_of_the_folder(tmp_path: Path, inbox: Path, format_: str, seed: int) -> None:
    """Random files with random columns come, change and go. A column that comes back may be another one."""
    chance = random.Random(seed)
    names = ["a", "b", "c", "d"]
    files: dict[str, list[dict[str, Any]]] = {"f0": [{"id": 0, "a": 1, "b": 2}]}

    def save(name: str) -> None:
        if format_ == "json":
            put(inbox / f"{name}.jsonl", "".join(json.dumps(row) + "\n" for row in files[name]), age=chance.random())
        else:
            write(inbox / f"{name}.parquet", files[name])

    def change(number: int) -> None:
        name = f"f{chance.randint(0, 4)}"
        if name in files and len(files) > 1 and chance.random() < 0.3:
            del files[name]
            next(inbox.glob(f"{name}.*")).unlink()
            return
        chosen = chance.sample(names, chance.randint(0, 4))
        rows = [{"id": 10 * number + i, **{one: chance.randint(0, 3) for one in chosen}} for i in range(2)]
        files[name] = rows
        save(name)

    def present() -> list[dict[str, Any]]:
        return [row for rows in files.values() for row in rows]

    save("f0")
    with new_warehouse(tmp_path / "w") as warehouse:
        types = {"id": "bigint"} if format_ == "json" else {}
        warehouse.add_source("s", by_option(inbox, format_, "take", types))
        states = [present()]
        for number in range(1, 9):
            change(number)
            before = warehouse.snapshot().moment.csn
            capture(warehouse)
            states += [present()] * (warehouse.snapshot().moment.csn - before)
        check_states(warehouse, states)


def check_states(warehouse: Warehouse, states: list[list[dict[str, Any]]]) -> None:
    relation = warehouse.snapshot().get("orders")
    assert set(relation.schema.names) == {"id"} | {name for row in states[-1] for name in row}
    csns = range(1, len(states) + 1)
    for csn, rows, state in zip(csns, stored_at_each(warehouse, "orders", csns), states, strict=True):
        then = {c.stored: c.name for c in relation.schema_at(csn)}
        kept = [(place, then[c.stored]) for place, c in enumerate(relation.schema) if c.stored in then]
        seen = Counter(tuple(row[place] for place, _ in kept) for row in rows.elements())
        assert seen == Counter(tuple(row.get(name) for _, name in kept) for row in state), csn


@pytest.mark.parametrize("format_", ["csv", "parquet", "json"])
@pytest.mark.parametrize("key", [(), ("id",)])
def test_a_rename_that_was_said_is_one(
    inbox: Path, empty_warehouse: Warehouse, format_: str, key: tuple[str, ...]
) -> None:
    """Files under both names are read, also when all are read again; also a key, and twice."""

    def save(name: str, columns: str, *rows: tuple[int, str]) -> None:
        told = [dict(zip(columns.split(","), row, strict=True)) for row in rows]
        if format_ == "parquet":
            write(inbox / f"{name}.parquet", told)
        elif format_ == "json":
            put(inbox / f"{name}.json", "".join(json.dumps(row) + "\n" for row in told))
        else:
            put(inbox / f"{name}.csv", "\n".join([columns, *(f"{a},{b}" for a, b in rows), ""]))

    types = {} if format_ == "parquet" else {"id": "bigint", "state": "string"}
    save("a", "id,state", (1, "CA"))
    made = settings(inbox, format_, types, *key)
    options = {**made.options, "new_columns": "take", "settle_seconds": "0"}
    empty_warehouse.add_source("s", replace(made, options=options))
    entries = empty_warehouse.schema_at("orders", 1).columns
    empty_warehouse.say_rename("orders", "state", "status")
    empty_warehouse.say_rename("orders", "id", "number")
    save("b", "id,state", (2, "WI"))
    capture(empty_warehouse)
    assert empty_warehouse.snapshot().get("orders").schema.names == ("id", "state")
    save("c", "number,status", (3, "NY"))
    capture(empty_warehouse)
    save("d", "id,status", (4, "TX"))
    capture(empty_warehouse)
    empty_warehouse.say_rename("orders", "status", "code")
    save("e", "number,code", (5, "OR"))
    (inbox / f"b.{format_}").unlink()
    capture(empty_warehouse)
    now = empty_warehouse.schema_at("orders", empty_warehouse.snapshot().moment.csn).columns
    assert [(one.id, one.column) for one in now] == [(entries[0].id, "number"), (entries[1].id, "code")]
    assert stored(empty_warehouse, "orders") == Counter([(1, "CA"), (3, "NY"), (4, "TX"), (5, "OR")])
    empty_warehouse.resnapshot("s")
    assert stored(empty_warehouse, "orders") == Counter([(1, "CA"), (3, "NY"), (4, "TX"), (5, "OR")])


def test_what_cannot_be_said_is_refused(inbox: Path, empty_warehouse: Warehouse) -> None:
    put(inbox / "a.csv", "id,state,amount\n1,CA,1\n")
    empty_warehouse.add_source("s", by_option(inbox, "csv", "take"))
    with pytest.raises(NotFound):
        empty_warehouse.say_rename("orders", "city", "town")
    with pytest.raises(AlreadyExists):
        empty_warehouse.say_rename("orders", "state", "ID")
