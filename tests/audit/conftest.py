"""The servers, sessions and warehouses that the tests of this folder share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rollview.engine import session
from rollview.warehouse import Warehouse
from tests.servers.mariadb import mariadb_server
from tests.servers.postgres import postgres_server
from tests.sources.harness import new_warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["mariadb_server", "postgres_server"]


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One session for the whole run, tuned as the product tunes its own."""
    started = session.start({"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2"}, app="rollview tests")
    yield started
    started.stop()


@pytest.fixture
def empty_warehouse(tmp_path: Path) -> Iterator[Warehouse]:
    with new_warehouse(tmp_path / "warehouse") as warehouse:
        yield warehouse
