"""Keyed operators over many commits to few keys: exact at every csn, and never a key's rows times its commits."""

from __future__ import annotations

from functools import cache
from random import Random

import pytest
from sqlglot import exp

from rollview.algebra.expressions import AT
from rollview.algebra.view import Mode
from tests.property.duck import Duck, View
from tests.property.histories import Row, Transaction, net, random_value
from tests.property.schemas import BAGS
from tests.property.test_timed_delta import equal_at_every_csn

COMMITS = 300
KEYS = (0, 1, None)
ROWS = 12
"""A table has about so many rows, however many commits there were."""

VIEWS = {
    "MAX": "SELECT g, MAX(x) AS m FROM r GROUP BY g",
    "MIN, COUNT and SUM": "SELECT k, MIN(y) AS l, COUNT(*) AS n, SUM(y) AS s, COUNT(w) AS c FROM s GROUP BY k",
    "FILTER": "SELECT k, MAX(x) FILTER (WHERE g = 1) AS m, COUNT(*) FILTER (WHERE x > 1) AS n FROM r GROUP BY k",
    "MIN of DOUBLE": "SELECT g, MIN(z) AS l, MAX(k) AS h FROM t GROUP BY g",
    "a grand total": "SELECT MAX(x) AS h, MIN(w) AS l, COUNT(x) AS n, SUM(x) AS s FROM r WHERE k = 1",
    "MAX of MAX": "SELECT m, COUNT(*) AS n FROM (SELECT g, MAX(x) AS m FROM r GROUP BY g) AS q GROUP BY m",
    "DISTINCT": "SELECT d.k, e.f FROM (SELECT DISTINCT k, g FROM r) AS d JOIN e ON e.k = d.k",
    "LEFT JOIN": "SELECT r.k, r.x, s.y FROM r LEFT JOIN s ON r.k = s.k",
    "RIGHT JOIN": "SELECT r.x, s.k, s.w FROM r RIGHT JOIN s ON r.k = s.k AND r.x > 1",
    "FULL JOIN": "SELECT r.k AS a, t.k AS b, t.z FROM r FULL JOIN t ON r.k <=> t.k AND r.g = t.g AND t.z > 0",
    "SEMI JOIN": "SELECT r.k, r.x FROM r LEFT SEMI JOIN s ON r.k = s.k",
    "ANTI JOIN": "SELECT t.k, t.z FROM t LEFT ANTI JOIN r ON r.k = t.k AND r.x > t.g",
    "ANTI JOIN by <=>": "SELECT t.z FROM t LEFT ANTI JOIN r ON r.k <=> t.k",
    "DISTINCT of DOUBLE": "SELECT d.z, d.k FROM (SELECT DISTINCT z, k FROM t) AS d JOIN e ON e.k = d.k",
}


@cache
def engine() -> Duck:
    return Duck(BAGS)


def hot_history(random: Random) -> list[Transaction]:
    """Rows come and go at a few keys, and are often there several times."""
    states: dict[str, list[Row]] = {table.name: [] for table in BAGS}
    history = []
    for _ in range(COMMITS):
        table = random.choice(BAGS)
        held = states[table.name]
        random.shuffle(held)
        gone = [held.pop() for _ in range(min(len(held), random.randint(0, 2 if len(held) < ROWS else 4)))]
        values = [random_value(random, column.type) for column in table.schema.columns[1:]]
        come = [(random.choice(KEYS), *values), *([random.choice(held)] if held and random.random() < 0.3 else [])]
        held.extend(come)
        changes = net([(row, -1) for row in gone] + [(row, 1) for row in come])
        history.append({table.name: changes} if changes else {})
    return history


@pytest.mark.parametrize("name", VIEWS)
def test_many_commits_to_few_keys_are_told_exactly(name: str) -> None:
    duck = engine()
    duck.reset()
    plan = duck.compile("v", VIEWS[name])
    assert plan.mode is not Mode.WHOLE
    for csn, transaction in enumerate(hot_history(Random(name)), 1):
        duck.commit(csn, transaction)
    view = View(duck, "v", plan, 3)
    view.propagate(COMMITS - 40)
    view.propagate(COMMITS)
    equal_at_every_csn(view, 3, COMMITS, VIEWS[name])


@pytest.mark.parametrize("name", VIEWS)
def test_no_row_is_read_again_at_each_moment_of_its_key(name: str) -> None:
    plan = engine().compile("v", VIEWS[name])
    assert _reads_again(plan.propagation().query)
    assert not _reads_again(plan.propagation(many=True).query)


def _reads_again(query: exp.Query) -> bool:
    """Rows of all csns up to a moment are joined to it."""
    return any(side.name == AT for less in query.find_all(exp.LTE) for side in less.find_all(exp.Column))
