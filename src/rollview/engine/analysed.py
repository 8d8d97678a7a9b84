"""A query that Spark has analysed and planned, to be run again without that.

Law: names and types are looked up once, and how to join too where plans are kept. Every run is a fresh copy of such a
plan, so it reads the files that its index knows by then. A plan is exact over whatever files there are; only how quick
it is follows their sizes, so it is made anew where much more is read than it was made for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rollview.core.lazy import lazy_module

if TYPE_CHECKING:
    import pyspark
    from pyspark.sql import DataFrame, SparkSession
else:
    pyspark = lazy_module("pyspark")

_GROWN = 8
"""So many times the bytes that a plan was made for are still read by it."""
_FEW_BYTES = 1 << 20
"""A plan for fewer is the same as one for so many."""
_ADAPTIVE = "spark.sql.adaptive.enabled"


def file_index(data: DataFrame) -> Any:
    """What Spark remembers of the files behind a DataFrame that reads one folder; its ``refresh()`` looks again."""
    return data._jdf.queryExecution().analyzed().collectLeaves().head().relation().location()


def run_in(session: SparkSession, data: DataFrame) -> DataFrame:
    """The same query, planned and run by another session's settings."""
    return _of_plan(session, data._jdf.queryExecution().analyzed())


class Analysed:
    """``keeps_plan``: nothing in it but the files differs between runs, not even the time of day."""

    def __init__(self, data: DataFrame, *, keeps_plan: bool = False) -> None:
        self._session = data.sparkSession
        self._analysed = data._jdf.queryExecution().analyzed()
        self._planned: Any = None
        self._planned_for = 0
        # An adaptive plan is made anew on the way, from the logical one.
        self._keeps_plan = keeps_plan and self._session.conf.get(_ADAPTIVE) == "false"

    def again(self, size: int = 0) -> DataFrame:
        """``size``: bytes of the files that are read this time and were others before."""
        if not self._keeps_plan:
            return _of_plan(self._session, self._analysed)
        if self._planned is None or size > _GROWN * self._planned_for:
            self._planned, self._planned_for = self._plan(), max(size, _FEW_BYTES)
        return _of_plan(self._session, self._planned)

    def _plan(self) -> Any:
        """A leaf that stands for the query's result, and is planned as the physical plan that was made for it."""
        execution = _of_plan(self._session, self._analysed)._jdf.queryExecution()
        jvm: Any = self._session._jvm
        leaf = jvm.org.apache.spark.sql.execution.adaptive.LogicalQueryStage
        return leaf(execution.optimizedPlan(), execution.sparkPlan())


def _of_plan(session: SparkSession, plan: Any) -> DataFrame:
    jvm: Any = session._jvm
    found = jvm.org.apache.spark.sql.classic.Dataset.ofRows(session._jsparkSession, plan)
    return pyspark.sql.DataFrame(found, session)
