"""A sum that a view keeps tells those of other queries, in the types that Spark gives them."""

from __future__ import annotations

import pytest
from sqlglot import exp
from tests.property.duck import Duck

from rollview.algebra.accumulators import value_over
from rollview.algebra.expressions import column
from rollview.algebra.resolve import Known
from rollview.algebra.text import parse_one
from rollview.core.schema import Column, Schema


@pytest.mark.parametrize(
    ("type_", "told"),
    [("int", "BIGINT"), ("double", "DOUBLE"), ("decimal(8,2)", "DECIMAL(18, 2)"), ("decimal(28,2)", "DECIMAL(38, 2)")],
)
def test_a_sum_has_ten_digits_more_up_to_the_most_there_are(type_: str, told: str) -> None:
    assert types_of_casts(type_, "SUM(x)")[0] == told


@pytest.mark.parametrize(
    ("call", "is_told"),
    [("AVG(x)", True), ("AVG(x) FILTER (WHERE x IS NOT NULL)", False), ("STDDEV_POP(x)", False), ("SUM(x)", False)],
)
def test_only_an_average_of_decimals_has_four_digits_more_on_both_sides(call: str, is_told: bool) -> None:
    assert ("DECIMAL(12, 6)" in types_of_casts("decimal(8,2)", call)) is is_told


@pytest.mark.parametrize("call", ["SUM(x + 1)", "MAX(x)", "AVG(DISTINCT x)", "PERCENTILE(x, 0.5)"])
def test_what_is_not_kept_is_not_told(call: str) -> None:
    assert told_by_sums("int", call) is None


def types_of_casts(type_: str, call: str) -> list[str]:
    """From the outermost in."""
    value = told_by_sums(type_, call)
    return [] if value is None else [cast.to.sql("spark") for cast in value.find_all(exp.Cast)]


def told_by_sums(type_: str, call: str) -> exp.Expr | None:
    known = Known("t", Schema((Column("g", "int"), Column("x", type_))))
    deviations = ", STDDEV_POP(x) AS d" if call.startswith("STDDEV") else ""
    summary = Duck((known,)).compile("v", f"SELECT g, SUM(x) AS s{deviations} FROM t GROUP BY g").summary
    assert summary is not None
    (summed,) = (name for name in summary.types if name not in summary.keys)
    asked = parse_one(f"SELECT {call}").selects[0]
    for node in list(asked.find_all(exp.Column)):
        node.replace(column(None, summed))
    return value_over(summary.accumulated, summary.types, asked)


@pytest.mark.parametrize("calls", ["SUM(x) AS s", "AVG(x) AS a", "SUM(x) AS s, STDDEV_POP(x) AS d"])
def test_a_sum_of_decimals_is_made_wider_once_and_not_row_by_row(calls: str) -> None:
    known = Known("t", Schema((Column("g", "int"), Column("x", "decimal(8,2)"))))
    summary = Duck((known,)).compile("v", f"SELECT g, {calls} FROM t GROUP BY g").summary
    assert summary is not None
    (total,) = (one for one in summary.accumulated.accumulators if one.type == "decimal(38,2)")
    (added,) = total.increment.find_all(exp.Sum)
    assert not list(added.find_all(exp.Cast))
    assert isinstance(total.increment, exp.Cast)
