"""Which joins may be told by the lives of rows."""

from __future__ import annotations

import pytest

from rollview.algebra.operators.leaf import Leaf
from rollview.algebra.overlaps import told_by_lives
from rollview.algebra.script import Script

TYPES = {"k": "int", "b": "bigint", "w": "string", "m": "map<int,int>"}


def side(*columns: str) -> Leaf:
    return Leaf("t", columns, TYPES)


@pytest.mark.parametrize(
    ("left", "right", "keys", "told"),
    [
        (("k", "w"), ("b", "w"), [("k", "b"), ("w", "w")], True),
        (("k", "w"), ("k", "w"), [("k", "k"), ("w", "k")], False),
        (("k", "w"), ("k", "w"), [("w", "k")], False),
        (("k", "m"), ("k",), [("k", "k")], False),
        (("k",), ("k", "unknown"), [("k", "k")], False),
    ],
)
def test_rows_have_lives_where_they_can_be_told_apart_and_equal_keys_are_equal_values(
    left: tuple[str, ...], right: tuple[str, ...], keys: list[tuple[str, str]], told: bool
) -> None:
    assert told_by_lives(Script(many=True), side(*left), side(*right), keys) is told
    assert not told_by_lives(Script(many=False), side(*left), side(*right), keys)
