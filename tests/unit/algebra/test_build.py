"""What SQL means as an algebra: aggregates see only columns, and what looks alike is not taken for the same."""

from __future__ import annotations

import pytest
from sqlglot import exp
from tests.property.duck import declare_query
from tests.property.schemas import BAGS, KEYED

from rollview.algebra.operator import Operator, walk
from rollview.algebra.operators.aggregate import Aggregate
from rollview.algebra.operators.block import Block
from rollview.algebra.operators.outer_join import OuterJoin
from rollview.algebra.view import Mode, outline

KNOWN = {table.name: table for table in BAGS}


def built(query: str) -> Operator:
    rel = outline(declare_query("v", query), KNOWN).rel
    assert rel is not None
    return rel


def aggregate(query: str) -> Aggregate:
    return next(node for node in walk(built(query)) if isinstance(node, Aggregate))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k FROM r GROUP BY k",
        "SELECT 1 AS one FROM r HAVING MAX(x) > 1",
        "SELECT MAX(x) AS m, 1 AS one FROM r",
        "SELECT 1 AS one, MAX(x) AS m FROM r",
    ],
)
def test_a_group_a_having_or_one_aggregate_makes_groups(query: str) -> None:
    assert aggregate(query)


@pytest.mark.parametrize("call", ["CORR(x, k)", "SUM(1)", "SUM(x + g) FILTER (WHERE k > 1)", "COUNT(DISTINCT x, k)"])
def test_an_aggregate_sees_only_columns_of_its_input(call: str) -> None:
    made = aggregate(f"SELECT g, {call} AS v FROM r GROUP BY g")
    columns = [node for output in made.aggregates for node in output.expression.find_all(exp.Column)]
    assert {column.table for column in columns} == {""}
    assert {column.name for column in columns} == {name for name in made.input.columns if name not in made.keys}


def test_what_an_aggregate_is_given_is_not_what_is_grouped_by() -> None:
    assert len(aggregate("SELECT k, SUM(k) AS s, MAX(k) AS m FROM r GROUP BY k").input.columns) == 2


def test_a_constant_that_is_grouped_by_stays_a_constant() -> None:
    rel = built("SELECT CONCAT('x', MAX(w)) AS v FROM r GROUP BY 'x'")
    assert isinstance(rel, Block)
    assert rel.outputs[0].expression.find(exp.Literal) is not None


@pytest.mark.parametrize(
    ("join", "kind"), [("OUTER JOIN", "FULL"), ("FULL OUTER JOIN", "FULL"), ("LEFT JOIN", "LEFT"), ("JOIN", None)]
)
def test_joins_are_what_they_say(join: str, kind: str | None) -> None:
    found = [
        node.kind for node in walk(built(f"SELECT r.x FROM r {join} s ON r.k = s.k")) if isinstance(node, OuterJoin)
    ]
    assert found == ([] if kind is None else [kind])


@pytest.mark.parametrize(
    ("query", "at_the_top"),
    [
        ("SELECT g, COUNT(*) AS n FROM r GROUP BY g HAVING COUNT(*) > 1", True),
        ("SELECT q.g FROM (SELECT g, COUNT(*) AS n FROM r GROUP BY g) AS q JOIN s ON s.k = q.g", False),
        ("SELECT q.g FROM s JOIN (SELECT g, COUNT(*) AS n FROM r GROUP BY g) AS q ON s.k = q.g", False),
    ],
)
def test_groups_that_are_joined_are_not_the_groups_of_the_view(query: str, at_the_top: bool) -> None:
    assert (outline(declare_query("v", query), KNOWN).probes is not None) is at_the_top


def test_an_expression_that_an_outer_join_compares_is_hidden() -> None:
    join = next(n for n in walk(built("SELECT r.x FROM r LEFT JOIN s ON r.k + 1 = s.k")) if isinstance(n, OuterJoin))
    assert join.hidden
    assert set(join.columns).isdisjoint(join.hidden)


@pytest.mark.parametrize(
    ("query", "mode"),
    [
        ("SELECT r.x FROM r LEFT JOIN s ON r.k <=> s.k", Mode.INCREMENTAL),
        ("SELECT r.x FROM r LEFT JOIN s ON r.k < s.k", Mode.WHOLE),
        ("SELECT r.x FROM r LEFT JOIN s ON TRUE", Mode.WHOLE),
        ("SELECT r.x FROM r LEFT SEMI JOIN s ON r.k = s.k", Mode.INCREMENTAL),
        ("SELECT r.x FROM r LEFT SEMI JOIN s ON r.k <> s.k", Mode.WHOLE),
        ("SELECT r.x FROM r LEFT ANTI JOIN s ON r.k = 1", Mode.WHOLE),
        ("SELECT r.x FROM r RIGHT SEMI JOIN s ON r.k = s.k", Mode.WHOLE),
        ("SELECT r.x, s.y FROM r LEFT SEMI JOIN s ON r.k = s.k", Mode.WHOLE),
        ("SELECT r.x FROM r ASOF JOIN s ON r.k = s.k", Mode.WHOLE),
        ("SELECT r.x FROM r ANTI JOIN s ON r.k = s.k", Mode.INCREMENTAL),
        ("SELECT r.x, j1.k FROM r LEFT JOIN s ON r.k = s.k JOIN s AS j1 ON j1.k = r.k", Mode.INCREMENTAL),
        ("SELECT ARRAYS_ZIP(w, ARRAY(1)) AS z FROM r", Mode.WHOLE),
        ("SELECT ARRAYS_ZIP(ARRAY(k), ARRAY(1)) AS z FROM r", Mode.INCREMENTAL),
        ("SELECT COUNT(k, *) AS n FROM r", Mode.WHOLE),
        ("SELECT SUM(*) AS n FROM r", Mode.WHOLE),
        ("SELECT q.k FROM (SELECT k FROM r) AS q LATERAL VIEW EXPLODE(ARRAY(1)) AS v", Mode.WHOLE),
        ("SELECT r.k FROM r PIVOT (SUM(x) FOR g IN (1, 2)) AS r", Mode.WHOLE),
        ("SELECT q.a FROM VALUES (1), (2) AS q(a)", Mode.WHOLE),
        ("SELECT g FROM r GROUP BY g WITH ROLLUP", Mode.WHOLE),
    ],
)
def test_only_what_has_a_rule_is_incremental(query: str, mode: Mode) -> None:
    assert (outline(declare_query("v", query), KNOWN).rel is None) is (mode is Mode.WHOLE)


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("SELECT k FROM r WHERE k IN (SELECT k FROM s)", True),
        ("SELECT k FROM r WHERE k IN (SELECT y FROM s)", False),
        ("SELECT k FROM r WHERE k NOT IN (SELECT k FROM s)", False),
        ("SELECT x FROM c WHERE id NOT IN (SELECT id FROM p WHERE g = 1)", True),
        ("SELECT x FROM c WHERE pid NOT IN (SELECT id FROM p)", False),
        ("SELECT id FROM c WHERE 1 NOT IN (SELECT h.v FROM h WHERE h.id = c.id)", False),
        ("SELECT id FROM c WHERE x NOT IN (SELECT 1 FROM h WHERE h.id = c.id)", False),
        ("SELECT id FROM c WHERE '1' IN (SELECT h.v FROM h WHERE h.id = c.id)", False),
        ("SELECT k FROM r WHERE EXISTS (SELECT EXPLODE(SPLIT(s.w, ',')) FROM s WHERE s.k = r.k)", False),
        ("SELECT k FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.k = r.k)", True),
        ("SELECT k FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.k > r.k)", False),
        ("SELECT k FROM r WHERE EXISTS (SELECT 1 FROM s)", False),
        ("SELECT k FROM r WHERE EXISTS (SELECT MAX(k) AS m FROM s WHERE s.k = r.k)", False),
        ("SELECT k FROM r WHERE k = 1 OR EXISTS (SELECT 1 FROM s WHERE s.k = r.k)", False),
    ],
)
def test_a_membership_is_a_join_only_where_it_means_the_same(query: str, kept: bool) -> None:
    known = {table.name: table for table in (*BAGS, *KEYED)}
    assert (outline(declare_query("v", query), known).rel is not None) is kept
