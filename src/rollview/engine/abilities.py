"""What a session can do, classic or over Spark Connect, and the plain way where it cannot.

Law: nothing here changes a session that is given; whoever asks for a session gets one beside it, on the same Spark.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

from rollview.core.lazy import lazy_module

if TYPE_CHECKING:
    import pyspark
    from pyspark.sql import DataFrame, SparkSession
else:
    pyspark = lazy_module("pyspark")

_GLOBAL_VIEWS = "spark.sql.globalTempDatabase"


def is_connect(spark: SparkSession) -> bool:
    return type(spark).__module__.startswith("pyspark.sql.connect")


def is_java_running() -> bool:
    """Whether this process has its Java already, so that a session is made without a launch."""
    return pyspark.SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ


def sees_local_links(spark: SparkSession) -> bool:
    """Whether all of this Spark runs here, so that it can be told that the files behind a query are others now."""
    return not is_connect(spark) and (spark.sparkContext.master or "").startswith("local")


def fresh_beside(spark: SparkSession) -> SparkSession | None:
    """A session with settings and temporary views of its own; None over Connect before PySpark 4.3."""
    return spark.newSession() if hasattr(spark, "newSession") else None


def copy_beside(spark: SparkSession) -> SparkSession:
    """A session with the same settings, to be tuned further. Only of a classic one: Connect has no cheap copy."""
    return pyspark.sql.SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())


def use_pool(spark: SparkSession, name: str) -> None:
    """Jobs of this thread share Spark with those of other pools, where its scheduler is fair. Connect has no pools."""
    if not is_connect(spark):
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", name)


@contextmanager
def within(spark: SparkSession, data: DataFrame) -> Iterator[DataFrame]:
    """The rows of ``data``, of whichever session of this Spark, as a DataFrame of ``spark``; inside, until its end.

    What ``data`` computes keeps the meaning that it has in its own session; what is built upon it here has the
    meaning of this one.
    """
    if data.sparkSession is spark:
        yield data
        return
    name = f"rv_{uuid4().hex}"
    # Names may repeat in a DataFrame, but not in a view.
    data.toDF(*(f"c{place}" for place in range(len(data.columns)))).createGlobalTempView(name)
    try:
        yield spark.table(f"{spark.conf.get(_GLOBAL_VIEWS)}.{name}").toDF(*data.columns)
    finally:
        spark.catalog.dropGlobalTempView(name)
