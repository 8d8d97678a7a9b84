"""Delta tables whose columns are called otherwise, come, go and get other types: known by field ids."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from rollview.errors import SourceDown
from rollview.sources import SourceSettings, TableSettings
from rollview.types.spelling import widens
from rollview.warehouse import Warehouse
from tests.sizes import times
from tests.sources.harness import Bag, capture, new_warehouse, stored, stored_at_each
from tests.sources.mapped_delta import MappedColumn, MappedTable, Record

SPARK = {"integer": "int", "long": "bigint", "string": "string", "double": "double"}


def settings(lake: Path, **about: Any) -> SourceSettings:
    return SourceSettings("delta", str(lake), (TableSettings("t", "t", **about),))


def names(warehouse: Warehouse) -> tuple[str, ...]:
    return warehouse.snapshot().get("t").schema.names


@pytest.mark.parametrize("mode", ["name", "id"])
def test_a_rename_is_proved_by_the_field_id(tmp_path: Path, empty_warehouse: Warehouse, mode: str) -> None:
    table = MappedTable(tmp_path / "lake" / "t", [("a", "long"), ("b", "string"), ("p", "integer")], mode, partition=3)
    table.append({"a": 1, "b": "x", "p": 7}, {"a": 2, "b": "y", "p": None})
    empty_warehouse.add_source("s", settings(tmp_path / "lake"))
    assert stored(empty_warehouse, "t") == Counter([(1, "x", 7), (2, "y", None)])
    before = empty_warehouse.schema_at("t", 1).columns
    table.rename(a="b", b="a", p="q")
    table.append({"b": 3, "a": "z", "q": 8})
    table.delete("f1.parquet", [])
    capture(empty_warehouse)
    assert names(empty_warehouse) == ("b", "a", "q")
    after = empty_warehouse.schema_at("t", empty_warehouse.snapshot().moment.csn).columns
    assert [one.id for one in after] == [one.id for one in before]
    assert stored(empty_warehouse, "t") in (Counter([(3, "z", 8), (1, "x", 7)]), Counter([(3, "z", 8), (2, "y", None)]))
    # The rename has a csn of its own, and rows before it are as they were.
    assert empty_warehouse.schema_at("t", 1).columns[0].column == "a"
    assert empty_warehouse.schema_at("t", 2).columns[0].column == "b"
    assert stored(empty_warehouse, "t", 2) == Counter([(1, "x", 7), (2, "y", None)])


def test_a_name_that_comes_back_is_another_column(tmp_path: Path, empty_warehouse: Warehouse) -> None:
    table = MappedTable(tmp_path / "lake" / "t", [("a", "long"), ("b", "long")])
    table.append({"a": 1, "b": 10})
    empty_warehouse.add_source("s", settings(tmp_path / "lake"))
    table.alter([table.columns[0]])
    table.alter([*table.columns, table.new_column("b", "long")])
    table.append({"a": 2, "b": 20})
    capture(empty_warehouse)
    assert stored(empty_warehouse, "t") == Counter([(1, None), (2, 20)])
    assert stored(empty_warehouse, "t", 1) == Counter([(1, None)])
    first, *_, last = empty_warehouse.schema_at("t", 1).columns[1], empty_warehouse.schema_at("t", 4).columns[1]
    assert first.id != last.id


def test_columns_of_a_table_made_anew_are_known_by_their_names(tmp_path: Path, empty_warehouse: Warehouse) -> None:
    """The numbers that it gives its columns are its own."""
    table = MappedTable(tmp_path / "lake" / "t", [("a", "long"), ("b", "long")])
    table.append({"a": 1, "b": 10})
    empty_warehouse.add_source("s", settings(tmp_path / "lake"))
    before = {one.column: one.id for one in empty_warehouse.schema_at("t", 1).columns}
    shutil.rmtree(table.root)
    table = MappedTable(tmp_path / "lake" / "t", [("b", "long"), ("a", "long")], id_="another")
    table.append({"a": 2, "b": 20})
    capture(empty_warehouse)
    assert stored(empty_warehouse, "t") == Counter([(2, 20)])
    assert {one.column: one.id for one in empty_warehouse.schema_at("t", 2).columns} == before
    table.rename(a="c")
    table.append({"c": 3, "b": 30})
    capture(empty_warehouse)
    assert (names(empty_warehouse), stored(empty_warehouse, "t")) == (("c", "b"), Counter([(2, 20), (3, 30)]))


def test_a_table_that_begins_to_map_its_columns_keeps_them(tmp_path: Path, empty_warehouse: Warehouse) -> None:
    """Also where its files are read in place."""
    lake = tmp_path / "lake"
    table = MappedTable(lake / "t", [("a", "long"), ("b", "string")], "none")
    table.append({"a": 1, "b": "x"})
    empty_warehouse.add_source("s", settings(lake))
    before = empty_warehouse.schema_at("t", 1).columns
    table.map_columns()
    table.rename(a="n")
    table.append({"n": 2, "b": "y"})
    table.delete("f1.parquet", [])
    capture(empty_warehouse)
    assert stored(empty_warehouse, "t") == Counter([(2, "y")])
    assert stored(empty_warehouse, "t", 1) == Counter([(1, "x")])
    after = empty_warehouse.schema_at("t", empty_warehouse.snapshot().moment.csn).columns
    assert [(one.id, one.column) for one in after] == [(before[0].id, "n"), (before[1].id, "b")]


def test_settings_follow_a_column_to_its_new_name(tmp_path: Path, empty_warehouse: Warehouse) -> None:
    lake = tmp_path / "lake"
    table = MappedTable(lake / "t", [("a", "long"), ("b", "string"), ("c", "long")])
    table.append({"a": 1, "b": "x", "c": 1}, {"a": 5, "b": "y", "c": 1})
    empty_warehouse.add_source("s", settings(lake, columns=("a", "b"), rows="a < 5 AND b <> 'a'"))
    table.rename(a="n", c="a")
    table.append({"n": 2, "b": "z", "a": 9}, {"n": 6, "b": "z", "a": 0})
    capture(empty_warehouse)
    assert names(empty_warehouse) == ("n", "b")
    assert stored(empty_warehouse, "t") == Counter([(1, "x"), (2, "z")])
    table.rename(n="m")
    empty_warehouse.resnapshot("s")
    assert stored(empty_warehouse, "t") == Counter([(1, "x"), (2, "z")])
    assert names(empty_warehouse) == ("m", "b")


def test_a_wider_type_keeps_the_column_and_another_one_does_not(tmp_path: Path, empty_warehouse: Warehouse) -> None:
    """Old files keep their own types: what they have as int is a bigint, and a double only after a copy."""
    table = MappedTable(tmp_path / "lake" / "t", [("a", "integer"), ("b", "integer")])
    table.append({"a": 1, "b": 1})
    empty_warehouse.add_source("s", settings(tmp_path / "lake"))
    before = empty_warehouse.schema_at("t", 1).columns
    table.alter([replace(table.columns[0], type="long"), table.columns[1]])
    capture(empty_warehouse)
    table.append({"a": 1 << 40, "b": 2})
    table.alter([table.columns[0], replace(table.columns[1], type="double")])
    assert "copied again" in capture(empty_warehouse).notes[0]
    table.append({"a": 3, "b": 0.5})
    table.delete("f1.parquet", [])
    capture(empty_warehouse)
    assert stored(empty_warehouse, "t") == Counter([(1 << 40, 2.0), (3, 0.5)])
    after = empty_warehouse.schema_at("t", empty_warehouse.snapshot().moment.csn).columns
    assert [(one.type, one.id == old.id) for one, old in zip(after, before, strict=True)] == [
        ("bigint", True),
        ("double", False),
    ]


def test_a_column_that_comes_back_with_its_values_is_copied(tmp_path: Path, empty_warehouse: Warehouse) -> None:
    table = MappedTable(tmp_path / "lake" / "t", [("a", "long"), ("b", "long")])
    table.append({"a": 1, "b": 10})
    empty_warehouse.add_source("s", settings(tmp_path / "lake"))
    both = table.columns
    table.alter(both[:1])
    capture(empty_warehouse)
    assert stored(empty_warehouse, "t") == Counter([(1,)])
    table.alter(both)
    assert any("copied again" in note for note in capture(empty_warehouse).notes)
    assert stored(empty_warehouse, "t") == Counter([(1, 10)])


def test_files_without_field_ids_are_refused_where_ids_are_asked_for(
    tmp_path: Path, empty_warehouse: Warehouse
) -> None:
    table = MappedTable(tmp_path / "lake" / "t", [("a", "long")], "id")
    table.append({"a": 1})
    empty_warehouse.add_source("s", settings(tmp_path / "lake"))
    table.append({"a": 2})
    pq.write_table(pa.table({"col-1": [2]}), tmp_path / "lake" / "t" / "f2.parquet")
    (done,) = empty_warehouse.capture().sources
    assert done.problem is not None
    assert "field ids" in done.problem
    assert stored(empty_warehouse, "t") == Counter([(1,)])


def test_what_is_overwritten_without_ids_is_another_column_unless_it_was_said(
    tmp_path: Path, empty_warehouse: Warehouse
) -> None:
    place = tmp_path / "lake" / "t"
    write_deltalake(place, pa.table({"a": [1, 2], "b": ["x", "y"]}))
    empty_warehouse.add_source("s", settings(tmp_path / "lake"))
    before = empty_warehouse.schema_at("t", 1).columns
    empty_warehouse.say_rename("t", "a", "n")
    write_deltalake(place, pa.table({"n": [1, 3], "c": ["x", "z"]}), mode="overwrite", schema_mode="overwrite")
    capture(empty_warehouse)
    write_deltalake(place, pa.table({"n": [4], "c": ["w"]}), mode="append")
    DeltaTable(place).delete("n = 3")
    capture(empty_warehouse)
    csn = empty_warehouse.snapshot().moment.csn
    after = {one.column: one.id for one in empty_warehouse.schema_at("t", csn).columns}
    assert after.keys() == {"n", "c"}
    assert after["n"] == before[0].id
    assert stored(empty_warehouse, "t") == Counter([(1, "x"), (4, "w")])
    assert stored(empty_warehouse, "t", 1) == Counter([(1, None), (2, None)])


def test_a_rename_that_a_failed_copy_has_followed_loses_no_value(
    tmp_path: Path, empty_warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What comes before the rename is read from the old position, where the column has its old name."""
    table = MappedTable(tmp_path / "lake" / "t", [("a", "long"), ("b", "string")])
    table.append({"a": 1, "b": "x"})
    empty_warehouse.add_source("s", settings(tmp_path / "lake"))
    before = empty_warehouse.schema_at("t", 1).columns
    table.append({"a": 2, "b": "y"})
    table.rename(a="b", b="a")
    table.append({"b": 3, "a": "z"})
    with monkeypatch.context() as failing:
        failing.setattr("rollview.capture.copies._replace", _fail)
        with pytest.raises(SourceDown):
            empty_warehouse.resnapshot("s")
    capture(empty_warehouse)
    csn = empty_warehouse.snapshot().moment.csn
    assert [one.id for one in empty_warehouse.schema_at("t", csn).columns] == [one.id for one in before]
    assert names(empty_warehouse) == ("b", "a")
    assert stored(empty_warehouse, "t") == Counter([(1, "x"), (2, "y"), (3, "z")])
    assert stored(empty_warehouse, "t", 2) == Counter([(1, "x"), (2, "y")])


def _fail(*about: Any) -> None:
    raise SourceDown("s", "it went away")


class History:
    """Random versions of a table, and what it was at each."""

    def __init__(self, root: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        mode = self.chance.choice(["name", "name", "id", "none"])
        partition = self.chance.choice([None, 3]) if mode != "none" else None
        columns = [("k", "long"), ("a", "integer"), ("p", "integer"), ("b", "string")]
        self.table = MappedTable(root, columns, mode, partition)
        self.lost: list[MappedColumn] = []
        self.states: dict[int, tuple[tuple[MappedColumn, ...], list[Record]]] = {}
        self._key = 0
        self.insert()

    def step(self) -> None:
        mapped = [self.rename, self.rename, self.drop, self.add, self.bring_back, self.retype, self.overwrite]
        free = [self.overwrite, self.table.map_columns]
        schema: list[Callable[[], None]] = free if self.table.mode == "none" else [*mapped]
        self.chance.choice([self.insert, self.insert, self.delete, *schema])()
        self.note()

    def note(self) -> None:
        self.states[self.table.version] = (self.table.columns, self.table.rows)

    def value(self, type_: str) -> Any:
        number = self.chance.randint(0, 3)
        return self.chance.choice([None, {"string": f"s{number}", "double": number / 2}.get(type_, number)])

    def row(self) -> Record:
        self._key += 1
        return {1: self._key} | {c.number: self.value(c.type) for c in self.table.columns if c.number != 1}

    def insert(self) -> None:
        self.table.append(*({c.name: row[c.number] for c in self.table.columns} for row in (self.row(), self.row())))
        self.note()

    def delete(self) -> None:
        if self.table.files:
            path = self.chance.choice(list(self.table.files))
            self.table.delete(path, [row for row in self.table.files[path] if self.chance.random() < 0.5])

    def free(self) -> list[MappedColumn]:
        return [column for column in self.table.columns if column.number not in (1, self.table.partition)]

    def rename(self) -> None:
        """One column, two that change their names, or one that gets the name of one before."""
        some = self.chance.sample(list(self.table.columns), 2)
        if self.chance.random() < 0.4:
            self.table.rename(**{some[0].name: some[1].name, some[1].name: some[0].name})
        else:
            taken = [column.name for column in self.table.columns]
            self.table.rename(**{some[0].name: self.chance.choice([n for n in "abcdefgkp" if n not in taken])})

    def drop(self) -> None:
        if self.free():
            gone = self.chance.choice(self.free())
            self.lost.append(gone)
            self.table.alter(column for column in self.table.columns if column != gone)

    def add(self) -> None:
        taken = [column.name for column in self.table.columns]
        name = self.chance.choice([n for n in "abcdefg" if n not in taken])
        type_ = self.chance.choice(["integer", "string"])
        self.table.alter([*self.table.columns, self.table.new_column(name, type_)])

    def bring_back(self) -> None:
        taken = [column.name for column in self.table.columns]
        found = [column for column in self.lost if column.name not in taken]
        if found:
            self.lost.remove(found[0])
            self.table.alter([*self.table.columns, found[0]])

    def retype(self) -> None:
        narrow = [column for column in self.free() if column.type == "integer"]
        if narrow:
            one, type_ = self.chance.choice(narrow), self.chance.choice(["long", "double"])
            self.table.alter(replace(c, type=type_) if c == one else c for c in self.table.columns)

    def overwrite(self) -> None:
        """Some columns stay, some get another type, some are new under the same name."""
        kept: list[MappedColumn] = []
        for column in self.table.columns:
            chosen = self.chance.random()
            if column.number in (1, self.table.partition) or chosen < 0.4:
                kept.append(column)
            elif chosen < 0.8:
                type_ = self.chance.choice(["integer", "long", "string"])
                fresh = self.table.new_column(column.name, type_)
                # Without ids a column is its name.
                number = column.number if self.table.mode == "none" and _holds(column.type, type_) else fresh.number
                kept.append(replace(fresh, number=number))
        self.table.columns = tuple(kept)
        self.table.overwrite(kept, [self.row() for _ in range(2)])


def _holds(old: str, new: str) -> bool:
    return old == new or widens(SPARK[old], SPARK[new])


@pytest.mark.parametrize("seed", range(times(5, 20)))
def test_every_csn_is_a_version_of_the_table(tmp_path: Path, seed: int) -> None:
    history = History(tmp_path / "lake" / "t", seed)
    with new_warehouse(tmp_path / "w") as warehouse:
        warehouse.add_source("s", settings(tmp_path / "lake"))
        versions = [history.table.version]
        for _ in range(7):
            for _ in range(history.chance.randint(1, 3)):
                history.step()
            capture(warehouse)
            entries = warehouse.catalog.ledger()[len(versions) :]
            versions += [int(entry.position) for entry in entries]
        check(warehouse, history, versions)


def check(warehouse: Warehouse, history: History, versions: list[int]) -> None:
    relation = warehouse.snapshot().get("t")
    assert set(relation.schema.names) == {column.name for column in history.table.columns}
    csns = range(1, len(versions) + 1)
    ids: dict[str, int] = {}
    for csn, version, rows in zip(csns, versions, stored_at_each(warehouse, "t", csns), strict=True):
        columns, state = history.states[version]
        then = {c.stored: next(one for one in columns if one.name == c.name) for c in relation.schema_at(csn)}
        assert {one.name for one in then.values()} == {one.name for one in columns}, csn
        kept = [(place, then[c.stored]) for place, c in enumerate(relation.schema) if c.stored in then]
        seen: Bag = Counter()
        for row, count in rows.items():
            seen[tuple(row[place] for place, _ in kept)] += count
        assert seen == Counter(tuple(row.get(one.number) for _, one in kept) for row in state), (csn, version)
        for place, one in then.items():
            assert ids.setdefault(place, one.number) == one.number, "one column here, two at the source"
