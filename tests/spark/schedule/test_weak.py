"""Views that publish how far each table has come: what a reader gets is the definition over tables at those csns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.sizes import times
from tests.spark.oracle.bags import assert_same
from tests.spark.oracle.model import by_csn
from tests.spark.schedule.test_rolling import JOINED, Rolling, shop  # noqa: F401

from rollview import errors
from rollview.cli.answers import fetch
from rollview.schedule import commands
from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

WEAK = {"rollview.consistency": "weak"}
TURNS = "'rollview.propagate' = 'orders manual, customers manual'"


@pytest.mark.parametrize("seed", range(times(1, full=20)))
def test_what_is_published_is_the_definition_over_each_table_at_its_place(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    history = Rolling(spark, tmp_path / "warehouse", seed)
    history.write(2)
    history.add_join()
    history.warehouse.set_view("v", WEAK)
    uneven = 0
    for turn in range(4):
        history.write(1)
        history.move()
        uneven += len(set(history.places.values())) > 1
        if turn == 2:
            history.warehouse.set_view("v", {"rollview.consistency": ""})
            history.warehouse.roll(["v"], "latest")
            history.warehouse.set_view("v", WEAK)
        found = history.warehouse.verify("v")
        assert found.equal, (seed, history.places, found)
        assert {one.table: one.csn for one in found.places} == history.places
    assert uneven, "the tables were always at one csn"
    history.warehouse.refresh()
    _, expected = history.model.rows("v", (history.model.csn,))
    rows = by_csn({history.model.csn: history.warehouse.read("v")})
    assert_same(rows[history.model.csn], expected[history.model.csn], f"seed {seed}, together")
    history.warehouse.close()


@pytest.fixture
def weak(shop: Warehouse) -> Warehouse:  # noqa: F811
    """Customers were renamed after an order; the view has seen the first only."""
    shop.sql("INSERT INTO customers VALUES (1, 'Ann')")
    properties = f"{TURNS}, 'rollview.consistency' = 'weak'"
    shop.create_view(f"CREATE MATERIALIZED VIEW v TBLPROPERTIES ({properties}) AS {JOINED}")
    shop.sql("INSERT INTO orders VALUES (10, 1)")
    shop.sql("UPDATE customers SET name = 'Bea'")
    commands.refresh_views(shop._place, ["v"], due={"v": frozenset({"customers"})})
    shop.sql("INSERT INTO orders VALUES (11, 1)", "UPDATE customers SET name = 'Eve'")
    commands.refresh_views(shop._place, ["v"], due={"v": frozenset({"orders"})})
    return shop


def test_the_vector_is_published_and_labelled(weak: Warehouse) -> None:
    read = weak.read_labelled("v")
    assert sorted(tuple(row) for row in read.frame.collect()) == [(10, "Bea"), (11, "Bea")], "never a state at one csn"
    newest = weak.snapshot().moment.csn
    # Eve came in the last commit; up to the one before, customers have not changed.
    assert {one.table: one.csn for one in read.places} == {"orders": newest, "customers": newest - 1}
    (status,) = weak.status().views
    assert (status.consistency, status.places) == ("weak", read.places)
    assert weak.explain("v").promises == "weak"
    shown = replace(fetch(read.frame, None), places=read.places).to_json()
    assert (shown["consistency"], [one["csn"] for one in shown["places"]]) == ("weak", [newest, newest - 1])
    weak.set_view("v", {"rollview.consistency": ""})
    weak.roll(["v"], "latest")
    assert [tuple(row) for row in weak.read("v").collect()] == [(10, "Bea")], "again at the mark"
    assert weak.read_labelled("v").places == ()


REFUSED: dict[str, Callable[[Warehouse], object]] = {
    "read as of a csn": lambda w: w.read("v", as_of="latest"),
    "rolled to a csn": lambda w: w.roll(["v"], "latest"),
    "tell changes by csns": lambda w: w.delta("v", 1),
    "compared at a csn": lambda w: w.verify("v", at=1),
    "judged over an interval": lambda w: w.check_history("v", after=1),
    "sent to a subscriber": lambda w: w.add_subscriber("s", "v"),
    "read by view 'n'": lambda w: w.create_view("CREATE MATERIALIZED VIEW n AS SELECT id FROM v"),
}


def test_what_needs_a_csn_is_refused_with_the_reason(weak: Warehouse) -> None:
    for reason, wish in REFUSED.items():
        with pytest.raises(errors.UsageError, match=reason) as refusal:
            wish(weak)
        assert "each table at a csn of its own" in refusal.value.message
    told = weak.check_history("v")
    newest = weak.snapshot().moment.csn
    assert (told.level, told.breaks, told.so_far) == ("weak", "strong", True)
    assert [one.reflects for one in told.versions] == [f"orders {newest}, customers {newest - 1}"]


def test_the_property_is_refused_where_something_needs_csns(shop: Warehouse) -> None:  # noqa: F811
    with pytest.raises(errors.UsageError, match="does not name them"):
        shop.create_view(f"CREATE MATERIALIZED VIEW v TBLPROPERTIES ('rollview.consistency' = 'weak') AS {JOINED}")
    shop.create_view(f"CREATE MATERIALIZED VIEW v TBLPROPERTIES ({TURNS}) AS {JOINED}")
    with pytest.raises(errors.UsageError, match="cannot be asked for consistency 'strong'"):
        shop.set_view("v", {"rollview.consistency": "strong"})
    shop.add_subscriber("s", "v")
    with pytest.raises(errors.UsageError, match="has a subscriber"):
        shop.set_view("v", WEAK)
    shop.remove_subscriber("s")
    shop.create_view("CREATE MATERIALIZED VIEW n AS SELECT id FROM v")
    with pytest.raises(errors.UsageError, match="view 'n' reads it"):
        shop.set_view("v", WEAK)
    with pytest.raises(errors.UsageError, match="view 'n' reads it"):
        shop.create_view(f"CREATE OR REPLACE MATERIALIZED VIEW v TBLPROPERTIES ({TURNS}, {_said(WEAK)}) AS {JOINED}")


def _said(properties: dict[str, str]) -> str:
    return ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
