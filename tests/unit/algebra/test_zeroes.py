"""Where a value may be −0.0, both zeroes are kept apart; where it cannot be, nothing is spelled out."""

from __future__ import annotations

import pytest
from tests.property.duck import declare_query

from rollview.algebra import zeroes
from rollview.algebra.kinds import may_float
from rollview.algebra.resolve import Known
from rollview.algebra.view import outline
from rollview.core.schema import Column, Schema

COLUMNS = Schema((Column("k", "int"), Column("d", "double"), Column("f", "float"), Column("w", "string")))
TABLES = {name: Known(name, COLUMNS) for name in ("r", "s")}


def may(query: str) -> bool:
    rel = outline(declare_query("q", query), TABLES).rel
    assert rel is not None
    return may_float(rel, "v")


@pytest.mark.parametrize(
    "item",
    [
        *("d", "f", "d + 1", "-(d)", "COALESCE(k, d)", "CASE WHEN k > 1 THEN k ELSE d END", "1e0", "SQRT(k)"),
        *("CAST(w AS DOUBLE)", "IF(k > 1, d, 0)", "-w", "w * 1.5", "w + w", "COALESCE(w, 1.5)", "IF(k > 1, w, k)"),
        *("-SUBSTR(w, 1, 2)", "COALESCE(upper(w), 1.5)", "second(w) + d"),
    ],
)
def test_a_value_that_may_float(item: str) -> None:
    assert may(f"SELECT k, {item} AS v FROM r")


@pytest.mark.parametrize(
    "item",
    [
        *("k", "k + 1", "COALESCE(k, 7)", "1.5", "'1e0'", "NULL", "TRUE", "d > 1", "NOT d > 1", "d IS NULL OR k = 1"),
        *("CAST(d AS INT)", "CAST(d AS DECIMAL(9,2))", "CAST(d AS STRING)", "w", "COALESCE(w, 'x')"),
        *("CASE WHEN d > 1 THEN w ELSE 'x' END", "IF(d > 1, w, NULL)"),
        *("SUBSTR(d, 1, 2)", "upper(w)", "COALESCE(trim(w), 'x')", "year(w)", "length(d) + 1"),
    ],
)
def test_a_value_that_never_floats(item: str) -> None:
    assert not may(f"SELECT d, {item} AS v FROM r")


@pytest.mark.parametrize(
    ("query", "floats"),
    [
        ("SELECT COUNT(*) AS n, MAX(d) AS v FROM r", True),
        ("SELECT MAX(d) AS n, MAX(k) AS v FROM r", False),
        ("SELECT SUM(d) FILTER (WHERE k > 1) AS v FROM r", True),
        ("SELECT MIN(k) FILTER (WHERE k > 1) AS v FROM r", False),
        ("SELECT SUM(DISTINCT d) AS v FROM r", True),
        ("SELECT AVG(k) AS v FROM r", True),
        ("SELECT COUNT(d) AS v FROM r", False),
        ("SELECT k AS v FROM r UNION ALL SELECT d FROM s", True),
        ("SELECT k AS v FROM r UNION ALL SELECT k FROM s", False),
        ("SELECT w AS v FROM r UNION ALL SELECT k FROM s", True),
        ("SELECT w AS v FROM r UNION ALL SELECT w FROM s", False),
        ("SELECT SUM(w) AS v FROM r", True),
        ("SELECT MAX(w) AS v FROM r", False),
        ("SELECT q.m * 2 AS v FROM (SELECT MAX(w) AS m FROM r) AS q JOIN s ON s.k = 1", True),
        ("SELECT q.w * 2 AS v FROM (SELECT DISTINCT w FROM r) AS q", True),
        ("SELECT s.d AS v FROM r LEFT JOIN s ON r.k = s.k", True),
        ("SELECT r.k AS v FROM r LEFT JOIN s ON r.k = s.k", False),
    ],
)
def test_operators_pass_on_what_may_float(query: str, floats: bool) -> None:
    assert may(query) is floats


@pytest.mark.parametrize("query", ["SELECT DISTINCT d AS v FROM r", "SELECT d AS v, MAX(k) AS m FROM r GROUP BY d"])
def test_what_was_grouped_by_has_one_zero(query: str) -> None:
    assert not may(query)


def test_only_what_may_float_is_told_apart_by_its_spelling_too() -> None:
    rel = outline(declare_query("q", "SELECT k, d, w FROM r"), TABLES).rel
    assert rel is not None
    told = [expression.sql("spark") for expression in zeroes.identity(rel)]
    assert told == ["`k`", "`d`", "`w`", "CAST(`d` AS STRING)"]
