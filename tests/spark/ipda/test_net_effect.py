"""Net effect: deletions before insertions, at most one of each per key, one change per group."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.oracle.bags import bag
from tests.spark.oracle.warehouses import assert_verified, extent, fresh, rows

from rollview import errors
from rollview.store.multiset import net
from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAUL, PETER, PATTY = ((52, f"{name}'s Petunias") for name in ("Paul", "Peter", "Patty"))


@pytest.fixture
def shop(spark: SparkSession, tmp_path: Path) -> Iterator[Warehouse]:
    with fresh(spark, tmp_path / "shop") as warehouse:
        warehouse.sql(
            "CREATE TABLE customer (custId INT PRIMARY KEY, name STRING, state STRING)",
            "CREATE TABLE sales (custId INT, amount INT)",
        )
        warehouse.sql(
            "INSERT INTO customer VALUES (52, 'Paul\\'s Petunias', 'WI'), (7, 'Ann', 'WI'), (8, 'Bea', 'IL')",
            "INSERT INTO sales SELECT 7, n FROM (SELECT explode(sequence(1, 9)) AS n)",
            "INSERT INTO sales VALUES (8, 1)",
        )
        warehouse.create_view(
            "CREATE MATERIALIZED VIEW WICust AS SELECT c.custId, c.name FROM customer c WHERE c.state = 'WI'"
        )
        warehouse.create_view(
            "CREATE MATERIALIZED VIEW StateCount AS SELECT c.state, COUNT(*) AS n, SUM(s.amount) AS amount "
            "FROM customer c JOIN sales s ON s.custId = c.custId GROUP BY c.state"
        )
        yield warehouse


def rename(warehouse: Warehouse, *owners: str) -> None:
    warehouse.sql(*(f"UPDATE customer SET name = '{owner}\\'s Petunias' WHERE custId = 52" for owner in owners))


def test_pauls_petunias_become_pattys_and_peters_are_seen_only_in_between(shop: Warehouse) -> None:
    rename(shop, "Peter")
    rename(shop, "Patty")
    shop.propagate(["WICust"])
    delta = shop.delta("WICust", 1, 3)
    assert bag(delta.collect()) == bag(
        [(*PAUL, -1, 2), (*PETER, 1, 2), (*PETER, -1, 3), (*PATTY, 1, 3)],
    )
    netted = net(delta.drop("_csn"), shop.snapshot().get("WICust").schema)
    assert bag(netted.collect()) == bag([(*PAUL, -1), (*PATTY, 1)])
    shop.roll(["WICust"], 3)
    assert extent(shop, "WICust") == bag([PATTY, (7, "Ann")])
    assert rows(shop, "WICust", 2) == bag([PETER, (7, "Ann")])
    assert rows(shop, "WICust", 1) == bag([PAUL, (7, "Ann")])


def test_within_one_transaction_peter_never_was(shop: Warehouse) -> None:
    rename(shop, "Peter", "Patty")
    shop.refresh(["WICust"])
    assert bag(shop.delta("WICust", 1, 2).collect()) == bag([(*PAUL, -1, 2), (*PATTY, 1, 2)])
    rename(shop, "Peter", "Patty")
    assert shop.snapshot().moment.csn == 2


def test_five_sales_more_and_seven_fewer_are_one_change_of_wisconsin(shop: Warehouse) -> None:
    shop.sql(
        "INSERT INTO sales SELECT 7, n FROM (SELECT explode(sequence(101, 105)) AS n)",
        "DELETE FROM sales WHERE custId = 7 AND amount IN (1, 2, 3, 4, 5, 101, 102)",
    )
    shop.refresh(["StateCount"])
    before, after = ("WI", 9, 45), ("WI", 7, 6 + 7 + 8 + 9 + 103 + 104 + 105)
    assert bag(shop.delta("StateCount", 1, 2).collect()) == bag([(*before, -1, 2), (*after, 1, 2)])
    assert extent(shop, "StateCount") == bag([after, ("IL", 1, 1)])


def test_a_group_that_empties_is_gone_and_one_that_returns_is_as_new(shop: Warehouse) -> None:
    shop.sql("DELETE FROM sales WHERE custId = 7")
    shop.sql("INSERT INTO sales VALUES (7, NULL)")
    shop.sql("INSERT INTO sales VALUES (7, 3)", "DELETE FROM sales WHERE amount IS NULL")
    shop.refresh(["StateCount"])
    seen = {csn: {row[1:] for row in rows(shop, "StateCount", csn) if row[0] == "WI"} for csn in range(1, 5)}
    assert seen == {1: {(9, 45)}, 2: set(), 3: {(1, None)}, 4: {(1, 3)}}
    assert_verified(shop, "StateCount")


def test_a_late_commit_is_not_lost_and_nothing_is_applied_twice(shop: Warehouse) -> None:
    """Algorithm 1 gives a record the time at which it was made, so an apply in between misses it for ever."""
    late = shop.transaction()
    slow = late.__enter__()
    slow.sql("INSERT INTO sales VALUES (8, 100)")
    shop.sql("INSERT INTO sales VALUES (8, 10)")
    shop.refresh()
    assert ("IL", 2, 11) in extent(shop, "StateCount")
    late.__exit__(None, None, None)
    assert slow.csn == shop.snapshot().moment.csn == 3
    for _ in range(2):
        shop.propagate()
        shop.refresh()
        shop.roll(["StateCount"], "latest")
    assert ("IL", 3, 111) in extent(shop, "StateCount")
    assert bag(shop.delta("StateCount", 1).collect()).total() == 4
    assert_verified(shop)


def test_a_transaction_that_failed_is_never_seen(shop: Warehouse) -> None:
    with pytest.raises(errors.SqlError), shop.transaction() as transaction:
        transaction.sql("INSERT INTO sales VALUES (8, 1000)", "INSERT INTO sales VALUES (1 / 0, 1)")
    shop.sql("INSERT INTO sales VALUES (8, 10)")
    shop.refresh()
    assert shop.snapshot().moment.csn == 2
    assert ("IL", 2, 11) in extent(shop, "StateCount")
