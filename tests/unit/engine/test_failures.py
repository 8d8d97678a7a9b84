"""What Spark said is told in one sentence."""

from __future__ import annotations

from pyspark.errors import ParseException

from rollview.engine.failures import said


def test_a_sentence_that_begins_on_the_second_line_is_told() -> None:
    error = ParseException(
        "\n[PARSE_SYNTAX_ERROR] Syntax error at or near 'FROM'. (line 1, pos 7)\n\n== SQL ==\nSELECT FROM t"
    )
    assert said(error) == "[PARSE_SYNTAX_ERROR] Syntax error at or near 'FROM'. (line 1, pos 7)"


def test_what_java_wraps_is_told_by_its_cause() -> None:
    error = RuntimeError(
        "An error occurred while calling o350.getResult.\n"
        ": org.apache.spark.SparkException: Exception thrown in awaitResult: \n"
        "\tat org.apache.spark.util.ThreadUtils$.awaitResult(ThreadUtils.scala:359)\n"
        "Caused by: java.util.NoSuchElementException: key not found: k#60\n"
        "\tat scala.collection.MapOps.default(Map.scala:289)"
    )
    assert said(error) == "key not found: k#60"


def test_what_java_says_itself_is_told_without_how_it_was_called() -> None:
    error = RuntimeError("An error occurred while calling o9.collect.\n: java.lang.OutOfMemoryError: Java heap space\n")
    assert said(error) == "Java heap space"
