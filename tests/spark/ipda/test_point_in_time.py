"""Point-in-time refresh: one clock that never goes back; views rolled to one time agree."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.oracle.bags import bag
from tests.spark.oracle.warehouses import assert_verified, extent, fresh, rows

from rollview import errors
from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FRIDAY = datetime(2026, 12, 11, 17, 0, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


class Clock:
    def __init__(self, now: datetime) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock(FRIDAY)


@pytest.fixture
def shop(spark: SparkSession, tmp_path: Path, clock: Clock) -> Iterator[Warehouse]:
    with fresh(spark, tmp_path / "shop", wall_clock=clock) as warehouse:
        warehouse.sql("CREATE TABLE sales (state STRING, amount INT)")
        yield warehouse


def sell(warehouse: Warehouse, *amounts: int) -> None:
    warehouse.sql(f"INSERT INTO sales VALUES {', '.join(f'({chr(39)}WI{chr(39)}, {amount})' for amount in amounts)}")


def test_two_views_refreshed_to_one_moment_agree(shop: Warehouse, clock: Clock) -> None:
    shop.create_view("CREATE MATERIALIZED VIEW daily AS SELECT state, SUM(amount) AS amount FROM sales GROUP BY state")
    shop.create_view("CREATE MATERIALIZED VIEW large AS SELECT amount FROM sales WHERE amount >= 10")
    for amount in (10, 20, 30, 40):
        sell(shop, amount)
        clock.now += DAY
    sunday = FRIDAY + 2 * DAY
    refreshed = shop.refresh(to=sunday + HOUR)
    assert refreshed.csn == 3
    assert extent(shop, "daily") == bag([("WI", 60)])
    assert extent(shop, "large") == bag([(10,), (20,), (30,)])
    shop.propagate()
    rolled = shop.roll(["daily", "large"], FRIDAY + HOUR)
    assert (rolled.csn, {view.after for view in rolled.views}) == (1, {1})
    assert extent(shop, "daily") == bag([("WI", 10)])
    assert rows(shop, "large", sunday - HOUR) == bag([(10,), (20,)])
    assert rows(shop, "daily", FRIDAY - HOUR) == bag([])
    assert_verified(shop)


def test_one_definition_under_two_schedules(shop: Warehouse, clock: Clock) -> None:
    for name in ("by_day", "by_month"):
        shop.create_view(f"CREATE MATERIALIZED VIEW {name} AS SELECT COUNT(*) AS n FROM sales")
    for day in range(3):
        sell(shop, day)
        shop.refresh(["by_day"], to=clock.now)
        clock.now += DAY
    assert (extent(shop, "by_day"), extent(shop, "by_month")) == (bag([(3,)]), bag([(0,)]))
    shop.refresh(["by_month"], to=FRIDAY + DAY)
    assert extent(shop, "by_month") == bag([(2,)])


def test_a_clock_that_steps_back_keeps_csn_and_time_monotone(shop: Warehouse, clock: Clock) -> None:
    shop.create_view("CREATE MATERIALIZED VIEW n AS SELECT COUNT(*) AS n FROM sales")
    for hours in (0, -5, -4, 1):
        clock.now = FRIDAY + hours * HOUR
        sell(shop, hours)
        shop.refresh()
    ledger = shop.catalog.ledger()
    times = [entry.ledger_time for entry in ledger]
    assert [entry.csn for entry in ledger] == [1, 2, 3, 4]
    assert times == sorted(set(times))
    assert [shop.resolve(time) for time in times] == [1, 2, 3, 4]
    assert [rows(shop, "n", time) for time in times] == [bag([(n,)]) for n in (1, 2, 3, 4)]


def test_the_clock_goes_on_after_a_restart_with_a_slow_clock(shop: Warehouse, spark: SparkSession) -> None:
    sell(shop, 1)
    before = shop.snapshot().moment
    with Warehouse.open(shop.root, spark=spark) as again:
        again.catalog.close()
        from rollview.catalog import Catalog

        again._place.catalog = Catalog.open(shop.root / "catalog.db", wall_clock=Clock(FRIDAY - 9 * DAY))
        sell(again, 2)
        assert again.snapshot().moment.csn == before.csn + 1
        assert again.snapshot().moment.time > before.time


def test_a_moment_without_a_zone_and_a_csn_out_of_reach_are_refused(shop: Warehouse) -> None:
    sell(shop, 1)
    shop.create_view("CREATE MATERIALIZED VIEW n AS SELECT COUNT(*) AS n FROM sales")
    sell(shop, 2)
    with pytest.raises(errors.UsageError, match="zone"):
        shop.read("n", as_of=FRIDAY.replace(tzinfo=None))
    for csn in (0, 2):
        with pytest.raises(errors.OutOfReach):
            shop.roll(["n"], csn)
