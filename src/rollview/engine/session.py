"""The Spark session: one of our own, here, on a cluster or over Spark Connect, or one beside the user's.

Law: what decides the meaning of SQL (``MEANING``) is the same in both, so a view means the same in every session.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from rollview.core.lazy import lazy_module
from rollview.core.references import secret_variables
from rollview.engine import abilities, archive, hidden, java, remote
from rollview.errors import EnvironmentFault, UsageError

if TYPE_CHECKING:
    import pyspark
    from pyspark import errors as spark_errors
    from pyspark.sql import SparkSession
else:
    pyspark = lazy_module("pyspark")
    spark_errors = lazy_module("pyspark.errors")

MEANING = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.relationPrecedence": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.parser.escapedStringLiterals": "false",
    # '${…}' in a user's text is text
    "spark.sql.variable.substitute": "false",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}

RULES_LEFT_OUT = "spark.sql.optimizer.excludedRules"

TUNING = {
    "spark.sql.adaptive.enabled": "true",
    # with it the time to plan doubles with every column that a condition names, and a wide summary has many
    "spark.sql.constraintPropagation.enabled": "false",
    # small results end in one task; larger ones in pieces of 16 MiB
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "16m",
    # files are always listed by name: never a job to look for them
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000000",
    # it fails on a subquery in SELECT over a union, which a table with changes is, and computes SELECT for no rows
    RULES_LEFT_OUT: "org.apache.spark.sql.catalyst.optimizer.PushProjectionThroughUnion",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # a failed query is told by rollview in its own words; where in Python it was built would be noted at every call
    "spark.sql.dataFrameQueryContext.enabled": "false",
}

_OURS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.locality.wait": "0s",
    # jobs of several workers share the cores, each worker with a pool of its own
    "spark.scheduler.mode": "FAIR",
    # compiled code of many views' queries is kept between their refreshes
    "spark.sql.codegen.cache.maxEntries": "2000",
    # nothing reads the history of jobs, so a long-lived session does not keep it
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "500",
    "spark.sql.ui.retainedExecutions": "5",
    # the Delta log says which files count: no markers, and no checksum files beside them
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "2",
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
}

# executors elsewhere could not reach this address
_HERE = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}

SMALL = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    # the size that Spark expects of a join is the product of its inputs' sizes; an exchange into one piece helps nobody
    "spark.sql.maxSinglePartitionBytes": str(2**63 - 1),
    # what only pays where much is read
    "spark.sql.optimizer.dynamicPartitionPruning.enabled": "false",
    "spark.sql.optimizer.runtime.bloomFilter.enabled": "false",
}

FEW_ROWS = {
    **SMALL,
    # else the expected size of a join of many inputs is beyond any bound
    "spark.sql.sources.fileCompressionFactor": "1e-9",
    # few rows are computed before code for them is compiled
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}

_beside: WeakKeyDictionary[SparkSession, dict[str, SparkSession]] = WeakKeyDictionary()
_lock = Lock()

_MASTER, _REMOTE = "spark.master", "spark.remote"
_SHORT = {"master": _MASTER, "remote": _REMOTE}
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_GIB = 1024**3


def start(conf: Mapping[str, str] | None = None, app: str = "rollview") -> SparkSession:
    """A session of our own; ``conf`` has the last word. It is local unless ``conf`` names a master or a server."""
    asked = {_SHORT.get(key, key): value for key, value in (conf or {}).items()}
    server = asked.pop(_REMOTE, None) or (None if _MASTER in asked else os.environ.get("SPARK_REMOTE"))
    _quieten()
    if server is not None:
        return remote.connect(server, {**TUNING, **MEANING, **asked, **_rules_left_out(asked)})
    return _launched(asked, app)


def _launched(conf: Mapping[str, str], app: str) -> SparkSession:
    secrets = hidden.secrets_in(conf)
    with _launch_environment(local=is_local(conf)) as found:
        builder = pyspark.sql.SparkSession.builder.appName(app)
        # To a Java that runs already they go over its own connection.
        by_file = {} if abilities.is_java_running() else secrets
        for key, value in plan_conf(found, conf).items():
            builder = builder if key in by_file else builder.config(key, value)
        try:
            with hidden.told_by_file(by_file):
                return builder.getOrCreate()
        except spark_errors.PySparkRuntimeError as cause:
            raise _cannot_start(found) from cause


def adopt(spark: SparkSession) -> SparkSession:
    """A session beside the user's own on the same Spark, with SQL's meaning fixed; theirs stays as it is."""
    session = abilities.fresh_beside(spark)
    if session is None:
        return _as_it_is(spark)
    own = {RULES_LEFT_OUT: spark.conf.get(RULES_LEFT_OUT, None) or ""}
    for key, value in {**MEANING, **TUNING, **_rules_left_out(own)}.items():
        if session.conf.isModifiable(key):
            session.conf.set(key, value)
    return session


def _as_it_is(spark: SparkSession) -> SparkSession:
    """The user's own session, where none can be made beside it: only if SQL means the same in it."""
    for key, value in MEANING.items():
        found = spark.conf.get(key, None)
        if found is not None and found.lower() != value.lower():
            raise UsageError(
                f"In the session that was given '{key}' is '{found}', and rollview needs '{value}'.",
                hint="Set it in the session, give rollview the server's address instead, or use PySpark 4.3 or newer.",
            )
    return spark


def for_small_work(spark: SparkSession) -> SparkSession:
    """A session beside this one, for queries over few rows: one piece after a shuffle, and no re-planning between."""
    return tuned(spark, "small", SMALL)


def for_few_rows(spark: SparkSession) -> SparkSession:
    """The same for queries that read nothing but few rows: one task, and no compiled code."""
    return tuned(spark, "few rows", FEW_ROWS)


def tuned(spark: SparkSession, name: str, settings: Mapping[str, str]) -> SparkSession:
    """The one session of this kind beside the given one."""
    if abilities.is_connect(spark):
        return spark
    with _lock:
        known = _beside.setdefault(spark, {})
        if name not in known:
            known[name] = abilities.copy_beside(spark)
            for key, value in settings.items():
                known[name].conf.set(key, value)
        return known[name]


def is_local(conf: Mapping[str, str]) -> bool:
    return conf.get(_MASTER, "local").startswith("local")


def plan_conf(found: java.Java, conf: Mapping[str, str]) -> dict[str, str]:
    """Everything the session is started with. Java options and rules left out add up; what else the user sets wins."""
    sized = {
        **(_here() if is_local(conf) else {}),
        "spark.driver.memory": f"{_memory_gib()}g",
        # Spark makes this folder, which stays empty, wherever the user happens to be
        "spark.sql.warehouse.dir": (java.cache_folder(os.environ) / "spark-warehouse").as_uri(),
    }
    options = [*_java_options(found), conf.get(_JAVA_OPTIONS, "")]
    last = {
        **_rules_left_out(conf),
        _JAVA_OPTIONS: " ".join(filter(None, options)),
        hidden.REDACTION: hidden.redaction(conf, hidden.secrets_in(conf)),
    }
    return {**_OURS, **TUNING, **sized, **MEANING, **conf, **last}


def _rules_left_out(conf: Mapping[str, str]) -> dict[str, str]:
    """Ours and the user's: Spark fails on some of our queries where a rule of ours is applied."""
    return {RULES_LEFT_OUT: ",".join(filter(None, (TUNING[RULES_LEFT_OUT], conf.get(RULES_LEFT_OUT))))}


def _here() -> dict[str, str]:
    """What is true only where the executors are in this process."""
    return {**_HERE, _MASTER: "local[*]", "spark.sql.shuffle.partitions": str(max(8, 2 * (os.cpu_count() or 1)))}


def _java_options(found: java.Java) -> Iterator[str]:
    yield f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}"
    # the Java machine prints its warnings on stdout, which is for data
    yield "-Xlog:disable"
    yield "-XX:+UseParallelGC"
    stored = archive.find_archive(found)
    if stored is not None:
        yield f"-XX:SharedArchiveFile={stored}"


def _quieten() -> None:
    """PySpark logs every failed query before it raises; the exception alone says it."""
    # As all of PySpark: loaded when there is to be a session.
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL + 1)


def _memory_gib() -> int:
    """A quarter of the machine, at least 1 GiB and at most 8."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min(8, max(1, pages // 4 // _GIB))


@contextmanager
def _launch_environment(*, local: bool) -> Iterator[java.Java]:
    """What Spark's launcher reads from the environment, there only while it is launched.

    ``PYSPARK_PYTHON`` stays: Spark reads it whenever Python workers start.
    """
    before = {name: os.environ.get(name) for name in ("JAVA_HOME", "SPARK_LOCAL_IP", java.UNSET)}
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ[java.UNSET] = " ".join(secret_variables())
    if local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    try:
        yield java.prepare()
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _cannot_start(found: java.Java) -> EnvironmentFault:
    return EnvironmentFault(
        f"Spark did not start with Java {found.version} from {found.origin} ({found.command}).",
        hint="What Java printed is above. Check the 'spark' part of rollview.yaml and JAVA_HOME.",
    )
