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
