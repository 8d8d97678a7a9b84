from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.tables.local import Local

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def local(spark: SparkSession, tmp_path: Path) -> Iterator[Local]:
    made = Local(spark, tmp_path)
    yield made
    made.catalog.close()
