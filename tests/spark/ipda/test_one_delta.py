"""One delta, many consumers: copies of a view on their own schedules, and subscribers, all from one stored delta."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from tests.spark.oracle.bags import assert_same, bag
from tests.spark.oracle.warehouses import assert_verified, fresh, rows

from rollview import errors
from rollview.catalog import Part
from rollview.subscribers.batch import ADDED, CHANGE_TYPE
from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VIEWS = {
    "daily": "SELECT state, COUNT(*) AS n, AVG(amount) AS mean FROM sales GROUP BY state HAVING COUNT(*) > 1",
    "monthly": "SELECT * FROM daily",
    "large": "SELECT id, state, amount FROM sales WHERE amount >= 10",
    "copied": "SELECT id, state, amount FROM large",
    "above": "SELECT state, SUM(amount) AS total FROM copied GROUP BY state",
    "part": "SELECT id, amount FROM large",
}
COPIES = {"monthly": "daily", "copied": "large"}


@pytest.fixture(scope="module")
def shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warehouse]:
    with fresh(spark, tmp_path_factory.mktemp("one_delta") / "w") as warehouse:
        warehouse.sql("CREATE TABLE sales (id INT PRIMARY KEY, state STRING, amount INT)")
        for name, query in VIEWS.items():
            warehouse.create_view(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        warehouse.sql("INSERT INTO sales VALUES (1, 'WI', 10), (2, 'WI', 30), (3, NULL, 5)")
        warehouse.sql("UPDATE sales SET amount = amount + 1 WHERE id = 1")
        warehouse.refresh(["daily", "large"])
        warehouse.sql("INSERT INTO sales VALUES (4, NULL, 7), (5, 'CA', 99)")
        warehouse.sql("DELETE FROM sales WHERE id = 2")
        warehouse.sql("UPDATE sales SET amount = 20 WHERE state IS NULL")
        warehouse.refresh()
        yield warehouse


def delta_rows(warehouse: Warehouse, name: str) -> int:
    return warehouse.snapshot().get(name).pins[Part.DELTA].rows


def test_a_copy_stores_an_extent_and_no_second_delta(shop: Warehouse) -> None:
    for name, lower in COPIES.items():
        view = shop.snapshot().get(name)
        assert delta_rows(shop, lower) > 0
        assert delta_rows(shop, name) == 0
        assert not list((shop.root / "data" / view.folder / "delta").rglob("*.parquet"))
        assert list((shop.root / "data" / view.folder / "extent").rglob("*.parquet"))
    # What leaves a column out is no copy.
    assert delta_rows(shop, "part") > 0


def test_copies_and_what_reads_them_are_right_at_every_csn(shop: Warehouse) -> None:
    assert_verified(shop)
    for csn in range(6):
        for name in (*COPIES, "above"):
            assert shop.verify(name, csn).equal, (name, csn)


def test_a_copy_rolls_and_refreshes_on_its_own(shop: Warehouse) -> None:
    shop.roll(["monthly", "copied"], 2)
    assert {name: shop.snapshot().get(name).pins[Part.EXTENT].through for name in VIEWS if name != "part"} == {
        "daily": 5,
        "monthly": 2,
        "large": 5,
        "copied": 2,
        "above": 5,
    }
    for name, lower in COPIES.items():
        assert_same(rows(shop, name), rows(shop, lower, 2), name)
        assert_same(rows(shop, name, 4), rows(shop, lower, 4), name)
    shop.roll(["monthly", "copied"], 5)
    assert_verified(shop, "monthly", "copied")


def test_a_copy_has_the_changes_of_what_it_copies(shop: Warehouse) -> None:
    for name, lower in COPIES.items():
        assert_same(
            bag(map(tuple, shop.delta(name, 0, 5).collect())), bag(map(tuple, shop.delta(lower, 0, 5).collect())), name
        )


@pytest.mark.parametrize("name", ["daily", "monthly", "copied"])
def test_a_subscriber_of_a_summary_or_a_copy_has_the_view_at_every_position(shop: Warehouse, name: str) -> None:
    shop.add_subscriber(f"of_{name}", name)
    held: Counter[tuple[object, ...]] = Counter()
    seen = []
    for batch in shop.batches(f"of_{name}", most_rows=1):
        columns = [column for column in batch.rows.column_names if column not in ADDED]
        values = zip(*(batch.rows[column].to_pylist() for column in columns), strict=True)
        for type_, row in zip(batch.rows[CHANGE_TYPE].to_pylist(), values, strict=True):
            held[row] += 1 if type_ in ("insert", "update_postimage") else -1
        assert_same(+held, rows(shop, name, batch.through), f"{name} at {batch.through}")
        seen += batch.rows[CHANGE_TYPE].to_pylist()
    assert "update_preimage" in seen
    shop.remove_subscriber(f"of_{name}")


def test_a_subscriber_of_a_copy_holds_the_delta_that_it_shares(shop: Warehouse) -> None:
    shop.add_subscriber("slow", "monthly", 2)
    done = shop.maintain(["daily"], prune_before=4)
    assert any("subscriber 'slow' is at csn 2" in one.reason for one in done.actions)
    shop.remove_subscriber("slow")
    shop.maintain(["daily"], prune_before=4)
    assert shop.verify("monthly", 4).equal
    with pytest.raises(
        errors.OutOfReach, match="Cannot read view 'monthly' at csn 3: its changes are stored from csn 4"
    ):
        shop.read("monthly", 3)


def test_who_gives_up_csns_has_a_delta_of_its_own(shop: Warehouse) -> None:
    shop.create_view(
        "CREATE MATERIALIZED VIEW each TBLPROPERTIES ('rollview.detail' = 'refresh') AS SELECT * FROM large"
    )
    shop.sql("INSERT INTO sales VALUES (7, 'OH', 70)")
    shop.refresh()
    assert delta_rows(shop, "each") > 0
    assert_verified(shop)
