"""The evaluator beside nested loops, and what the algorithms do to joined rows."""

from __future__ import annotations

from collections import Counter
from itertools import product
from random import Random

import pytest

from rollview.consistency.bags import bag, counted, frozen, listed, minus, once, plus, shown, times
from rollview.consistency.join_view import Comparison, JoinView, Occurrence, arranged, join, keys_of, natural


@pytest.mark.parametrize("seed", range(20))
def test_a_view_is_what_nested_loops_give(seed: int) -> None:
    random = Random(seed)
    tables = {
        name: counted(((random.randrange(2), random.randrange(2)), random.choice([1, 1, 2, -1])) for _ in range(4))
        for name in ("r1", "r2", "r3")
    }
    found = natural("r1(AB)@x ⋈ r2(BC)@y ⋈ r3(CD)@z", "AD").evaluate(tables)
    expected = Counter[tuple[int, ...]]()
    for ((a, b), n), ((b2, c), m), ((c2, d), k) in product(*(tables[name].items() for name in ("r1", "r2", "r3"))):
        if b == b2 and c == c2:
            expected[a, d] += n * m * k
    assert found == {row: count for row, count in expected.items() if count}


def test_conditions_and_two_occurrences_of_one_table() -> None:
    view = JoinView(
        (Occurrence("child", ("id", "up"), ("id",), "x", "t"), Occurrence("father", ("up", "top"), ("up",), "x", "t")),
        ("id", "top"),
        (Comparison("id", ">", 1),),
    )
    assert listed(view.evaluate({"t": bag([(1, 2), (2, 3), (3, 4)])})) == [(2, 4)]
    assert view.is_keyed is False


def test_joins_keep_signs() -> None:
    view = natural("r1(AB)@x ⋈ r2(BC)@y")
    less = join(view.partial("r1", {(1, 2): -1}), view.partial("r2", {(2, 3): -1}))
    assert less.rows == {(1, 2, 3): 1}
    assert arranged(less, ("C", "A")).rows == {(3, 1): 1}


def test_keys_do_not_cancel() -> None:
    """A row that went and one that came share a key; as counts they would add up to nothing."""
    view = natural("r1(AB)@x ⋈ r2(BC)@y")
    changed = view.partial("r1", {(1, 2): -1, (5, 2): 1})
    assert keys_of(changed, ("B",)).rows == {(2,): 1}


def test_key_deletes_compare_keys_and_row_deletes_whole_rows() -> None:
    view = natural("r1(A*B)@x ⋈ r2(BC*)@y")
    assert view.key_delete(bag([(1, 2, 3), (4, 2, 3)]), "r1", (1, 9)) == bag([(4, 2, 3)])
    whole = join(view.partial("r1", bag([(1, 2)])), view.partial("r2", bag([(2, 3)])))
    assert view.row_delete(whole, "r1", (1, 9)).rows == whole.rows
    assert view.row_delete(whole, "r1", (1, 2)).rows == {}


def test_bags() -> None:
    two, one = bag([(1,), (1,)]), bag([(1,)])
    assert minus(two, one) == one
    assert minus(one, two) == {(1,): -1}
    assert plus(one, times(one, -1)) == {}
    assert once({(1,): 3, (2,): -1}) == one
    assert frozen(two) != frozen(one)
    assert shown({(1, 2): 2, (3, 4): -1}) == "{[1,2], [1,2], −[3,4]}"
    assert shown({}) == "∅"


def test_the_short_form() -> None:
    view = natural("r1(A*B)@x ⋈ r2(B*C*D)@y", "AC")
    assert view.occurrences[1] == Occurrence("r2", ("B", "C", "D"), ("B", "C"), "y", "r2")
    assert (view.shown, view.sources, view.is_keyed) == (("A", "C"), ("x", "y"), False)
