"""Terms follow the large inputs that changed: small ones are joined at once, whatever their number."""

from __future__ import annotations

from collections import Counter

import pytest
from sqlglot import exp
from tests.property.duck import Duck

from rollview.algebra.operator import Input
from rollview.algebra.operators.leaf import Leaf
from rollview.algebra.product import can_be_netted
from rollview.algebra.resolve import Known
from rollview.algebra.script import AT_ONCE_ROWS, Motion, Script
from rollview.algebra.view import Propagation
from rollview.core.schema import Column, Schema

TABLES = tuple(Known(f"t{i}", Schema((Column("a", "int"), Column("b", "int")))) for i in range(8))
CHAIN = "SELECT t0.a, t7.b FROM t0 " + " ".join(f"JOIN t{i} ON t{i}.a = t{i - 1}.b" for i in range(1, 8))
STAR = "SELECT t0.a FROM t0 JOIN t1 ON t1.a = t0.a JOIN t2 ON t2.a = t0.b JOIN t3 ON t3.a = t2.b"
NAMES = [table.name for table in TABLES]


def propagation(query: str, small: list[str], changed: list[str] = NAMES) -> Propagation:
    motion = {name: Motion(name in changed) for name in NAMES}
    return Duck(TABLES).compile("v", query).propagation(motion, sizes=dict.fromkeys(small, AT_ONCE_ROWS))


def read_in_full(made: Propagation) -> int:
    """Stored relations that are read where every subquery is written out, which is what Spark plans."""
    weights: dict[str, int] = {}

    def weight(query: exp.Expr) -> int:
        found = Counter(table.name for table in query.find_all(exp.Table))
        return sum(weights.get(name, 1) * times for name, times in found.items())

    for cte in made.query.ctes:
        weights[cte.alias] = weight(cte.this)
    body = made.query.copy()
    body.set("with_", None)
    return weight(body)


def test_small_inputs_are_one_join_without_terms() -> None:
    made = propagation(CHAIN, NAMES)
    assert read_in_full(made) == 8
    assert made.inputs == {(name, "timed") for name in NAMES}
    assert [term.reason for term in made.terms] == ["small: joined at once"]


def test_without_sizes_every_changed_input_has_its_term() -> None:
    made = propagation(CHAIN, [])
    assert len(made.terms) == 8
    assert read_in_full(made) > 64


@pytest.mark.parametrize("large", [1, 2, 3])
def test_a_term_for_each_large_input_and_one_for_all_small_ones(large: int) -> None:
    made = propagation(CHAIN, NAMES[large:])
    assert len(made.terms) == large + 1
    assert read_in_full(made) <= (large + 1) * (8 + large)


def test_small_inputs_that_nothing_ties_together_are_not_multiplied() -> None:
    made = propagation(STAR, ["t1", "t2", "t3"])
    assert {term.relation for term in made.terms} == {"t0", "t1", "t2, t3"}
    assert not any(join.args.get("on") == exp.true() for join in made.query.find_all(exp.Join))


def test_small_inputs_that_no_equality_ties_together_have_a_term_each() -> None:
    made = propagation("SELECT t0.a FROM t0 JOIN t1 ON t1.a > t0.a", ["t0", "t1"])
    assert [term.relation for term in made.terms] == ["t0", "t1"]


def test_what_ties_small_inputs_together_is_compared_where_they_are_joined_and_nowhere_else() -> None:
    made = propagation(f"{STAR} AND t3.a = t2.a", ["t2", "t3"])
    above = [join.args["on"].sql() for join in made.query.find_all(exp.Join) if "t3" not in join.this.alias]
    assert above
    assert not any("t3" in condition for condition in above)


def test_the_text_is_the_same_for_every_set_of_changed_small_inputs() -> None:
    texts = {propagation(CHAIN, NAMES, changed).query.sql() for changed in (["t0"], ["t3", "t5"], NAMES)}
    assert len(texts) == 1


def test_the_changes_of_one_table_alone_are_one_term_however_small_the_others_are() -> None:
    motion = {name: Motion(True) for name in NAMES}
    made = Duck(TABLES).compile("v", CHAIN).propagation(motion, sizes=dict.fromkeys(NAMES, 1), moving="t3")
    assert [term.relation for term in made.terms] == ["t3"]


def test_one_more_row_is_too_many() -> None:
    plan = Duck(TABLES).compile("v", CHAIN)
    assert len(plan.propagation(sizes=dict.fromkeys(NAMES, AT_ONCE_ROWS + 1)).terms) == 8


def test_rows_that_are_not_there_are_not_joined() -> None:
    plan = Duck(TABLES).compile("v", "SELECT t0.a FROM t0 UNION ALL SELECT t1.a FROM t1")
    made = plan.propagation(sizes=dict.fromkeys(NAMES, 1), absent=frozenset(NAMES))
    assert {what for _, what in made.inputs} == {"delta"}


def test_what_is_not_there_is_not_small_whatever_its_size() -> None:
    leaf = Leaf("t0", ("a", "b"), {})
    assert Script(sizes={"t0": 1}).is_small(leaf)
    assert not Script(sizes={"t0": 1}, absent=frozenset({"t0"})).is_small(leaf)


def test_what_reads_one_table_that_is_not_there_is_not_there() -> None:
    block = Duck(TABLES).compile("v", "SELECT t0.a FROM t0 JOIN t1 ON t1.a = t0.a").outline.rel
    assert block is not None
    assert Script(absent=frozenset({"t1"})).is_absent(block)
    assert not Script(absent=frozenset({"t2"})).is_absent(block)


def test_rows_with_maps_or_of_unknown_types_are_not_netted() -> None:
    source = Input("t", Leaf("t", ("a", "b", "c"), {"a": "int", "b": "map<int,int>"}))
    assert [can_be_netted([source], [("t", name)]) for name in "abc"] == [True, False, False]
    assert not can_be_netted([source], [("t", "a"), ("t", "b")])
