"""A query that Spark has analysed, to be run again without that.

Law: names and types are looked up once. Every run is planned anew, over the files that its index knows by then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rollview.core.lazy import lazy_module

if TYPE_CHECKING:
    import pyspark
    from pyspark.sql import DataFrame, SparkSession
else:
    pyspark = lazy_module("pyspark")


def file_index(data: DataFrame) -> Any:
    """What Spark remembers of the files behind a DataFrame that reads one folder; its ``refresh()`` looks again."""
    return data._jdf.queryExecution().analyzed().collectLeaves().head().relation().location()


class Analysed:
    """``session``: by whose settings it is planned and run, if not by those of its own."""

    def __init__(self, data: DataFrame, session: SparkSession | None = None) -> None:
        self._session = session or data.sparkSession
        self._plan = data._jdf.queryExecution().analyzed()
        jvm: Any = self._session._jvm
        self._datasets = jvm.org.apache.spark.sql.classic.Dataset

    def again(self) -> DataFrame:
        return pyspark.sql.DataFrame(self._datasets.ofRows(self._session._jsparkSession, self._plan), self._session)
