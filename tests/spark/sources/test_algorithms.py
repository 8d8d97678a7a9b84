"""Views that are kept by each algorithm are right at every csn that they publish, on real databases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest
from tests.servers.mariadb import mariadb_server
from tests.servers.postgres import postgres_server
from tests.spark.sources.shop_at_sources import (
    Rows,
    sqlite_shop,
    transaction,
)

from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["mariadb_server", "postgres_server"]

pytestmark = pytest.mark.spark

TABLES = ("orders", "customers", "regions")
QUIET = ("eca", "strobe", "t-strobe", "g-strobe")
COMPLETE = ("c-strobe", "c-tstrobe")


def keyed(rows: dict[str, Rows]) -> Rows:
    found: Rows = Counter()
    for (order, customer, amount), n in rows["orders"].items():
        for (key, region, name), m in rows["customers"].items():
            for (place, title), k in rows["regions"].items():
                if customer == key and region == place and amount > 2:
                    found[order, customer, region, amount, name, title] += n * m * k
    return found


def definition(name: str, algorithm: str, more: str = "") -> str:
    return f"""CREATE MATERIALIZED VIEW {name} TBLPROPERTIES ('rollview.algorithm' = '{algorithm}'{more}) AS
        SELECT o.id, c.id AS customer, r.id AS region, o.amount, c.name, r.title
        FROM orders o JOIN customers c ON o.customer = c.id JOIN regions r ON c.region = r.id WHERE o.amount > 2"""


@pytest.fixture
def warehouse(spark: SparkSession, tmp_path: Path) -> Iterator[Warehouse]:
    with Warehouse.create(tmp_path / "w") as made, closing(Warehouse.open(made.root, spark=spark)) as opened:
        yield opened


def test_sqlite(tmp_path: Path, warehouse: Warehouse) -> None:
    chance = Random(1)
    with sqlite_shop(tmp_path, TABLES) as shop:
        for _ in range(20):
            transaction(shop, chance)
        views = {f"v_{n.replace('-', '_')}": definition(f"v_{n.replace('-', '_')}", n) for n in (*QUIET, *COMPLETE)}
        warehouse.add_source("s", shop.settings(frozenset(TABLES)), declared=list(views.values()))
        for text in views.values():
            warehouse.create_view(text)
        for _ in range(3):
            for _ in range(5):
                transaction(shop, chance)
                warehouse.capture()
            done = warehouse.refresh()
            print(done)
            rows = {t: shop.rows(t) for t in TABLES}
            for v in views:
                assert Counter(map(tuple, warehouse.read(v).collect())) == keyed(rows), v
        print(warehouse.explain("v_eca"))
        print([source.asked for source in warehouse.sources()])
