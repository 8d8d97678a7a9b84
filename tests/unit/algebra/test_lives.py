"""Over many csns only touched keys are looked at, and rows are looked for only where there are many."""

from __future__ import annotations

import pytest
from sqlglot import exp
from tests.property.duck import Duck, in_duckdb
from tests.property.schemas import BAGS

from rollview.algebra.script import FEW_ROWS, Motion
from rollview.algebra.view import Mode, Propagation, ViewPlan

LARGEST = "SELECT g FROM (SELECT g, MAX(x) AS m FROM r GROUP BY g) AS q WHERE m > 3"


def propagation(plan: ViewPlan, **sizes: int) -> Propagation:
    return plan.propagation({"r": Motion()}, many=True, sizes=sizes)


def subqueries(made: Propagation) -> set[str]:
    return {cte.alias for cte in made.query.ctes}


@pytest.mark.parametrize("rows", [FEW_ROWS, FEW_ROWS + 1])
def test_rows_of_keys_that_nothing_touched_are_left_out(rows: int) -> None:
    duck = Duck(BAGS)
    made = propagation(duck.compile("v", LARGEST), r=rows)
    duck.commit(1, {"r": [((1, group, 5, "a"), 1) for group in (1, 2, 3)]})
    duck.commit(2, {"r": [((2, 2, 6, "a"), 1)]})
    duck.set(a=1, b=2)
    placed = exp.select("*").from_("placed").with_("a", as_="SELECT 1")
    placed.set("with_", made.query.args["with_"])
    assert {row[0] for row in duck.run(in_duckdb(placed))} == {2}


def test_few_rows_are_all_read_and_of_many_those_of_touched_keys() -> None:
    plan = Duck(BAGS).compile("v", LARGEST)
    assert "touched" not in subqueries(propagation(plan, r=FEW_ROWS))
    assert "touched" in subqueries(propagation(plan, r=FEW_ROWS + 1))


def test_sums_of_what_only_spark_knows_the_type_of_are_combined_too() -> None:
    plan = Duck(BAGS).compile("v", "SELECT g, MAX(k) AS m, SUM(CASE WHEN x > 0 THEN x END) AS s FROM r GROUP BY g")
    assert plan.mode is Mode.INCREMENTAL
    assert "lives" in subqueries(propagation(plan))
