"""Where the parts of a text stand."""

from __future__ import annotations

import pytest

from rollview.algebra.clauses import PartKind, clauses_of, edited, without


def parts(text: str, kind: PartKind) -> list[str]:
    return [text[slice(*part.span)] for part in clauses_of(text).of(kind)]


def test_a_query_without_tables_is_all_outputs() -> None:
    assert parts("SELECT 1 AS one, f(2, 3) AS two", PartKind.OUTPUT) == ["1 AS one", "f(2, 3) AS two"]


@pytest.mark.parametrize("word", ["", "DISTINCT ", "ALL ", "/*+ BROADCAST(t) */ "])
def test_words_before_the_outputs_are_none_of_them(word: str) -> None:
    assert parts(f"SELECT {word}a, b FROM t", PartKind.OUTPUT) == ["a", "b"]


@pytest.mark.parametrize("kind", [PartKind.WHERE, PartKind.HAVING])
@pytest.mark.parametrize(
    ("conditions", "found"),
    [
        ("a = 1 AND b = 2", ["a = 1", "b = 2"]),
        ("a = 1 AND b = 2 OR c = 3", ["a = 1 AND b = 2 OR c = 3"]),
        ("a = 1 AND (b = 2 OR c = 3)", ["a = 1", "(b = 2 OR c = 3)"]),
        ("a BETWEEN 1 AND 2 AND b = 2", ["a BETWEEN 1 AND 2", "b = 2"]),
        ("CASE WHEN a AND b THEN c END AND d", ["CASE WHEN a AND b THEN c END", "d"]),
        ("a[b AND c] AND d", ["a[b AND c]", "d"]),
    ],
)
def test_conditions_are_parts_unless_an_or_ties_them(kind: PartKind, conditions: str, found: list[str]) -> None:
    clause = f"WHERE {conditions}" if kind is PartKind.WHERE else f"GROUP BY a HAVING {conditions}"
    assert parts(f"SELECT a FROM t {clause} ORDER BY a", kind) == found


def test_conditions_of_rows_end_where_those_of_groups_begin() -> None:
    text = "SELECT a FROM t WHERE b = 1 HAVING c = 2"
    assert (parts(text, PartKind.WHERE), parts(text, PartKind.HAVING)) == (["b = 1"], ["c = 2"])


@pytest.mark.parametrize(
    ("joins", "found"),
    [
        ("t JOIN u ON t.a = u.a LEFT OUTER JOIN v USING (a)", ["JOIN u ON t.a = u.a", "LEFT OUTER JOIN v USING (a)"]),
        ("t, u", [", u"]),
        ("t JOIN u ON left(t.a, 1) = u.a JOIN v ON TRUE", ["JOIN u ON left(t.a, 1) = u.a", "JOIN v ON TRUE"]),
        ("(SELECT * FROM t JOIN w ON TRUE) JOIN u ON TRUE", ["JOIN u ON TRUE"]),
    ],
)
def test_joins_begin_at_their_first_word(joins: str, found: list[str]) -> None:
    assert parts(f"SELECT a FROM {joins} WHERE b", PartKind.JOIN) == found


@pytest.mark.parametrize(
    ("text", "gone", "left"),
    [
        ("SELECT a, b, c FROM t", (PartKind.OUTPUT, 0), "SELECT  b, c FROM t"),
        ("SELECT a, b, c FROM t", (PartKind.OUTPUT, 1), "SELECT a , c FROM t"),
        ("SELECT a FROM t WHERE b AND c", (PartKind.WHERE, 0), "SELECT a FROM t WHERE   c"),
        ("SELECT a FROM t WHERE b GROUP BY a", (PartKind.WHERE, 0), "SELECT a FROM t   GROUP BY a"),
        ("SELECT a FROM t JOIN u ON b WHERE c", (PartKind.JOIN, 0), "SELECT a FROM t  WHERE c"),
    ],
)
def test_a_part_goes_with_the_word_that_joins_it(text: str, gone: tuple[PartKind, int], left: str) -> None:
    clauses = clauses_of(text)
    part = clauses.of(gone[0])[gone[1]]
    assert clauses.at(part.span[0]) == part
    assert edited(text, without(text, clauses, [part])).split() == left.split()
