"""Views over a captured table that is dropped at its database go on by what stands for it, without it, or with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.sources.sqlite_harness import SqliteHarness

from rollview.catalog import Part
from rollview.core.states import Extent
from rollview.core.substitutes import Substitute
from rollview.errors import OutOfReach
from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

OTHER = Substitute("account", "person", {"id": "id", "owner": "name"}, Extent.EQUAL, "substitutes.0")
VIEWS = {
    "names": "AS SELECT id, owner FROM account",
    "counted": "AS SELECT owner, COUNT(*) AS n FROM names GROUP BY owner",
    "asking": "TBLPROPERTIES ('rollview.on_schema_change' = 'ask') AS SELECT owner FROM account",
    "without": "TBLPROPERTIES ('rollview.dispensable' = 'join account, columns', 'rollview.extent' = 'any') "
    "AS SELECT l.id, l.label, a.balance FROM label l LEFT JOIN account a ON a.id = l.id",
    "summed": "AS SELECT SUM(balance) AS s FROM account",
    "labels": "AS SELECT label FROM label",
}


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[SqliteHarness]:
    with closing(SqliteHarness(tmp_path)) as made:
        yield made


@pytest.fixture
def warehouse(spark: SparkSession, tmp_path: Path, bank: SqliteHarness) -> Iterator[Warehouse]:
    Warehouse.create(tmp_path / "w").close()
    with Warehouse.open(tmp_path / "w", spark=spark, substitutes=(OTHER,)) as warehouse:
        warehouse.add_source("bank", bank.settings())
        warehouse.sql("CREATE TABLE label (id BIGINT, label STRING)", "INSERT INTO label VALUES (1, 'one'), (2, 'two')")
        warehouse.sql(
            "CREATE TABLE person (id BIGINT, name STRING)", "INSERT INTO person VALUES (1, 'ann'), (9, 'zoe')"
        )
        for name, text in VIEWS.items():
            warehouse.create_view(f"CREATE MATERIALIZED VIEW {name} {text}")
        yield warehouse


def captured(warehouse: Warehouse) -> None:
    (done,) = warehouse.capture().sources
    assert done.problem is None, done.problem


def rows(warehouse: Warehouse, name: str, csn: int | None = None) -> set[tuple[Any, ...]]:
    return {tuple(row) for row in warehouse.read(name, as_of=csn).collect()}


def marks(warehouse: Warehouse) -> dict[str, int]:
    return {view.name: view.pins[Part.DELTA].through for view in warehouse.snapshot().views()}


def test_each_view_has_its_own_way_on(warehouse: Warehouse, bank: SqliteHarness) -> None:
    before = {name: rows(warehouse, name) for name in VIEWS}
    bank.execute("DROP TABLE account")
    captured(warehouse)
    waits, gone = warehouse.snapshot().get("account").waits_at, warehouse.snapshot().moment.csn
    assert waits == gone - 1, "the drop has a csn of its own"
    warehouse.sql("INSERT INTO label VALUES (3, 'three')", "INSERT INTO person VALUES (10, 'yan')")
    warehouse.refresh()
    newest = warehouse.snapshot().moment.csn
    assert marks(warehouse) == {
        **dict.fromkeys(("names", "counted", "without", "labels"), newest),
        **dict.fromkeys(("asking", "summed"), waits),
    }
    assert rows(warehouse, "names", gone) == {(1, "ann"), (9, "zoe")}
    assert rows(warehouse, "counted") == {("ann", 1), ("zoe", 1), ("yan", 1)}
    assert rows(warehouse, "without") == {(1, "one"), (2, "two"), (3, "three")}
    for name in VIEWS:
        assert rows(warehouse, name, waits) == before[name], "below it, each is what it was"
        assert warehouse.verify(name, at=marks(warehouse)[name]).equal
    with pytest.raises(OutOfReach, match="is gone"):
        warehouse.query("SELECT SUM(balance) FROM account", as_of=newest)

    assert [one.steps for one in warehouse.view_changes("asking").proposals] == [("'person' for 'account'",)]
    assert warehouse.decide_view("asking", 1).csn == gone
    warehouse.refresh()
    assert rows(warehouse, "asking", gone) == {("ann",), ("zoe",)}
    assert "balance" in " ".join(warehouse.view_changes("summed").refused)

    bank.execute("CREATE TABLE account (id INTEGER PRIMARY KEY, owner TEXT, balance NUMERIC(12,2))")
    bank.execute("INSERT INTO account VALUES (1, 'new', 70)")
    captured(warehouse)
    warehouse.refresh()
    newest = warehouse.snapshot().moment.csn
    assert set(marks(warehouse).values()) == {newest}
    assert [int(row[0]) for row in rows(warehouse, "summed")] == [70]
    assert warehouse.verify("summed").equal
    with pytest.raises(OutOfReach) as refused:
        warehouse.read("summed", as_of=gone)
    assert refused.value.facts["nearest"] == (waits, newest)
    assert rows(warehouse, "asking") == {("ann",), ("zoe",), ("yan",)}, "what it decided for stays"


def test_a_view_is_replaced_by_one_without_the_table(warehouse: Warehouse, bank: SqliteHarness) -> None:
    bank.execute("DROP TABLE account")
    captured(warehouse)
    with pytest.raises(OutOfReach, match="View 'summed' cannot be replaced"):
        warehouse.create_view("CREATE OR REPLACE MATERIALIZED VIEW summed AS SELECT SUM(id) AS s FROM account")
    text = "CREATE OR REPLACE MATERIALIZED VIEW summed AS SELECT SUM(id) AS s FROM label"
    assert "begins anew" in warehouse.explain_replace("summed", text).why
    warehouse.create_view(text)
    warehouse.sql("INSERT INTO label VALUES (3, 'three')")
    warehouse.refresh(["summed"])
    assert rows(warehouse, "summed") == {(6,)}
