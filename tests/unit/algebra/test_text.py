"""What is parsed and written again is what the author wrote, and a failure has its place in the text."""

from __future__ import annotations

import pytest
from sqlglot import exp

from rollview.algebra.levels import parenthesised
from rollview.algebra.text import parse_one, parse_statements, render
from rollview.errors import EnvironmentFault, SqlError

VERBATIM = """
a DIV b
DATE_ADD(d, 1)
DATEADD(MONTH, 1, d)
DATEADD('MONTH', 1, d)
TO_TIMESTAMP(w)
UNIX_TIMESTAMP(w, 'yyyy')
GET_JSON_OBJECT(j, '$.A')
ARRAY(1, 2)[0]
MAP('k', 1)['k']
ELEMENT_AT(x, -1)
SUBSTRING(w, 0, 2)
SPLIT(w, ',', 2)
TRUNC(d, 'MM')
DATE_TRUNC('MONTH', d)
LOG(2, 8)
DECODE(k, 1, 'a', 'b')
NVL2(k, 1, 2)
CHAR(65)
MOD(k, 2)
ANY(k)
NAMED_STRUCT('a', 1).a
CAST('06:30' AS TIME)
CAST(x AS DECIMAL)
FROM_UTC_TIMESTAMP(t, 'CET')
TRIM(BOTH 'x' FROM w)
TRANSFORM(x, y -> y + 1)
AGGREGATE(x, 0, (a, v) -> a + v, a -> a * 2)
WEEKOFYEAR(d)
APPROX_COUNT_DISTINCT(k, 0.05)
SORT_ARRAY(x, FALSE)
CAST(k AS STRING)
CAST((-1.5) AS DOUBLE)
""".strip().splitlines()


@pytest.mark.parametrize("expression", VERBATIM)
def test_an_expression_is_written_as_it_was_read(expression: str) -> None:
    assert render(parse_one(f"SELECT {expression}")) == f"SELECT {expression}"


@pytest.mark.parametrize(("call", "columns"), [("DATE_ADD(d, 1)", ["d"]), ("DATEADD(MONTH, 1, d)", ["d"])])
def test_a_unit_is_no_column(call: str, columns: list[str]) -> None:
    assert [column.name for column in parse_one(f"SELECT {call}").find_all(exp.Column)] == columns


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'it''s'", "it's"),
        ('"say ""hi"""', 'say "hi"'),
        (r"'it\'s'", "it's"),
        (r"'a\nb'", "a\nb"),
        (r"r'\d'", r"\d"),
        ("''''", "'"),
        ("''", ""),
    ],
)
def test_a_string_has_the_value_that_spark_gives_it(text: str, value: str) -> None:
    assert parse_one(f"SELECT {text} AS a").selects[0].this.name == value  # type: ignore[attr-defined]
    assert parse_one(render(parse_one(f"SELECT {text} AS a"))).selects[0].this.name == value  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("SELECT k FROM r WHERE", 1, 21),
        ("SELECT k\nFROM r\nWHERE (k", 3, 8),
        ("SELECT k k k FROM r", 1, 12),
        ("SELECT k\nFROM 'r", None, None),
    ],
)
def test_broken_sql_has_a_place_if_its_words_can_be_told(text: str, line: int | None, column: int | None) -> None:
    with pytest.raises(SqlError) as caught:
        parse_one(text)
    assert (caught.value.facts["line"], caught.value.facts["column"]) == (line, column)
    assert "sqlglot" not in caught.value.message


@pytest.mark.parametrize(
    "text", ["SELECT 1;\n-- the end", "-- first\n;SELECT 1; /* and */ ; -- last\n", "SELECT 1 -- one"]
)
def test_a_comment_alone_is_no_statement(text: str) -> None:
    assert len(parse_statements(text)) == 1


def test_what_is_not_known_is_parsed_in_silence(caplog: pytest.LogCaptureFixture) -> None:
    parse_one("SHOW TABLES")
    assert not caplog.records


HIDDEN = """SELECT -- \\
 /*
reflect('java.lang.Math', 'abs', 1) AS b -- */ 1 AS b"""
"""To Spark the comment goes on in the second line, so it calls reflect; to the parser there is nothing but 1 AS b."""


def test_a_number_with_a_sign_and_a_suffix_has_the_type_of_its_digits() -> None:
    assert render(parse_one("SELECT -1.5BD, 2 - .25bd")) == (
        "SELECT CAST('-1.5' AS DECIMAL(2, 1)), 2 - CAST('0.25' AS DECIMAL(2, 2))"
    )


def test_a_parser_that_cannot_be_extended_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise TypeError("interpreted classes cannot inherit from compiled")

    monkeypatch.setattr("sqlglot.parse", refuse)
    with pytest.raises(TypeError, match="interpreted"):
        parse_one("SELECT 1")
    monkeypatch.setattr("sqlglot.parser.__file__", "parser.cpython-311-x86_64-linux-gnu.so")
    with pytest.raises(EnvironmentFault) as refusal:
        parse_one("SELECT 1")
    assert refusal.value.hint is not None
    assert "pip uninstall sqlglotc" in refusal.value.hint


def test_a_comment_that_goes_on_for_spark_alone_is_refused() -> None:
    with pytest.raises(SqlError, match="A comment ends in a backslash") as refusal:
        parse_statements(HIDDEN)
    assert refusal.value.facts["line"] == 1
    for text in ("SELECT 1 AS a -- \\\n", "-- \\\nSELECT 1 AS a"):
        with pytest.raises(SqlError):
            parse_statements(text)


def test_a_backslash_in_a_text_or_before_the_end_is_none_of_that() -> None:
    for text in ("SELECT 'a\\\nb' AS a", "SELECT 1 AS a -- a \\ b\n", "SELECT 1 AS a -- b\\"):
        assert len(parse_statements(text)) == 1


@pytest.mark.parametrize(
    ("text", "in_full"),
    [
        ("a + b * c > 2 AND NOT d", "((a + (b * c)) > 2) AND (NOT d)"),
        ("a - b - c", "(a - b) - c"),
        ("F(a) + x[1]", "F(a) + x[1]"),
    ],
)
def test_parentheses_around_all_operands_say_how_a_text_is_read(text: str, in_full: str) -> None:
    """For engines with other levels of operators."""
    tree = parse_one(f"SELECT {text}")
    assert render(parenthesised(tree.copy(), always=True)) == f"SELECT {in_full}"
    assert render(parenthesised(tree)) == f"SELECT {text}"
