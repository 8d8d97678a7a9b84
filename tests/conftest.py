"""What all tests of a process share: one Spark session, and one server of each kind, started by the first that asks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from rollview.engine import session
from tests.servers.java import INTERPRETED, SMALL
from tests.servers.mariadb import mariadb_server
from tests.servers.mysql import mysql_server
from tests.servers.postgres import postgres_server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["mariadb_server", "mysql_server", "postgres_server"]

PARTITIONS = "spark.sql.shuffle.partitions"
SETTINGS = {**SMALL, **INTERPRETED, "spark.master": "local[2]", PARTITIONS: "2"}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Tuned as the product tunes its own, on a Java machine for little data, and without compiling queries."""
    started = session.start(SETTINGS, app="rollview tests")
    yield started
    started.stop()


@pytest.fixture(autouse=True)
def launched(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that is marked ``spark`` and lets rollview look for a session finds this one, and leaves it as it was."""
    if request.node.get_closest_marker("spark") is None:
        yield
        return
    session = request.getfixturevalue("spark")
    yield
    session.conf.set(PARTITIONS, SETTINGS[PARTITIONS])
