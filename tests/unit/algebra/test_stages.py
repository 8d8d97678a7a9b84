"""A query cut into stages gives what it gave, and no stage is written out to more than a bound."""

from __future__ import annotations

from functools import cache
from random import Random

import pytest
import sqlglot
from sqlglot import exp
from tests.property.definitions import Definitions
from tests.property.duck import Duck, in_duckdb
from tests.property.histories import random_history
from tests.property.schemas import BAGS
from tests.sizes import times

from rollview.algebra import stages as cutting
from rollview.algebra.stages import stages

pytestmark = pytest.mark.slow

NESTED = """
WITH a AS (SELECT x FROM t),
  b AS (SELECT x FROM a UNION ALL SELECT x FROM a),
  c AS (SELECT x FROM b UNION ALL SELECT x FROM b)
SELECT COUNT(*) AS n FROM c JOIN b ON TRUE
"""


def parsed(text: str) -> exp.Query:
    query = sqlglot.parse_one(text, dialect="spark")
    assert isinstance(query, exp.Query)
    return query


def written_out(query: exp.Query) -> int:
    weights: dict[str, int] = {}
    for cte in query.ctes:
        weights[cte.alias] = sum(weights.get(table.name, 1) for table in cte.this.find_all(exp.Table))
    body = query.copy()
    body.set("with_", None)
    return sum(weights.get(table.name, 1) for table in body.find_all(exp.Table))


def test_a_light_query_is_one_stage() -> None:
    assert [stage.name for stage in stages(parsed(NESTED))] == [None]


def test_what_is_heavy_and_read_twice_is_computed_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "HEAVY", 2)
    cut = stages(parsed(NESTED))
    assert [stage.name for stage in cut] == ["b", None]
    assert [cte.alias for cte in cut[0].query.ctes] == ["a"]
    assert [cte.alias for cte in cut[1].query.ctes] == ["c"]


@cache
def bags() -> Duck:
    return Duck(BAGS)


@pytest.mark.parametrize("seed", range(times(16, full=160)))
def test_stages_give_what_the_whole_gives(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "HEAVY", 4)
    random = Random(seed)
    duck = bags()
    duck.reset()
    for csn, transaction in enumerate(random_history(random, BAGS, 4), 1):
        duck.commit(csn, transaction)
    plan = duck.compile("v", Definitions(random, BAGS).view())
    if plan.outline.rel is None or plan.summary is not None:
        return
    duck.set(a=1, b=4)
    propagation = plan.propagation(duck.motion(1, 4))
    expected = sorted(map(str, duck.run(in_duckdb(propagation.query))))
    *first, last = stages(propagation.query)
    for stage in first:
        duck.db.execute(f'CREATE OR REPLACE TEMP TABLE "{stage.name}" AS {in_duckdb(stage.query)}')
    assert sorted(map(str, duck.run(in_duckdb(last.query)))) == expected


@pytest.mark.parametrize("seed", range(times(20, full=240)))
def test_no_stage_explodes(seed: int) -> None:
    plan = bags().compile("v", Definitions(Random(seed), BAGS).view())
    if plan.outline.rel is not None:
        for stage in stages(plan.propagation().query):
            assert written_out(stage.query) <= 12 * cutting.HEAVY
