"""One Spark session for the whole run, tuned as the product tunes its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from rollview.engine import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    started = session.start({"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2"}, app="rollview tests")
    yield started
    started.stop()
