"""Rows that a new definition gets from what is stored by the old one are those that it has over the tables."""

from __future__ import annotations

from collections import Counter
from functools import cache
from random import Random

import pytest

from rollview.algebra.levels import parenthesised
from rollview.algebra.view import Mode, ViewPlan
from rollview.core.schema import Column, Schema
from rollview.propagate.derive import OLD_GROUPS, OLD_ROWS, AdaptMode, Derivation, plan_derivation
from tests.property.asked import Asked, Pairs
from tests.property.duck import Duck, canonical, in_duckdb, quoted
from tests.property.histories import random_history
from tests.property.schemas import KEYED
from tests.sizes import times

PAIRS = times(200, full=8_000)
LENGTH = 6
CHUNKS = 4

Bag = Counter[tuple[object, ...]]


@cache
def engine() -> Duck:
    return Duck(KEYED)


def schema(plan: ViewPlan) -> Schema:
    assert plan.outline.rel is not None
    return Schema(tuple(Column(name, "int") for name in plan.outline.rel.columns))


def rows(duck: Duck, text: str) -> Bag:
    return Counter(canonical(row) for row in duck.run(text))


def told(duck: Duck, old: ViewPlan, new: ViewPlan, found: Derivation) -> Bag:
    """What the stored rows or groups give, at the csn that is set."""
    if found.groups is not None:
        stored = f"CREATE OR REPLACE TABLE {quoted(OLD_GROUPS)} AS {in_duckdb(old.first_groups().query.copy())}"
        duck.db.execute(stored)
        return rows(duck, in_duckdb(found.groups.copy()))
    recomputed = parenthesised(old.recomputation().query, always=True).sql("duckdb")
    names = ", ".join(quoted(name) for name in schema(old).names)
    duck.db.execute(f"CREATE OR REPLACE TABLE {quoted(OLD_ROWS)}({names}) AS {recomputed}")
    if found.rows is not None:
        return rows(duck, in_duckdb(found.rows.copy()))
    listed = ", ".join(quoted(found.columns[name]) for name in schema(new).names)
    return rows(duck, f"SELECT {listed} FROM {quoted(OLD_ROWS)}")


def wanted(duck: Duck, new: ViewPlan, found: Derivation) -> Bag:
    query = new.first_groups().query if found.groups is not None else new.recomputation().query
    return rows(duck, parenthesised(query, always=True).sql("duckdb"))


def changed(random: Random, asked: Asked) -> str:
    """The same with its columns in another order, under other names or names of each other."""
    outputs = tuple(random.sample(asked.outputs, len(asked.outputs)))
    text = Asked(asked.tables, asked.where, asked.keys, outputs, asked.having).text
    return text.replace(" AS o", " AS r") if random.random() < 0.8 else text


def derived(seed: int) -> AdaptMode | None:
    random, duck = Random(seed), engine()
    pairs = Pairs(random)
    before = pairs.view()
    after = pairs.query(before).text if random.random() < 0.6 else changed(random, before)
    old, new = duck.compile("v", before.text), duck.compile("v", after)
    if Mode.WHOLE in (old.mode, new.mode):
        return None
    found = plan_derivation((old, schema(old)), (new, schema(new)))
    if found.mode is AdaptMode.RECOMPUTED:
        return found.mode
    if found.mode is AdaptMode.RENAMED:
        there = set(schema(old).names) & set(schema(new).names)
        assert all(found.columns[name] == name for name in there), "a name that stays means what it meant"
    duck.reset()
    for csn, transaction in enumerate(random_history(random, KEYED, LENGTH), 1):
        duck.commit(csn, transaction)
    for at in (0, LENGTH):
        duck.set(t=at, a=at)
        expected, got = wanted(duck, new, found), told(duck, old, new, found)
        assert got == expected, (
            f"seed {seed}, csn {at}, {found}\nold: {before.text}\nnew: {after}\n"
            f"missing: {expected - got}\nsurplus: {got - expected}"
        )
    return found.mode


def test_aggregates_in_another_order_are_known_by_what_they_are() -> None:
    duck = engine()
    old = duck.compile("v", "SELECT pid AS kind, SUM(x) AS total, COUNT(*) AS n FROM c GROUP BY pid")
    new = duck.compile("v", "SELECT COUNT(*) AS rows, pid AS kind, SUM(x) AS sum_of FROM c GROUP BY pid")
    found = plan_derivation((old, schema(old)), (new, schema(new)))
    assert found.mode is AdaptMode.RENAMED
    assert found.columns == {"rows": "n", "kind": "kind", "sum_of": "total"}


@pytest.mark.parametrize(
    ("new", "mode"),
    [
        ("SELECT pid AS kind, SUM(x) AS s, COUNT(*) AS rows FROM c GROUP BY pid", AdaptMode.RENAMED),
        ("SELECT COUNT(*) AS rows, pid AS kind, SUM(x) AS s FROM c GROUP BY pid", AdaptMode.STORED),
    ],
)
def test_where_rows_are_stored_by_the_order_of_columns_another_order_is_written(new: str, mode: AdaptMode) -> None:
    duck = engine()
    old = duck.compile("v", "SELECT pid AS kind, SUM(x) AS total, COUNT(*) AS n FROM c GROUP BY pid")
    plan = duck.compile("v", new)
    assert plan_derivation((old, schema(old)), (plan, schema(plan)), keeps_order=True).mode is mode


def test_rows_in_another_order_are_written_too() -> None:
    duck = engine()
    old, new = (duck.compile("v", f"SELECT {columns} FROM c") for columns in ("pid, x AS y", "x AS z, pid"))
    about = (old, schema(old)), (new, schema(new))
    assert plan_derivation(*about).mode is AdaptMode.RENAMED
    assert plan_derivation(*about, keeps_order=True).mode is AdaptMode.STORED


def test_a_grand_total_does_not_tell_the_groups_of_no_rows() -> None:
    duck = engine()
    old = duck.compile("v", "SELECT SUM(x) AS total, COUNT(*) AS n FROM c")
    new = duck.compile("v", "SELECT 1 AS one, SUM(x) AS total, COUNT(*) AS n FROM c GROUP BY 1 + 0")
    assert new.summary is not None
    assert plan_derivation((old, schema(old)), (new, schema(new))).mode is AdaptMode.RECOMPUTED


def test_a_constant_key_is_not_taken_for_the_place_of_a_column() -> None:
    duck = engine()
    old = duck.compile("v", "SELECT pid, SUM(x) AS total FROM c GROUP BY pid")
    new = duck.compile("v", "SELECT d.five, SUM(d.x) AS total FROM (SELECT 5 AS five, x FROM c) AS d GROUP BY d.five")
    assert plan_derivation((old, schema(old)), (new, schema(new))).mode is AdaptMode.RECOMPUTED


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_stored_rows_tell_the_new_ones_rightly(chunk: int) -> None:
    seeds = range(chunk, PAIRS, CHUNKS)
    modes = Counter(map(derived, seeds))
    assert modes[AdaptMode.STORED] >= len(seeds) // 20
    assert modes[AdaptMode.RENAMED] >= len(seeds) // 50
