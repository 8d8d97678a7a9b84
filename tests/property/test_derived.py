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


SIDES = (
    "SELECT id AS a, pid AS b FROM c",
    "SELECT id AS a, x AS b FROM c WHERE x > 1",
    "SELECT a, b FROM o",
    "SELECT c.id AS a, p.g AS b FROM c JOIN p ON p.id = c.pid",
    "SELECT x AS a, 7 AS b FROM c",
)


def union(random: Random) -> tuple[str, str]:
    """Two definitions of one form, over sides of which they mostly have some in common."""
    sides = random.choices(SIDES, k=random.randint(1, 3))
    others = [one for one in sides if random.random() < 0.7] + random.choices(SIDES, k=random.choice((0, 1, 1)))
    both = [" UNION ALL ".join(some) for some in (sides, others or sides[:1])]
    form = random.choice(("{}", "SELECT b, SUM(a) AS s, COUNT(*) AS n FROM ({}) WHERE a > 1 GROUP BY b"))
    return form.format(both[0]), form.format(both[1])


def pair(random: Random) -> tuple[str, str]:
    if random.random() < 0.2:
        return union(random)
    pairs = Pairs(random)
    view = pairs.view()
    if random.random() < 0.35:
        return view.text, changed(random, view)
    query = pairs.query(view)
    return (view.text, query.text) if random.random() < 0.6 else (query.text, view.text)


def derived(seed: int) -> AdaptMode | None:
    random = Random(seed)
    return compared(random, *pair(random), f"seed {seed}")


def compared(random: Random, before: str, after: str, where: str = "") -> AdaptMode | None:
    duck = engine()
    old, new = duck.compile("v", before), duck.compile("v", after)
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
            f"{where}, csn {at}, {found}\nold: {before}\nnew: {after}\n"
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
    old = "SELECT pid, SUM(x) AS total FROM c GROUP BY pid"
    new = "SELECT d.five, SUM(d.x) AS total FROM (SELECT 5 AS five, x FROM c) AS d GROUP BY d.five"
    assert compared(Random(1), old, new) is AdaptMode.STORED


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_stored_rows_tell_the_new_ones_rightly(chunk: int) -> None:
    seeds = range(chunk, PAIRS, CHUNKS)
    modes = Counter(map(derived, seeds))
    assert modes[AdaptMode.STORED] >= len(seeds) // 20
    assert modes[AdaptMode.RENAMED] >= len(seeds) // 50
    assert modes[AdaptMode.PARTLY] >= len(seeds) // 20


C_TOTALS = "SELECT pid, SUM(x) AS s FROM c"


@pytest.mark.parametrize(
    ("old", "new", "why", "beside"),
    [
        ("SELECT pid, x FROM c WHERE x > 5", "SELECT pid, x FROM c WHERE x > 3", "rows that it left out", {"c"}),
        ("SELECT pid, x FROM c WHERE x > 5", "SELECT x, pid FROM c", "rows that it left out", {"c"}),
        (
            f"{C_TOTALS} WHERE x > 5 GROUP BY pid",
            f"{C_TOTALS} WHERE x > 3 GROUP BY pid",
            "rows that it left out",
            {"c"},
        ),
        (
            f"{C_TOTALS} GROUP BY pid",
            "SELECT pid, SUM(x) AS s, SUM(id) AS more FROM c GROUP BY pid",
            "sums that it lacks",
            {"c"},
        ),
        ("SELECT id, pid FROM c", "SELECT id, pid, x FROM c", "joined with what they lack", {"c"}),
        (
            "SELECT id, pid FROM c",
            "SELECT c.id, c.pid, p.w FROM c JOIN p ON p.id = c.pid",
            "joined with what they lack",
            {"p"},
        ),
        (SIDES[0], f"{SIDES[0]} UNION ALL {SIDES[2]}", "sides that come or go", {"o"}),
        (f"{SIDES[0]} UNION ALL {SIDES[2]}", SIDES[2], "sides that come or go", {"c"}),
        (
            f"SELECT b, SUM(a) AS s FROM ({SIDES[0]}) GROUP BY b",
            f"SELECT b, SUM(a) AS s FROM ({SIDES[0]} UNION ALL {SIDES[2]}) GROUP BY b",
            "sides that come or go",
            {"c", "o"},
        ),
    ],
)
def test_only_the_part_that_is_not_stored_is_read(old: str, new: str, why: str, beside: set[str]) -> None:
    duck = engine()
    plans = [duck.compile("v", text) for text in (old, new)]
    found = plan_derivation(*((plan, schema(plan)) for plan in plans))
    assert found.mode is AdaptMode.PARTLY, found.why
    assert why in found.why
    assert set(found.reads) == beside
