"""Views over a captured table that waits, because a column by which its rows are chosen is gone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.sources.harness import Write, account
from tests.sources.sqlite_harness import SqliteHarness

from rollview.errors import OutOfReach, UsageError
from rollview.relations.marks import high_water_mark
from rollview.sources import SourceSettings
from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

JOINED = "SELECT a.id, a.balance, l.label FROM account AS a JOIN label AS l ON a.id = l.id"
SUMMED = "SELECT label, SUM(balance) AS s, COUNT(*) AS n FROM joined GROUP BY label"


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[SqliteHarness]:
    with closing(SqliteHarness(tmp_path)) as made:
        yield made


@pytest.fixture
def warehouse(spark: SparkSession, tmp_path: Path, bank: SqliteHarness) -> Iterator[Warehouse]:
    with Warehouse.create(tmp_path / "w") as made:
        warehouse = Warehouse.open(made.root, spark=spark)
        warehouse.add_source("bank", chosen_by(bank, "owner = 'ann'"))
        warehouse.sql("CREATE TABLE label (id BIGINT, label STRING)", "INSERT INTO label VALUES (1, 'one'), (2, 'two')")
        warehouse.create_view(f"CREATE MATERIALIZED VIEW joined AS {JOINED}")
        warehouse.create_view(f"CREATE MATERIALIZED VIEW summed AS {SUMMED}")
        warehouse.create_view(
            "CREATE MATERIALIZED VIEW labels AS SELECT label, COUNT(*) AS n FROM label GROUP BY label"
        )
        yield warehouse


def chosen_by(bank: SqliteHarness, rows: str) -> SourceSettings:
    whole = bank.settings()
    return replace(whole, tables=tuple(replace(t, rows=rows if t.remote == "account" else "") for t in whole.tables))


def captured(warehouse: Warehouse) -> None:
    (done,) = warehouse.capture().sources
    assert done.problem is None, done.problem


def mark(warehouse: Warehouse, view: str) -> int:
    snapshot = warehouse.snapshot()
    return high_water_mark(snapshot, snapshot.get(view))


def rows(warehouse: Warehouse, view: str) -> set[tuple[Any, ...]]:
    return {tuple(row) for row in warehouse.read(view).collect()}


def test_views_stay_where_the_table_waits_and_go_on_after_it(warehouse: Warehouse, bank: SqliteHarness) -> None:
    bank.write(Write("account", None, account(4, "ann", "40.00")))
    captured(warehouse)
    warehouse.alter_source("bank", "ALTER TABLE account DROP COLUMN owner")
    bank.execute("INSERT INTO account VALUES (5, 50)")
    captured(warehouse)
    waits = warehouse.snapshot().get("account").waits_at
    assert waits is not None
    warehouse.sql("INSERT INTO label VALUES (4, 'four'), (5, 'five')")
    warehouse.sql("INSERT INTO label VALUES (1, 'uno')")
    inside = warehouse.snapshot().moment.csn

    warehouse.refresh()
    assert {view.name: (view.state, mark(warehouse, view.name)) for view in warehouse.status().views} == {
        "joined": ("schema_changed", waits),
        "summed": ("schema_changed", waits),
        "labels": ("ok", inside),
    }
    assert all(warehouse.verify(view, at=waits).equal for view in ("joined", "summed"))
    with pytest.raises(OutOfReach, match="has lost column 'owner'") as refused:
        warehouse.read("joined", as_of=inside)
    assert refused.value.facts["nearest"] == (waits,)
    with pytest.raises(UsageError, match="goes no further"):
        warehouse.refresh(["summed"])
    with pytest.raises(OutOfReach, match="View 'joined' cannot be replaced"):
        warehouse.create_view(f"CREATE OR REPLACE MATERIALIZED VIEW joined AS {JOINED} WHERE a.id > 0")
    with pytest.raises(OutOfReach, match="Table 'label' cannot be altered so"):
        warehouse.sql("ALTER TABLE label DROP COLUMN label")

    warehouse.resnapshot("bank", widen=True, settings=chosen_by(bank, "id <> 2"))
    told = warehouse.snapshot().moment.csn
    warehouse.refresh(["joined", "summed"], to=inside)
    assert (mark(warehouse, "joined"), mark(warehouse, "summed")) == (waits, waits)
    bank.execute("DELETE FROM account WHERE id = 4")
    captured(warehouse)
    warehouse.refresh()
    assert {view.state for view in warehouse.status().views} == {"ok"}
    assert {row[0::2] for row in rows(warehouse, "joined")} == {(1, "one"), (1, "uno"), (5, "five")}
    for view in ("joined", "summed"):
        for csn in (waits, told, told + 1):
            assert warehouse.verify(view, at=csn).equal
        for csn in range(waits + 1, told):
            with pytest.raises(OutOfReach) as refused:
                warehouse.read(view, as_of=csn)
            assert refused.value.facts["nearest"] == (waits, told)
