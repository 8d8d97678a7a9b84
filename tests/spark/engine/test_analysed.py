"""A query that was planned once reads the files of each run, by one plan as long as these are about as large."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rollview.engine import analysed, session
from rollview.engine.analysed import Analysed, file_index

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

QUERY = """
SELECT a.k, SUM(a.v * b.v) AS s, (SELECT MAX(v) FROM {t}) AS m FROM {t} AS a JOIN {t} AS b ON a.k = b.k GROUP BY a.k
"""


class Folder:
    """Spark's view of a folder with one file."""

    def __init__(self, spark: SparkSession, place: Path) -> None:
        self._place = place
        self.fill(())
        self.frame: DataFrame = spark.read.schema("k int, v bigint").parquet(str(place))
        self._index = file_index(self.frame)

    def fill(self, values: tuple[int, ...]) -> None:
        for old in self._place.iterdir():
            old.unlink()
        keys = pa.array([value % 3 for value in values], pa.int32())
        pq.write_table(pa.table({"k": keys, "v": pa.array(values, pa.int64())}), self._place / f"{len(values)}.parquet")

    def move(self, values: tuple[int, ...]) -> None:
        self.fill(values)
        self._index.refresh()


def expected(values: tuple[int, ...]) -> list[tuple[int, int, int]]:
    by_key = {key: [value for value in values if value % 3 == key] for key in range(3)}
    return [(key, sum(some) ** 2, max(values)) for key, some in by_key.items() if some]


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Those that were made, in order."""
    made: list[object] = []
    plan = Analysed._plan

    def noting(query: Analysed) -> object:
        made.append(plan(query))
        return made[-1]

    monkeypatch.setattr(Analysed, "_plan", noting)
    return made


@pytest.mark.parametrize("tuned", [session.for_few_rows, session.for_small_work])
def test_one_plan_reads_the_files_of_every_run(
    spark: SparkSession, tmp_path: Path, plans: list[object], tuned: Callable[[SparkSession], SparkSession]
) -> None:
    small = tuned(spark)
    folder = Folder(small, tmp_path)
    query = Analysed(small.sql(QUERY, t=folder.frame), keeps_plan=True)
    for values in [(), (1, 2, 3), (4,), (5, 6, 7, 8, 9, 10), ()]:
        folder.move(values)
        found = query.again().selectExpr("CAST(k AS BIGINT) AS k", "s", "m").orderBy("k").collect()
        assert [tuple(row) for row in found] == expected(values)
    assert len(plans) == 1


def test_a_plan_is_made_anew_where_much_more_is_read(spark: SparkSession, tmp_path: Path, plans: list[object]) -> None:
    small = session.for_small_work(spark)
    query = Analysed(small.sql("SELECT v FROM {t}", t=Folder(small, tmp_path).frame), keeps_plan=True)
    few = analysed._FEW_BYTES
    for size, made in [(0, 1), (few, 1), (8 * few, 1), (8 * few + 1, 2), (1, 2), (64 * few, 2), (70 * few, 3)]:
        query.again(size)
        assert len(plans) == made, size


def test_where_plans_adapt_while_they_run_no_plan_is_kept(
    spark: SparkSession, tmp_path: Path, plans: list[object]
) -> None:
    folder = Folder(spark, tmp_path)
    query = Analysed(spark.sql(QUERY, t=folder.frame), keeps_plan=True)
    for values in [(1, 2, 3), (4,)]:
        folder.move(values)
        assert sorted(tuple(row) for row in query.again().collect()) == expected(values)
    assert plans == []


def test_the_time_of_day_goes_on_where_no_plan_is_to_be_kept(spark: SparkSession) -> None:
    query = Analysed(session.for_small_work(spark).sql("SELECT current_timestamp() AS now"))
    first, second = (query.again().collect()[0].now for _ in range(2))
    assert first < second
