"""A sum that a view keeps tells those of other queries, in the types that Spark gives them."""

from __future__ import annotations

import pytest
from sqlglot import exp
from tests.property.duck import Duck

from rollview.algebra.accumulators import value_over
from rollview.algebra.expressions import column
from rollview.algebra.resolve import Known
from rollview.core.schema import Column, Schema


@pytest.mark.parametrize(
    ("type_", "told"),
    [("int", "BIGINT"), ("double", "DOUBLE"), ("decimal(8,2)", "DECIMAL(18, 2)"), ("decimal(28,2)", "DECIMAL(38, 2)")],
)
def test_a_sum_has_ten_digits_more_up_to_the_most_there_are(type_: str, told: str) -> None:
    known = Known("t", Schema((Column("g", "int"), Column("x", type_))))
    summary = Duck((known,)).compile("v", "SELECT g, SUM(x) AS s FROM t GROUP BY g").summary
    assert summary is not None
    (summed,) = (name for name in summary.types if name not in summary.keys)
    value = value_over(summary.accumulated, summary.types, exp.Sum(this=column(None, summed)))
    assert value is not None
    outer = next(value.find_all(exp.Cast))
    assert outer.to.sql("spark") == told
