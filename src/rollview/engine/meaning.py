"""Whether two queries mean the same to Spark, told without running either.

Law: yes is only said of queries whose rows are the same whatever is in their tables. No may be said of such queries
too, where Spark keeps them apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rollview.engine.abilities import is_connect
from rollview.engine.analysed import run_in
from rollview.engine.session import RULES_LEFT_OUT, tuned

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_OPTIMISE_ALL = {
    "spark.sql.optimizer.collapseProjectAlwaysInline": "true",
    "spark.sql.debug.maxToStringFields": "100000",
    RULES_LEFT_OUT: "",
}
_OPTIMISED = re.compile(r"== Optimized Logical Plan ==\n(.*?)\n== Physical Plan ==", re.DOTALL)
_NUMBER = re.compile(r"#(\d+)L?")


def mean_the_same(one: DataFrame, other: DataFrame) -> bool:
    """Both over the same tables, none of which the optimiser may see through."""
    if [field.dataType for field in one.schema] != [field.dataType for field in other.schema]:
        return False
    if one.sameSemantics(other):
        return True
    # Spark analyses a join by name, a CTE and a star into other plans than their long forms; optimised they are one.
    if is_connect(one.sparkSession):
        with _settings(one.sparkSession, _OPTIMISE_ALL):
            return _told(_plain(one)) == _told(_plain(other))
    beside = tuned(one.sparkSession, "meaning", _OPTIMISE_ALL)
    plans = (_plain(run_in(beside, data))._jdf.queryExecution().optimizedPlan() for data in (one, other))
    return bool(next(plans).sameResult(next(plans)))


def _plain(data: DataFrame) -> DataFrame:
    """Columns named alike; below a join, so that Spark leaves out an order that nothing asks for."""
    named = data.toDF(*(f"c{place}" for place in range(len(data.schema))))
    return named.crossJoin(data.sparkSession.range(2))


def _told(data: DataFrame) -> str:
    """The optimised plan in Spark's words, its columns numbered as they occur: all that Connect tells of it."""
    text: str = data._explain_string(extended=True)  # type: ignore[operator]
    found = _OPTIMISED.search(text)
    assert found is not None, "Spark tells an optimised plan"
    numbers: dict[str, int] = {}
    return _NUMBER.sub(lambda number: f"#{numbers.setdefault(number.group(1), len(numbers))}", found.group(1))


@contextmanager
def _settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    before = {key: spark.conf.get(key, None) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, own in before.items():
            if own is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, own)
