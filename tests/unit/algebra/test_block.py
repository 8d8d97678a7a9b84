"""In which order a term joins what it needs: by equalities first, and changed tables with each other before others."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
from tests.property.duck import Duck
from tests.property.schemas import BAGS, KEYED

from rollview.algebra.expressions import column
from rollview.algebra.operator import Input, Output
from rollview.algebra.operators.block import Block
from rollview.algebra.operators.leaf import Leaf
from rollview.algebra.script import AT_ONCE_ROWS, Motion, Script
from rollview.algebra.summary import GROUPS
from rollview.algebra.terms import SMALL_SIDE_ROWS, _is_small
from rollview.algebra.text import render

NONE = Motion(False, False, False)


def chains(query: str, *changed: str) -> set[str]:
    """The subqueries that join a term's inputs one by one."""
    plan = Duck(BAGS).compile("v", query)
    motion = {known.name: Motion() if known.name in changed else NONE for known in plan.reads}
    return {cte.alias for cte in plan.propagation(motion).query.ctes if cte.alias.startswith("from_")}


@pytest.mark.parametrize(
    ("tables", "order"),
    [
        pytest.param("r JOIN s ON r.k < s.k JOIN t ON r.k = t.k", "from_r_to_t_to_s", id="what is equal first"),
        pytest.param(
            "r JOIN s ON r.k < s.k AND s.k = s.y JOIN t ON r.k = t.k", "from_r_to_t_to_s", id="equal to itself is not"
        ),
        pytest.param("r CROSS JOIN s JOIN t ON r.k = t.k AND s.k = t.g", "from_r_to_t_to_s", id="what is there first"),
        pytest.param(
            "r JOIN s ON r.k < s.k JOIN t ON r.k = t.k JOIN e ON e.k = r.g",
            "from_r_to_t_to_e_to_s",
            id="equal to what is there",
        ),
    ],
)
def test_a_term_joins_next_what_an_equality_ties_to_it(tables: str, order: str) -> None:
    assert order in chains(f"SELECT r.x, s.w FROM {tables}", "r")


def test_changed_tables_meet_first_if_they_are_tied() -> None:
    query = "SELECT r.x, s.w, t.z FROM r JOIN s ON r.k = s.k JOIN t ON s.k = t.k"
    assert chains(query, "r", "s") == {"from_r", "from_r_to_s", "from_s", "from_s_to_r"}
    assert {"from_r_to_s_to_t", "from_t_to_s_to_r"} <= chains(query, "r", "t")


def hints(query: str, motion: Mapping[str, Motion], **known: Any) -> set[str]:
    text = render(Duck((*BAGS, *KEYED)).compile("v", query).propagation(motion, **known).query).replace("`", "")
    return set(re.findall(r"(?:BROADCAST|SHUFFLE_HASH|COALESCE)\(\w+\)", text))


def test_a_small_change_is_sent_to_what_it_is_joined_with_or_the_other_way_round() -> None:
    joined, motion = "SELECT r.x, s.w FROM r JOIN s ON r.k = s.k", {"r": Motion(), "s": NONE}
    assert hints(joined, motion, small=False) == set()
    assert hints(joined, motion) == {"BROADCAST(t)"}
    little = hints(joined, motion, sizes={"s": 1})
    assert "BROADCAST(n)" in little
    assert "BROADCAST(t)" not in little


def test_changes_that_need_nothing_else_are_joined_in_place() -> None:
    family = "SELECT c.x, p.w FROM c JOIN p ON c.pid = p.id"
    motion = {"p": Motion(True, True, False, one_csn=True), "c": Motion()}
    closed = frozenset({("c", "p")})
    assert "SHUFFLE_HASH(n)" in hints(family, motion, closed=closed)
    assert "SHUFFLE_HASH(n)" not in hints(family, motion, closed=closed, small=False)


def test_a_third_table_that_changed_has_a_term_of_its_own() -> None:
    query = "SELECT d.y, c.x, p.w FROM c JOIN p ON c.pid = p.id JOIN d ON d.cid = c.id"
    motion = {"p": Motion(True, True, False, one_csn=True)}
    made = Duck(KEYED).compile("v", query).propagation(motion, closed=frozenset({("c", "p")}))
    assert [term.relation for term in made.terms] == ["c", "p", "d"]


def test_changes_are_gathered_where_all_that_was_read_for_them_is_little() -> None:
    joined = "SELECT r.g, SUM(s.y) AS y FROM r JOIN s ON r.k = s.k GROUP BY r.g"
    few = {"r": AT_ONCE_ROWS + 1, "s": AT_ONCE_ROWS + 1}
    assert "COALESCE(1)" in hints(joined, {}, sizes=few)
    assert "COALESCE(1)" not in hints(joined, {}, sizes={"r": 1})
    assert "COALESCE(1)" not in hints(joined, {}, small=False, sizes=few)
    summed = "SELECT g, SUM(x) AS x FROM r GROUP BY g"
    assert "COALESCE(1)" not in hints(summed, {}, sizes={"r": 1})
    assert "COALESCE(1)" in hints(summed, {}, sizes={GROUPS: 1})
    assert "COALESCE(1)" not in hints(summed, {}, small=False, sizes={GROUPS: 1})


def test_an_input_up_to_the_limit_is_sent() -> None:
    table = Leaf("r", ("k",))
    inner = Block((Input("r", table),), (), (Output("k", column("r", "k")),))
    assert _is_small(Script(sizes={"r": SMALL_SIDE_ROWS}), Input("q", table))
    assert not _is_small(Script(sizes={"r": SMALL_SIDE_ROWS + 1}), Input("q", table))
    assert not _is_small(Script(), Input("q", table))
    assert not _is_small(Script(sizes={"r": 1}), Input("q", inner))


def test_rows_that_did_not_change_are_not_looked_up_in_deltas() -> None:
    plan = Duck(BAGS).compile("v", "SELECT k FROM r UNION ALL SELECT k FROM t WHERE g > 1")
    for changed in (True, False):
        inputs = plan.propagation({"r": Motion(), "t": Motion(changed=changed)}).inputs
        assert inputs == {("r", "delta"), ("t", "delta" if changed else "old")}
