"""Whether two queries mean the same is told beside the session, where other threads plan theirs meanwhile."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import SparkSession

from rollview.engine.meaning import mean_the_same
from rollview.engine.session import RULES_LEFT_OUT


def test_a_long_form_means_the_same_and_another_condition_does_not(spark: SparkSession) -> None:
    one = spark.sql("WITH c AS (SELECT id FROM range(3)) SELECT * FROM c")
    assert mean_the_same(one, spark.sql("SELECT x.id FROM (SELECT * FROM range(3)) AS x"))
    assert not mean_the_same(one, spark.sql("SELECT x.id FROM range(3) AS x WHERE x.id > 1"))


def test_the_session_leaves_out_the_same_rules_all_the_while(spark: SparkSession) -> None:
    one, other = spark.sql("WITH c AS (SELECT id FROM range(3)) SELECT * FROM c"), spark.sql("SELECT id FROM range(3)")
    before, seen = spark.conf.get(RULES_LEFT_OUT), set[str | None]()
    with ThreadPoolExecutor() as pool:
        compared = pool.submit(lambda: [mean_the_same(one, other) for _ in range(10)])
        while not compared.done():
            seen.add(spark.conf.get(RULES_LEFT_OUT))
    assert compared.result() == [True] * 10
    assert seen == {before}
