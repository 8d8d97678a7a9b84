"""Fresh warehouses, and what plain readers see of them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable
from tests.servers.java import COMPILED
from tests.spark.oracle.bags import Bag, assert_same, bag

from rollview.catalog import Catalog, Part
from rollview.core.names import physical
from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PLAIN = {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "1"}
"""Small work is planned once, in one piece."""


def fresh(spark: SparkSession, root: Path, *, plain: bool = True, **catalog: Any) -> Warehouse:
    """A new warehouse. ``plain``: its queries are interpreted, and planned once; otherwise as users have it.

    ``catalog``: options of its catalog, a wall clock for example.
    """
    Warehouse.create(root).close()
    return opened(spark, root, plain=plain, **catalog)


def copied(spark: SparkSession, written: Path, root: Path) -> Warehouse:
    """A warehouse as it was written once for several tests, for one of them to change."""
    return opened(spark, shutil.copytree(written, root))


def opened(spark: SparkSession, root: Path, *, plain: bool = True, **catalog: Any) -> Warehouse:
    warehouse = Warehouse.open(root, spark=spark)
    if catalog:
        warehouse.catalog.close()
        warehouse._place.catalog = Catalog.open(root / "catalog.db", **catalog)
    for key, value in (PLAIN if plain else COMPILED).items():
        warehouse.spark.conf.set(key, value)
    return warehouse


def rows(warehouse: Warehouse, name: str, at: Any = None) -> Bag:
    return bag(warehouse.read(name, as_of=at).collect())


def extent(warehouse: Warehouse, name: str) -> Bag:
    """The view's rows as any Delta reader sees them: its columns in order, no other."""
    view = warehouse.snapshot().get(name)
    folder = warehouse.root / "data" / view.folder / Part.EXTENT
    data = DeltaTable(folder, version=view.pins[Part.EXTENT].version).to_pyarrow_table()
    assert data.column_names == [physical(column) for column in view.schema.names]
    return bag(zip(*(map(_positional, column.to_pylist()) for column in data.columns), strict=True))


def _positional(value: Any) -> Any:
    """Arrow gives a struct's fields by name, Spark by place."""
    return tuple(map(_positional, value.values())) if isinstance(value, dict) else value


def assert_verified(warehouse: Warehouse, *names: str) -> None:
    """Every view equals its definition and its extent read by others."""
    for name in names or tuple(view.name for view in warehouse.snapshot().views()):
        verification = warehouse.verify(name)
        assert verification.equal, verification
        assert_same(extent(warehouse, name), rows(warehouse, name), f"extent of {name}")
