"""Which aggregates follow from those of parts."""

from __future__ import annotations

import pytest

from rollview.algebra.combining import combined
from rollview.algebra.text import parse_one


@pytest.mark.parametrize(
    ("type_", "told"),
    [
        *[("int", True), ("bigint", True), ("decimal(27,2)", True)],
        *[("decimal(28,2)", False), ("double", False), ("string", False)],
    ],
)
def test_sums_of_parts_are_added_up_where_they_are_exact(type_: str, told: bool) -> None:
    call = parse_one("SELECT SUM(x)").selects[0]
    assert (combined(call, lambda _: type_) is not None) is told


@pytest.mark.parametrize(
    ("call", "type_", "told"),
    [
        *[("AVG(x)", "int", True), ("AVG(x)", "bigint", False), ("AVG(x)", "string", False)],
        *[("COUNT(x)", "string", True), ("COUNT(x)", "map<int,int>", False), ("COUNT(x)", None, False)],
        *[("SUM(x + 1)", "int", False), ("SUM(DISTINCT x)", "int", False), ("COUNT_IF(x)", "boolean", True)],
        *[("COUNT(*)", None, True), ("SUM(x) FILTER (WHERE y)", "int", True), ("PERCENTILE(x, 0.5)", "int", False)],
    ],
)
def test_a_whole_follows_from_parts_only_where_it_is_exact(call: str, type_: str | None, told: bool) -> None:
    found = combined(parse_one(f"SELECT {call}").selects[0], lambda _: type_, "double" if call == "AVG(x)" else None)
    assert (found is not None) is told
