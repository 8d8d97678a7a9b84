"""From a change to the rows that it can meet, by keys alone; or why not."""

from __future__ import annotations

import pytest

from rollview.algebra.definition import Declared
from rollview.algebra.resolve import Known
from rollview.algebra.routes import KeyHop, NotAskableError, asked_columns, routes
from rollview.algebra.view import ViewPlan, outline, plan
from rollview.core.schema import Column, Constraints, Schema

KNOWN = {
    name: Known(name, Schema(tuple(Column(*one.split(" ")) for one in columns.split(", "))), Constraints())
    for name, columns in {
        "a": "id int, b int, word string, price double",
        "b": "id bigint, c int, word string, price double",
        "c": "id int, word string",
    }.items()
}


def planned(query: str) -> ViewPlan:
    made = outline(Declared("v", (), None, {}, query, False), KNOWN)
    return plan(made, {})


def hops(query: str, *asked: str) -> dict[str, tuple[KeyHop, ...]]:
    return {route.place: route.hops for route in routes(planned(query), frozenset(asked))}


CHAIN = "SELECT a.id FROM a JOIN b ON a.b = b.id JOIN c ON b.c = c.id"


def test_a_change_leads_hop_by_hop_to_what_is_asked_and_no_further() -> None:
    to_b = KeyHop("a", ("b",), "b", "b", ("id",))
    assert hops(CHAIN, "b", "c") == {
        "a": (to_b, KeyHop("b", ("c",), "c", "c", ("id",))),
        "b": (KeyHop("b", ("c",), "c", "c", ("id",)),),
        "c": (KeyHop("c", ("id",), "b", "b", ("c",)),),
    }
    assert hops(CHAIN, "b")["a"] == (to_b,)
    # Over a table that is copied, where there is no straight way.
    assert hops(CHAIN, "c")["a"] == (to_b, KeyHop("b", ("c",), "c", "c", ("id",)))


def test_all_columns_that_are_compared_are_asked_by_once() -> None:
    query = "SELECT a.id FROM a JOIN b ON a.b = b.id AND b.word = a.word AND a.b = b.id"
    assert hops(query, "b")["a"] == (KeyHop("a", ("b", "word"), "b", "b", ("id", "word")),)
    assert list(asked_columns(routes(planned(query), frozenset("ab")), frozenset("ab"))) == [
        ("b", ("id", "word")),
        ("a", ("b", "word")),
    ]


def test_a_computed_column_leads_nowhere() -> None:
    inner = "(SELECT y.id, y.b, y.more FROM (SELECT id, b, b + 1 AS more FROM a) AS y)"
    found = hops(f"SELECT x.more FROM {inner} AS x JOIN b ON x.b = b.id", "b")
    assert found["x"] == (KeyHop("x", ("b",), "b", "b", ("id",)),)


def test_names_are_followed_through_subqueries() -> None:
    query = "SELECT x.key FROM (SELECT b AS key, price FROM a WHERE price > 1) x JOIN b ON x.key = b.id"
    assert hops(query, "a")["b"] == (KeyHop("b", ("id",), "x", "a", ("b",)),)


def test_a_table_twice_is_two_places() -> None:
    found = hops("SELECT x.id FROM b x JOIN b y ON x.c = y.c", "b")
    assert found == {
        "x": (KeyHop("x", ("c",), "y", "b", ("c",)),),
        "y": (KeyHop("y", ("c",), "x", "b", ("c",)),),
    }


def test_what_is_linear_needs_no_rows() -> None:
    assert hops("SELECT id FROM a UNION ALL SELECT c FROM b", "a", "b") == {}


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT a.id FROM a JOIN b ON a.b < b.id", "by equal columns"),
        ("SELECT a.id FROM a JOIN b ON a.price = b.price", "by equal columns"),
        ("SELECT a.id FROM a JOIN b ON a.b = b.word", "by equal columns"),
        ("SELECT a.id FROM a JOIN b ON a.b + 1 = b.id", "by equal columns"),
        ("SELECT a.id FROM a JOIN (SELECT c, c + 1 AS more FROM b) b ON a.b = b.more", "by equal columns"),
        ("SELECT b.c FROM b JOIN (SELECT b, b + 1 AS more FROM a) a ON a.more = b.id", "by equal columns"),
        ("SELECT a.id FROM a JOIN b ON a.b = b.id CROSS JOIN c", "changes of 'c' lead to no rows of 'b'"),
        ("SELECT a.id FROM a LEFT JOIN b ON a.b = b.id", "looks at rows of a key again"),
        ("SELECT a.id FROM a WHERE a.b IN (SELECT id FROM b)", "looks at rows of a key again"),
        ("SELECT a.id FROM a JOIN (SELECT DISTINCT id FROM b) b ON a.b = b.id", "is made on the way"),
    ],
)
def test_the_rest_is_told_why_not(query: str, reason: str) -> None:
    with pytest.raises(NotAskableError, match=reason):
        routes(planned(query), frozenset({"b"}))
