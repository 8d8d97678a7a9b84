from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from tests.faults.crew import Crew, crew_on

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def crew(spark: SparkSession) -> Iterator[Crew]:
    with crew_on(spark) as made:
        yield made
