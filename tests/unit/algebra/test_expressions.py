"""Pieces of SQL that operators are made of, as an engine evaluates them."""

from __future__ import annotations

import pytest
from sqlglot import exp
from tests.property.duck import Duck, in_duckdb

from rollview.algebra.expressions import column, over, select


@pytest.mark.parametrize(
    ("running", "before", "sums"),
    [(True, False, [1, 3, 7]), (False, True, [None, 1, 3]), (False, False, [3, 3, 7])],
)
def test_a_window_ends_with_the_row_or_before_it_or_with_its_equals(
    running: bool, before: bool, sums: list[int | None]
) -> None:
    window = over(exp.Sum(this=column(None, "x")), (), column(None, "at"), running=running, before=before)
    query = select(exp.alias_(window, "s")).from_("(VALUES (0, 1), (0, 2), (1, 4)) AS v(at, x)")
    assert [told for (told,) in Duck(()).run(in_duckdb(query))] == sums
