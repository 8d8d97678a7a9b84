"""Views over tables that are not copied are exact at every csn, and what cannot be is refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest
from tests.servers.postgres import postgres_server
from tests.sizes import times
from tests.sources.harness import capture
from tests.spark.sources.shop_at_sources import (
    TABLES,
    VIEWS,
    Database,
    check_views,
    postgres_shop,
    sqlite_shop,
    transaction,
)

from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["postgres_server"]

pytestmark = pytest.mark.spark

ALL = tuple(TABLES)


@pytest.fixture(
    params=[
        "sqlite",
        pytest.param("postgres", marks=pytest.mark.postgres),
        pytest.param("both", marks=pytest.mark.postgres),
    ]
)
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Database, ...]]:
    with ExitStack() as stack:
        if request.param == "sqlite":
            yield (stack.enter_context(sqlite_shop(tmp_path, ALL)),)
            return
        server = request.getfixturevalue("postgres_server")
        if request.param == "postgres":
            yield (stack.enter_context(postgres_shop(server, ALL)),)
            return
        first = stack.enter_context(sqlite_shop(tmp_path, ("orders", "visits")))
        yield first, stack.enter_context(postgres_shop(server, ("customers", "regions")))


@pytest.fixture
def warehouse(spark: SparkSession, tmp_path: Path) -> Iterator[Warehouse]:
    with Warehouse.create(tmp_path / "w") as made, closing(Warehouse.open(made.root, spark=spark)) as opened:
        yield opened


@pytest.mark.parametrize("seed", range(times(2, 20)))
def test_views_that_ask_are_exact_at_every_csn(shop: tuple[Database, ...], warehouse: Warehouse, seed: int) -> None:
    chance = Random(seed)
    asked = frozenset(ALL if seed == 0 else chance.sample(ALL, chance.randint(1, 3)))
    for _ in range(20):
        transaction(chance.choice(shop), chance)
    for number, database in enumerate(shop):
        warehouse.add_source(f"s{number}", database.settings(asked), declared=[text for text, _ in VIEWS.values()])
    capture(warehouse)
    first = {table: database.rows(table) for database in shop for table in database.tables}
    began = warehouse.snapshot().moment.csn
    assert {name for name in ALL if not warehouse.snapshot().get(name).is_kept} == asked
    for place, (text, _) in enumerate(VIEWS.values()):
        for _ in range(3 * place):
            transaction(chance.choice(shop), chance)
        warehouse.create_view(text)
    for _ in range(12):
        for _ in range(chance.randint(0, 4)):
            transaction(chance.choice(shop), chance)
        if chance.random() < 0.6:
            capture(warehouse)
        if chance.random() < 0.4:
            # Commits that are not captured yet are seen by what is asked.
            transaction(chance.choice(shop), chance)
            warehouse.refresh()
        if chance.random() < 0.2:
            warehouse.maintain()
    capture(warehouse)
    transaction(chance.choice(shop), chance)
    warehouse.refresh()
    assert check_views(warehouse, tuple(VIEWS), first, began) > 10
    assert {name for name in ALL if not warehouse.snapshot().get(name).is_kept} == asked
