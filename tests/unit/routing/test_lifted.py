"""Values that are lifted out of a text."""

from __future__ import annotations

import pytest

from rollview.algebra.text import parse_one, render
from rollview.routing.lifted import lift

TEXT = "SELECT a AS n, 5 - b AS m FROM t WHERE day >= DATE '{}' AND (s = '{}' OR i <> {}) GROUP BY a"


def test_texts_that_differ_in_values_have_one_shape() -> None:
    one, other = (lift(TEXT.format(*values)) for values in (("2026-01-01", "CA", 5), ("2026-02-28", "", 700)))
    assert one is not None
    assert other is not None
    assert one.shape == other.shape
    assert one.text == other.text
    assert one.values == (("DATE", "'2026-01-01'"), ("STRING", "'CA'"), ("INT", "5"))


def test_the_same_query_without_values_has_the_same_unknowns() -> None:
    text = TEXT.format("2026-01-01", "CA", 5)
    lifted = lift(text)
    assert lifted is not None
    assert render(lifted.without_values(parse_one(text))) == render(parse_one(lifted.text)).replace(
        "RAISE_ERROR", "raise_error"
    )
    assert "5 - b" in lifted.text


def test_a_value_that_stands_twice_is_one() -> None:
    twice, apart = (lift(f"SELECT a FROM t WHERE a > 1 AND b > {value}") for value in (1, 2))
    assert twice is not None
    assert apart is not None
    assert twice.shape != apart.shape


@pytest.mark.parametrize(
    "condition",
    [
        "day > DATE '2026-02-30'",
        "day > DATE '2026-2-3'",
        "s = 'a\\'b'",
        "s = 'a' 'b'",
        "s = r'a'",
        "i = 1 + 2",
        "i = -1",
        "i = 3000000000",
        "i = 1.5",
        "i > 1 = b",
        "i IN (1, 2)",
        "i = 05",
        "i = (SELECT MAX(i) FROM t WHERE j = 1)",
    ],
)
def test_what_is_not_a_plain_value_alone_stays(condition: str) -> None:
    assert lift(f"SELECT a FROM t WHERE {condition}") is None


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a = 1 FROM t",
        "SELECT COUNT(*) FILTER (WHERE a = 1) FROM t",
        "SELECT a FROM t JOIN u ON a = 1",
        "SELECT a FROM t WHERE b GROUP BY a HAVING a = 1",
        "SELECT a FROM t WHERE b = 1 UNION ALL SELECT a FROM t",
    ],
)
def test_what_stands_elsewhere_stays(text: str) -> None:
    assert lift(text) is None
