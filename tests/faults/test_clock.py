"""The system's clock jumps or stands still. Rows and csns do not depend on it, and ledger time never goes back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from tests.faults.crew import Place
from tests.faults.shop import VIEWS, Shop, check_every_csn, check_ledger, check_stored

from rollview.catalog import Catalog, Part

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2030, 3, 31, 1, 59, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def test_rows_do_not_depend_on_the_clock(spark: SparkSession, tmp_path: Path) -> None:
    clock, shop = Clock(), Shop.founded(Place(tmp_path / "shop"), spark)
    moments = []
    for jump in (timedelta(0), -HOUR, timedelta(0), DAY, -2 * DAY, HOUR, timedelta(days=-4000), timedelta(days=8000)):
        clock.now += jump
        with shop.opened() as warehouse:
            warehouse.catalog.close()
            warehouse.catalog = Catalog.open(shop.place.root / "catalog.db", wall_clock=clock)
            shop.commit(warehouse)
            assert warehouse.refresh().csn == shop.csn
            moments.append(warehouse.snapshot().moment)
            check_stored(shop, warehouse.snapshot())
            assert {warehouse.snapshot().get(name).pins[Part.EXTENT].through for name in VIEWS} == {shop.csn}
            assert all(warehouse.catalog.csn_at(moment.time) == moment.csn for moment in moments)
    assert all(after.csn == before.csn + 1 and after.time > before.time for before, after in pairwise(moments))
    with shop.opened() as warehouse:
        check_ledger(shop, warehouse)
        check_every_csn(shop, warehouse)
        shop.commit(warehouse)
        late = [view.staleness_seconds for view in warehouse.status().views]
        assert all(seconds >= 0 for seconds in late), "a commit of the future is not late by less than nothing"
