"""What settings say of columns, they say of them under the names that columns get at the source."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from rollview.errors import SourceDown
from rollview.sources import SourceSettings, TableSettings
from rollview.sources.settings import GlobalSettings
from rollview.warehouse import Warehouse
from tests.sources.harness import Bag, Row, capture, stored

ALTER = "ALTER TABLE wide RENAME COLUMN"
SWAP = (f"{ALTER} a TO t", f"{ALTER} b TO a", f"{ALTER} t TO b")


class Wide:
    """A table ``wide`` (id, a, b, c) of a database."""

    def __init__(self, bank: Any) -> None:
        self.bank = bank
        self.run("CREATE TABLE wide (id INT PRIMARY KEY, a INT, b INT, c VARCHAR(9))")
        if bank.kind == "postgres":
            self.run("ALTER TABLE wide REPLICA IDENTITY FULL")
        self.run("INSERT INTO wide VALUES (1, 1, 10, 'x'), (2, 9, 20, 'y')")

    def run(self, *statements: str) -> list[Row]:
        return [tuple(row) for row in self.bank.execute(*statements)]

    def settings(self, **about: Any) -> SourceSettings:
        return SourceSettings(self.bank.kind, self.bank.settings().address, (TableSettings("wide", "wide", **about),))

    def rows(self, text: str) -> Bag:
        return Counter(self.run(text))

    @property
    def tells_copies_names(self) -> bool:
        """Whether a copy knows columns by more than their names."""
        return self.bank.kind in ("postgres", "sqlite")


@pytest.fixture
def wide(bank: Any) -> Wide:
    return Wide(bank)


def names(warehouse: Warehouse) -> tuple[str, ...]:
    return warehouse.snapshot().get("wide").schema.names


def said(warehouse: Warehouse) -> TableSettings:
    return SourceSettings.from_json(warehouse.catalog.source("s").settings).table("wide")


def test_columns_and_rows_follow_a_rename(empty_warehouse: Warehouse, wide: Wide) -> None:
    empty_warehouse.add_source("s", wide.settings(columns=("id", "a"), rows="a < 5", key=("id",)))
    before = empty_warehouse.schema_at("wide", 1).columns
    wide.run(f"{ALTER} a TO n", f"{ALTER} c TO a", "INSERT INTO wide VALUES (3, 2, 30, '0'), (4, 8, 40, '0')")
    capture(empty_warehouse)
    assert names(empty_warehouse) == ("id", "n")
    assert stored(empty_warehouse, "wide") == Counter([(1, 1), (3, 2)])
    csn = empty_warehouse.snapshot().moment.csn
    assert [one.id for one in empty_warehouse.schema_at("wide", csn).columns] == [one.id for one in before]
    assert said(empty_warehouse).columns == ("id", "n")
    wide.run("UPDATE wide SET n = 3 WHERE id = 4", "UPDATE wide SET n = 7 WHERE id = 1")
    capture(empty_warehouse)
    assert stored(empty_warehouse, "wide") == Counter([(3, 2), (4, 3)])
    empty_warehouse.resnapshot("s")
    assert stored(empty_warehouse, "wide") == Counter([(3, 2), (4, 3)])


def test_names_that_change_places_keep_what_is_said_of_their_columns(empty_warehouse: Warehouse, wide: Wide) -> None:
    empty_warehouse.add_source("s", wide.settings(columns=("id", "a", "b"), rows="a < 5 AND b > 5"))
    wide.run(*SWAP, "INSERT INTO wide (id, a, b) VALUES (3, 30, 2), (4, 2, 30), (5, 3, 3)")
    capture(empty_warehouse)
    assert names(empty_warehouse) == ("id", "b", "a")
    assert stored(empty_warehouse, "wide") == wide.rows("SELECT id, b, a FROM wide WHERE b < 5 AND a > 5")
    assert stored(empty_warehouse, "wide", 1) == Counter([(1, 1, 10)])


def test_a_copy_that_finds_other_names_follows_them(empty_warehouse: Warehouse, wide: Wide) -> None:
    if not wide.tells_copies_names:
        pytest.skip("a copy knows columns by their names alone")
    empty_warehouse.add_source("s", wide.settings(columns=("id", "a", "b"), rows="a < 5"))
    wide.run(*SWAP, "INSERT INTO wide (id, a, b) VALUES (3, 30, 2), (4, 2, 30)")
    empty_warehouse.resnapshot("s")
    assert names(empty_warehouse) == ("id", "b", "a")
    assert stored(empty_warehouse, "wide") == wide.rows("SELECT id, b, a FROM wide WHERE b < 5")
    wide.run(f"{ALTER} b TO n", "DELETE FROM wide WHERE id = 1", "INSERT INTO wide (id, a, n) VALUES (5, 1, 1)")
    capture(empty_warehouse)
    assert stored(empty_warehouse, "wide") == wide.rows("SELECT id, n, a FROM wide WHERE n < 5")


def test_a_rename_that_a_failed_copy_has_followed_loses_no_value(
    empty_warehouse: Warehouse, wide: Wide, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What comes before the rename is read from the old position, where the column has its old name."""
    if not wide.tells_copies_names:
        pytest.skip("a copy knows columns by their names alone")
    empty_warehouse.add_source("s", wide.settings(columns=("id", "a"), rows="a < 5"))
    wide.run("INSERT INTO wide VALUES (3, 2, 30, 'z'), (4, 7, 40, 'z')", f"{ALTER} a TO n")
    wide.run("INSERT INTO wide VALUES (5, 3, 50, 'z'), (6, 8, 60, 'z')")
    with monkeypatch.context() as failing:
        failing.setattr("rollview.capture.copies._replace", _fail)
        with pytest.raises(SourceDown):
            empty_warehouse.resnapshot("s")
    capture(empty_warehouse)
    assert names(empty_warehouse) == ("id", "n")
    assert stored(empty_warehouse, "wide") == Counter([(1, 1), (3, 2), (5, 3)])


def _fail(*about: Any) -> None:
    raise SourceDown("s", "it went away")


def test_a_declared_type_goes_with_its_column(empty_warehouse: Warehouse, wide: Wide) -> None:
    """And not to another one that gets its old name."""
    if not wide.tells_copies_names:
        pytest.skip("the server tells types itself")
    empty_warehouse.add_source("s", wide.settings(types={"c": "string"}))
    wide.run(f"{ALTER} c TO n", "ALTER TABLE wide ADD COLUMN c INT", "INSERT INTO wide VALUES (3, 3, 30, 'z', 4)")
    capture(empty_warehouse)
    schema = empty_warehouse.snapshot().get("wide").schema
    assert schema.names[-2:] == ("n", "c")
    assert schema.columns[-2].type == "string"
    assert schema.columns[-1].type in ("int", "bigint")
    assert stored(empty_warehouse, "wide") == wide.rows("SELECT id, a, b, n, c FROM wide")
    assert said(empty_warehouse).types == {"n": "string"}
    wide.run("INSERT INTO wide VALUES (4, 4, 40, 'w', 5)")
    capture(empty_warehouse)
    assert stored(empty_warehouse, "wide") == wide.rows("SELECT id, a, b, n, c FROM wide")


def test_a_column_that_takes_the_name_of_one_that_is_not_captured_keeps_its_type(
    empty_warehouse: Warehouse, wide: Wide
) -> None:
    kind = {"postgres": "bytea", "sqlite": "BLOB"}.get(wide.bank.kind, "BINARY(9)")
    wide.run(f"ALTER TABLE wide ADD COLUMN p {kind}")
    empty_warehouse.add_source("s", wide.settings(columns=("id", "c")))
    wide.run(f"{ALTER} p TO q")
    capture(empty_warehouse)
    wide.run(f"{ALTER} c TO p", "INSERT INTO wide (id, p) VALUES (3, 'v')")
    capture(empty_warehouse)
    assert names(empty_warehouse) == ("id", "p")
    assert stored(empty_warehouse, "wide") == Counter([(1, "x"), (2, "y"), (3, "v")])


def test_the_column_of_global_ids_is_followed(empty_warehouse: Warehouse, wide: Wide) -> None:
    marks = GlobalSettings("wide", "c", sources=("s",))
    empty_warehouse.add_source("s", replace(wide.settings(), global_transactions=marks))
    wide.run(f"{ALTER} c TO gid", "INSERT INTO wide VALUES (3, 3, 30, 'g')")
    capture(empty_warehouse)
    assert stored(empty_warehouse, "wide") == wide.rows("SELECT id, a, b, gid FROM wide")
    found = SourceSettings.from_json(empty_warehouse.catalog.source("s").settings).global_transactions
    assert found is not None
    assert found.id == "gid"
