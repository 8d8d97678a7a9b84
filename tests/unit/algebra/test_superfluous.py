"""Which joins keys prove to change nothing, and which only look like it."""

from __future__ import annotations

import pytest
from tests.property.duck import Duck, View
from tests.property.schemas import KEYED

from rollview.algebra.operators.leaf import leaves
from rollview.algebra.resolve import Known
from rollview.algebra.view import ViewPlan
from rollview.core.schema import Column, Constraints, ForeignKey, Schema

TEXTS = (
    Known("a", Schema((Column("id", "int"), Column("ref", "int")))),
    Known("b", Schema((Column("k", "string"), Column("v", "int"))), Constraints(("k",))),
)
PAIR = Schema((Column("k", "int"), Column("z", "double")))
FLOATS = (
    Known("a", PAIR, Constraints(foreign_keys=(ForeignKey(("k", "z"), "b", ("k", "z")),))),
    Known("b", PAIR, Constraints(("k", "z"))),
)


def read(plan: ViewPlan) -> list[str]:
    assert plan.outline.rel is not None
    return [leaf.relation for leaf in leaves(plan.outline.rel)]


@pytest.mark.parametrize(
    ("query", "left"),
    [
        ("SELECT c.x FROM c LEFT JOIN p ON c.x = p.id", ["c"]),
        ("SELECT c.x FROM p RIGHT JOIN c ON c.x = p.id", ["c"]),
        ("SELECT COUNT(*) AS n FROM c LEFT JOIN p ON p.id = c.x", ["c"]),
        ("SELECT c.x FROM c LEFT JOIN (SELECT id AS i, w FROM p) AS q ON c.x = q.i", ["c"]),
        ("SELECT c.x FROM c LEFT JOIN o ON c.x = o.a AND c.pid = o.b", ["c"]),
        ("SELECT c.x FROM c LEFT JOIN h ON c.x = h.code LEFT JOIN p ON c.pid = p.id", ["c"]),
        ("SELECT c.x, p.id FROM c JOIN p ON c.pid = p.id WHERE p.id + c.x > 1", ["c"]),
        ("SELECT d.y FROM d JOIN c ON d.cid = c.id JOIN p ON p.id = c.pid", ["d", "c"]),
        ("SELECT d.y, c.id FROM d JOIN c ON d.cid = c.id", ["d"]),
        ("SELECT n FROM l JOIN o ON l.a = o.a AND o.b = l.b", ["l"]),
        ("SELECT c.x FROM c JOIN p ON c.pid = p.id UNION ALL SELECT g FROM p", ["c", "p"]),
    ],
)
def test_keys_prove_that_a_join_changes_nothing(query: str, left: list[str]) -> None:
    plan = Duck(KEYED).compile("v", query)
    assert read(plan) == left
    told = {note.operator for note in plan.operators if note.how == "left out"}
    assert told == {f"join of {known.name}" for known in plan.reads if known.name not in left}
    assert plan.moved_by == set(left)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT c.x, p.w FROM c LEFT JOIN p ON c.x = p.id",
        "SELECT c.x, p.id FROM c LEFT JOIN p ON c.x = p.id",
        "SELECT c.x FROM c LEFT JOIN p ON c.x = p.g",
        "SELECT c.x FROM c LEFT JOIN p ON c.x <=> p.id",
        "SELECT c.x FROM c LEFT JOIN p ON c.x = p.id + 0",
        "SELECT c.x FROM c LEFT JOIN p ON c.x = p.id AND 1 / p.g > 0",
        "SELECT c.x FROM c LEFT JOIN o ON c.x = o.a",
        "SELECT p.g FROM c LEFT JOIN p ON c.x = p.id WHERE p.g > 1",
        "SELECT c.x FROM c LEFT JOIN (SELECT id FROM p WHERE 1 / g > 0) AS q ON c.x = q.id",
        "SELECT c.x FROM c LEFT JOIN (SELECT p.id FROM p JOIN o ON o.a = p.g) AS q ON c.x = q.id",
        "SELECT c.x FROM c RIGHT JOIN p ON c.x = p.id",
        "SELECT p.w FROM c RIGHT JOIN p ON c.x = p.id",
        "SELECT c.x FROM c FULL JOIN p ON c.x = p.id",
        "SELECT c.x FROM c JOIN p ON c.x = p.id",
        "SELECT c.x FROM c JOIN p ON c.pid = p.g",
        "SELECT c.x FROM c JOIN p ON p.id = p.id AND c.pid = c.pid",
        "SELECT c.x, p.w FROM c JOIN p ON c.pid = p.id",
        "SELECT p.w FROM c JOIN p ON c.pid = p.id",
        "SELECT l.n FROM l JOIN o ON l.a = o.a",
        "SELECT l.n FROM l JOIN o ON l.a = o.b AND l.b = o.a",
        "SELECT a.x FROM c AS a JOIN c AS b ON a.id < b.id JOIN p ON a.pid = p.id AND b.x = p.g",
    ],
)
def test_other_joins_stay(query: str) -> None:
    plan = Duck(KEYED).compile("v", query)
    assert sorted(set(read(plan))) == sorted({known.name for known in plan.reads})


def test_a_key_of_another_type_may_find_two_rows() -> None:
    plan = Duck(TEXTS).compile("v", "SELECT a.id FROM a LEFT JOIN b ON a.ref = b.k")
    assert read(plan) == ["a", "b"]


def test_a_zero_and_its_negative_are_equal_and_not_the_same() -> None:
    plan = Duck(FLOATS).compile("v", "SELECT b.z FROM a JOIN b ON a.k = b.k AND a.z = b.z")
    assert read(plan) == ["a", "b"]


def test_rows_that_refer_to_nothing_are_not_there() -> None:
    duck = Duck(KEYED)
    duck.commit(1, {"p": [((1, 1, "w"), 1)]})
    duck.commit(2, {"c": [((1, 1, 5), 1), ((2, None, 6), 1), ((3, 1, None), 1)]})
    view = View(
        duck, "v", duck.compile("v", "SELECT c.id, p.id AS pid FROM c JOIN p ON c.pid = p.id WHERE c.x = c.x"), 1
    )
    view.propagate(2)
    assert view.at(2) == view.recompute(2) == {(1, 1): 1}
