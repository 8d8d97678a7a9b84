"""A SELECT with GROUP BY, taken apart into what groups read and what they hold."""

from __future__ import annotations

import pytest
from sqlglot import exp

from rollview.algebra.grouping import grouped
from rollview.algebra.operator import Output


@pytest.mark.parametrize(("keys", "calls"), [(["k"], []), ([], ["COUNT(*)"])])
def test_only_the_one_group_without_keys_and_calls_counts_its_rows(keys: list[str], calls: list[str]) -> None:
    outputs = [Output(key, exp.column(key)) for key in keys] or [Output("one", exp.Literal.number(1))]
    found = grouped([exp.column(key) for key in keys], outputs, None)
    assert [call.expression.sql("spark") for call in found.calls] == calls
