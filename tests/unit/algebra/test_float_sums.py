"""A sum of floating numbers depends on the order of adding: it is kept, or the view is recomputed whole."""

from __future__ import annotations

import pytest
from tests.property.duck import Duck, declare_query
from tests.property.schemas import BAGS

from rollview.algebra.float_sums import order_dependent_sum
from rollview.algebra.resolve import Known
from rollview.algebra.summary import find_aggregate
from rollview.algebra.view import Mode, outline
from rollview.core.schema import Column, Schema

KNOWN = {table.name: table for table in BAGS}


@pytest.mark.parametrize(
    ("query", "mode"),
    [
        ("SELECT g, SUM(z) AS s FROM t GROUP BY g", Mode.SUMMARY),
        ("SELECT g, SUM(z) AS s, MAX(z) AS m FROM t GROUP BY g", Mode.WHOLE),
        ("SELECT g, SUM(k) AS s, MAX(z) AS m FROM t GROUP BY g", Mode.INCREMENTAL),
        ("SELECT g, SUM(n) AS s FROM (SELECT g, SUM(z) AS n FROM t GROUP BY g, k) AS q GROUP BY g", Mode.WHOLE),
        ("SELECT g, SUM(n) AS s FROM (SELECT g, MAX(z) AS n FROM t GROUP BY g, k) AS q GROUP BY g", Mode.SUMMARY),
        ("SELECT g, REGR_SLOPE(z, k) AS s FROM t GROUP BY g", Mode.WHOLE),
    ],
)
def test_what_would_be_added_again_in_another_order(query: str, mode: Mode) -> None:
    assert Duck(BAGS).compile("v", query).mode is mode


def test_counting_adds_nothing_up() -> None:
    rel = outline(declare_query("v", "SELECT g, REGR_COUNT(z, k) AS n FROM t GROUP BY g"), KNOWN).rel
    assert rel is not None
    assert order_dependent_sum(rel, None, {}, kept=False) is None


@pytest.mark.parametrize(
    "query",
    [
        "SELECT g, SUM(w) AS s FROM r GROUP BY g",
        "SELECT g, VECTOR_SUM(ARRAY(w)) AS s FROM r GROUP BY g",
        "SELECT s, COUNT(*) AS n FROM (SELECT g, AVG(w) AS s FROM r GROUP BY g) AS q GROUP BY s",
    ],
)
def test_numbers_in_texts_and_vectors_are_floating_numbers(query: str) -> None:
    made = outline(declare_query("v", query), KNOWN)
    assert made.rel is not None
    top = find_aggregate(made.rel)
    assert top is not None
    assert order_dependent_sum(made.rel, top[0], {"a1": "string"}, kept=False) is not None


@pytest.mark.parametrize(
    ("query", "again"),
    [
        ("SELECT MAX(b) AS m, AVG(b) AS a FROM n", False),
        ("SELECT a, COUNT(*) AS m FROM (SELECT g, AVG(b * 2) AS a FROM n GROUP BY g) AS q GROUP BY a", False),
        ("SELECT MAX(b) AS m, SUM(b) AS a FROM n", True),
        ("SELECT MAX(g) AS m, AVG(g) AS a FROM n", True),
        ("SELECT MAX(c) AS m, AVG(c) AS a FROM (SELECT g, COUNT(b) AS c FROM n GROUP BY g) AS q", True),
    ],
)
def test_an_average_of_big_numbers_is_a_sum_of_floating_ones(query: str, again: bool) -> None:
    known = {"n": Known("n", Schema((Column("g", "int"), Column("b", "bigint"))))}
    rel = outline(declare_query("v", query), known).rel
    assert rel is not None
    assert (order_dependent_sum(rel, None, {}, kept=False) is None) is again
