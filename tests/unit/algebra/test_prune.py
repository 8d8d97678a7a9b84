"""Which columns are carried, and whether whole states are grouped on the way."""

from __future__ import annotations

import pytest
from tests.property.duck import Duck
from tests.property.schemas import KEYED

from rollview.algebra.operator import walk
from rollview.algebra.operators.aggregate import Aggregate
from rollview.algebra.operators.leaf import leaves
from rollview.algebra.view import ViewPlan


def compiled(query: str) -> ViewPlan:
    return Duck(KEYED).compile("v", query)


def test_only_what_is_used_is_carried() -> None:
    rel = compiled("SELECT c.x FROM c JOIN p ON c.id = p.id").outline.rel
    assert rel is not None
    assert {leaf.relation: leaf.columns for leaf in leaves(rel)} == {"c": ("id", "x"), "p": ("id",)}


def test_each_side_of_an_outer_join_carries_what_is_compared_of_it() -> None:
    rel = compiled("SELECT h.v FROM h LEFT JOIN c ON h.code = c.x AND c.id > h.v").outline.rel
    assert rel is not None
    assert {leaf.relation: leaf.columns for leaf in leaves(rel)} == {"h": ("code", "v"), "c": ("id", "x")}


def test_counting_rows_still_carries_a_column() -> None:
    rel = compiled("SELECT COUNT(*) AS n FROM c").outline.rel
    assert rel is not None
    assert [leaf.columns for leaf in leaves(rel)] == [("id",)]


@pytest.mark.parametrize(
    ("inner", "kept"),
    [("SELECT COUNT(*) AS n, MAX(x) AS m FROM c", 1), ("SELECT pid, COUNT(*) AS n FROM c GROUP BY pid", 0)],
)
def test_totals_that_nothing_asks_for_are_left_out_but_for_the_one_row(inner: str, kept: int) -> None:
    rel = compiled(f"SELECT 1 AS one FROM ({inner}) AS q").outline.rel
    assert rel is not None
    assert [len(node.aggregates) for node in walk(rel) if isinstance(node, Aggregate)] == [kept]


@pytest.mark.parametrize(
    ("query", "groups"),
    [
        ("SELECT c.x, p.w FROM c JOIN p ON c.pid = p.id", False),
        ("SELECT p.g, SUM(c.x) AS s FROM c JOIN p ON c.pid = p.id GROUP BY p.g", False),
        ("SELECT g, MAX(w) AS w FROM p GROUP BY g", True),
        ("SELECT c.x, p.w FROM c LEFT JOIN p ON c.pid = p.id", True),
        ("SELECT id, RANK() OVER (ORDER BY x) AS place FROM c", False),
        ("SELECT q.n, d.y FROM (SELECT pid, COUNT(*) AS n FROM c GROUP BY pid) AS q JOIN d ON q.pid = d.cid", True),
        ("SELECT n, COUNT(*) AS m FROM (SELECT pid, COUNT(*) AS n FROM c GROUP BY pid) AS q GROUP BY n", True),
    ],
)
def test_views_that_group_whole_states_are_known(query: str, groups: bool) -> None:
    assert compiled(query).groups_states is groups
