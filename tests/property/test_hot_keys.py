"""Keyed operators over many commits to few keys: exact at every csn, and never a key's rows times its commits."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from random import Random
from typing import Any

import pytest

from rollview.algebra.resolve import Known
from rollview.algebra.view import Mode
from tests.property.duck import Duck, View, in_duckdb
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
    "MAX of MAX": "SELECT m, MAX(g) AS n FROM (SELECT g, MAX(x) AS m FROM r GROUP BY g) AS q GROUP BY m",
    "DISTINCT": "SELECT d.k + 1 AS k, d.g FROM (SELECT DISTINCT k, g FROM r) AS d",
    "LEFT JOIN": "SELECT r.k, r.x, s.y FROM r LEFT JOIN s ON r.k = s.k",
    "RIGHT JOIN": "SELECT r.x, s.k, s.w FROM r RIGHT JOIN s ON r.k = s.k AND r.x > 1",
    "FULL JOIN": "SELECT r.k AS a, t.k AS b, t.z FROM r FULL JOIN t ON r.k <=> t.k AND r.g = t.g AND t.z > 0",
    "SEMI JOIN": "SELECT r.k, r.x FROM r LEFT SEMI JOIN s ON r.k = s.k",
    "ANTI JOIN": "SELECT t.k, t.z FROM t LEFT ANTI JOIN r ON r.k = t.k AND r.x > t.g",
    "ANTI JOIN by <=>": "SELECT t.z FROM t LEFT ANTI JOIN r ON r.k <=> t.k",
    "MAX and AVG": "SELECT g, MAX(x) AS m, AVG(x) AS a, AVG(k) FILTER (WHERE x > 1) AS b, SUM(x) AS s FROM r "
    "GROUP BY g",
    "COUNT(DISTINCT)": "SELECT k, COUNT(DISTINCT w) AS n FROM r GROUP BY k",
    "DISTINCT beside others": "SELECT k, COUNT(DISTINCT x) AS n, SUM(DISTINCT x) AS s, AVG(DISTINCT x) AS a, "
    "MIN(w) AS l, COUNT(*) AS c, COUNT(DISTINCT x, w) FILTER (WHERE g = 1) AS b, MAX(DISTINCT g) AS h FROM r "
    "GROUP BY k",
    "a grand total of DISTINCT": "SELECT COUNT(DISTINCT x) AS n, COUNT(DISTINCT w) AS m FROM r WHERE k = 1",
    "BOOL_AND and its like": "SELECT k, BOOL_AND(f) AS a, BOOL_OR(f) AS o, COALESCE(COUNT_IF(f), 0) AS n FROM e "
    "GROUP BY k",
    "BIT_OR and BIT_AND": "SELECT k, BIT_OR(x) AS o, BIT_AND(x) AS a FROM r GROUP BY k",
    "computed keys and values": "SELECT x + g AS q, MAX(x * 2) AS m, SUM(x + 1) AS s, COUNT(DISTINCT x + k) AS n "
    "FROM r GROUP BY x + g",
    "SUM of BIGINT": "SELECT n, SUM(m) AS s, MAX(m) AS h "
    "FROM (SELECT g AS n, k, COUNT(*) AS m FROM r GROUP BY g, k) AS q GROUP BY n",
    "FULL JOIN of groups": "SELECT a.k AS i, b.k AS j, a.m FROM (SELECT k, MAX(x) AS m FROM r GROUP BY k) AS a "
    "FULL JOIN (SELECT DISTINCT k FROM s) AS b ON a.k = b.k",
    "EXISTS": "SELECT r.k, r.x FROM r WHERE r.x > 0 AND EXISTS (SELECT 1 FROM s WHERE s.k = r.k AND s.y > r.x)",
    "NOT EXISTS": "SELECT t.k, t.z FROM t WHERE NOT EXISTS (SELECT * FROM r AS q WHERE q.k = t.k AND q.w = 'a')",
    "IN": "SELECT r.k, r.w FROM r WHERE r.k IN (SELECT t.k FROM t WHERE t.g = 1 AND t.k < 2)",
    "IN of two": "SELECT r.k, r.w FROM r WHERE (r.k, r.g) IN (SELECT k, g FROM t) AND r.x > 0",
    "EXCEPT": "SELECT k, w FROM r EXCEPT SELECT k, w FROM s",
    "EXCEPT ALL": "SELECT k FROM r EXCEPT ALL SELECT k FROM t",
    "INTERSECT": "SELECT k, w FROM r INTERSECT SELECT k, w FROM s",
    "INTERSECT ALL": "SELECT k, g FROM r INTERSECT ALL SELECT k, g FROM t",
    "a set operation below": "SELECT q.k, MAX(q.g) AS m FROM (SELECT k, g FROM r EXCEPT ALL SELECT k, g FROM t) AS q "
    "GROUP BY q.k",
    "UNION without ALL": "SELECT q.k + 1 AS k FROM (SELECT k FROM r UNION SELECT k FROM t) AS q",
    "DISTINCT of DOUBLE": "SELECT d.z, d.k + 1 AS k FROM (SELECT DISTINCT z, k FROM t) AS d",
}

JOINS = {
    "three tables": "SELECT r.x, s.w, t.z FROM r JOIN s ON r.k = s.k JOIN t ON t.k = s.k AND t.g <= r.g",
    "groups of three tables": "SELECT r.g, SUM(s.y) AS s, COUNT(*) AS n FROM r JOIN s ON r.k = s.k JOIN t ON t.k = s.k "
    "GROUP BY r.g",
    "MAX of three tables": "SELECT s.w, MAX(r.x) AS m, COUNT(*) AS n FROM r JOIN s ON r.k = s.k JOIN t ON t.k = s.k "
    "GROUP BY s.w",
    "DISTINCT of three tables": "SELECT DISTINCT r.x, t.g FROM r JOIN s ON r.k = s.k JOIN t ON t.k = s.k",
}
"""Their rows are netted on the way only where nothing above takes them for single copies."""


@cache
def engine() -> Duck:
    return Duck(BAGS)


def hot_history(random: Random, commits: int = COMMITS, tables: Sequence[Known] = BAGS) -> list[Transaction]:
    """Rows come and go at a few keys, and are often there several times."""
    states: dict[str, list[Row]] = {table.name: [] for table in tables}
    history = []
    for _ in range(commits):
        table = random.choice(tables)
        held = states[table.name]
        random.shuffle(held)
        gone = [held.pop() for _ in range(min(len(held), random.randint(0, 2 if len(held) < ROWS else 4)))]
        values = [random_value(random, column.type) for column in table.schema.columns[1:]]
        come = [(random.choice(KEYS), *values), *([random.choice(held)] if held and random.random() < 0.3 else [])]
        held.extend(come)
        changes = net([(row, -1) for row in gone] + [(row, 1) for row in come])
        history.append({table.name: changes} if changes else {})
    return history


@pytest.mark.parametrize("name", [*VIEWS, *JOINS])
def test_many_commits_to_few_keys_are_told_exactly(name: str) -> None:
    duck = engine()
    duck.reset()
    query = {**VIEWS, **JOINS}[name]
    plan = duck.compile("v", query)
    assert plan.mode is not Mode.WHOLE
    for csn, transaction in enumerate(hot_history(Random(name)), 1):
        duck.commit(csn, transaction)
    view = View(duck, "v", plan, 3)
    view.propagate(COMMITS - 40)
    view.propagate(COMMITS)
    equal_at_every_csn(view, 3, COMMITS, query)


@pytest.mark.parametrize("name", VIEWS)
def test_rows_on_the_way_grow_with_the_commits_and_not_with_their_square(name: str) -> None:
    few, all_ = rows_on_the_way(name, many=True)
    assert all_ / few < 6, f"{few} rows for {FEWER} commits, {all_} for {4 * FEWER}"


@pytest.mark.parametrize("name", ["MAX", "FULL JOIN"])
def test_a_key_looked_at_again_at_each_commit_would_grow_with_the_square(name: str) -> None:
    few, all_ = rows_on_the_way(name, many=False)
    assert all_ / few > 7, f"{few} rows for {FEWER} commits, {all_} for {4 * FEWER}"


BEFORE, FEWER = 50, 150


def rows_on_the_way(name: str, *, many: bool) -> list[int]:
    """All rows that all operators of the engine's plan give, over so many commits and over four times as many."""
    duck = engine()
    duck.reset()
    plan = duck.compile("v", VIEWS[name])
    for csn, transaction in enumerate(hot_history(Random(name), BEFORE + 4 * FEWER, plan.reads), 1):
        duck.commit(csn, transaction)
    text = in_duckdb(plan.propagation(many=many).query)
    found = []
    for commits in (FEWER, 4 * FEWER):
        duck.set(a=BEFORE, b=BEFORE + commits)
        ((_, profile),) = duck.run(f"EXPLAIN (ANALYZE, FORMAT JSON) {text}")
        found.append(sum(_rows(operator) for operator in json.loads(profile)["operator"]))
    return found


def _rows(operator: dict[str, Any]) -> int:
    return int(operator.get("intermediate_rows", 0)) + sum(map(_rows, operator.get("children", ())))
