"""What Spark said is told in one sentence."""

from __future__ import annotations

from pyspark.errors import ParseException

from rollview.engine.failures import said


def test_a_sentence_that_begins_on_the_second_line_is_told() -> None:
    error = ParseException(
        "\n[PARSE_SYNTAX_ERROR] Syntax error at or near 'FROM'. (line 1, pos 7)\n\n== SQL ==\nSELECT FROM t"
    )
    assert said(error) == "[PARSE_SYNTAX_ERROR] Syntax error at or near 'FROM'. (line 1, pos 7)"
