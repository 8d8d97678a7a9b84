"""A query that is answered from a view has the rows that it has over the tables, whatever is in them."""

from __future__ import annotations

import os
from collections import Counter
from functools import cache
from itertools import count
from random import Random

import pytest
from sqlglot import exp

from rollview.algebra.levels import parenthesised
from rollview.algebra.operators.leaf import Leaf
from rollview.algebra.pieces import TablePiece
from rollview.algebra.view import Mode, ViewPlan
from rollview.core.schema import Column, Constraints, Schema
from rollview.matching import Answering, NoMatch, NotFlat, RewrittenQuery, flatten, rewrite, rewritings
from tests.property.asked import Asked, Pairs
from tests.property.duck import Duck, canonical, in_duckdb, quoted
from tests.property.histories import random_history
from tests.property.schemas import KEYED
from tests.sizes import times

PAIRS = int(os.environ.get("ROLLVIEW_PAIRS", times(750, full=20_000)))
ROUTED = times(25, full=3_000)
QUERIES = 5
"""So many queries near each view."""
LENGTH = 6
CHUNKS = 10


@cache
def engine() -> Duck:
    return Duck(KEYED)


def kept(plan: ViewPlan, name: str) -> str:
    return name if plan.summary is None else f"{name}@groups"


def answering(plan: ViewPlan, name: str = "v") -> Answering:
    rel = plan.outline.rel
    assert rel is not None
    flat = flatten(rel)
    schema = Schema(tuple(Column(name, "int") for name in rel.columns)) if plan.hidden is None else plan.hidden
    leaf = Leaf.build(TablePiece(kept(plan, name), schema, Constraints()))
    return Answering(name, flat, leaf, plan.summary, {column: column for column in rel.columns})


def store(duck: Duck, plan: ViewPlan, at: int, name: str = "v") -> None:
    duck.set(t=at, a=at)
    query = plan.recomputation() if plan.summary is None else plan.first_groups()
    duck.db.execute(f"CREATE OR REPLACE TABLE {quoted(kept(plan, name))} AS {in_duckdb(query.query.copy())}")


def rows(duck: Duck, text: str) -> Counter[tuple[object, ...]]:
    return Counter(canonical(row) for row in duck.run(text))


def over_tables(rewritten: RewrittenQuery) -> str:
    query = rewritten.query
    for table in query.find_all(exp.Table):
        if table.name in {known.name for known in KEYED}:
            table.set("this", table.this.__class__(this=f"{table.name}@rows", quoted=True))
    return in_duckdb(query)


def answered(seed: int) -> int:
    """How many of the queries near a random view it answered: rightly, at the beginning and at the end of a history."""
    random, duck = Random(seed), engine()
    pairs = Pairs(random)
    asked = pairs.view()
    plan = duck.compile("v", asked.text)
    if plan.mode is Mode.WHOLE:
        return 0
    found = [match for _ in range(QUERIES) if (match := matched(duck, plan, pairs.query(asked))) is not None]
    duck.reset()
    for csn, transaction in enumerate(random_history(random, KEYED, LENGTH), 1):
        duck.commit(csn, transaction)
    for at in (0, LENGTH) if found else ():
        store(duck, plan, at)
        for query, wanted, rewritten in found:
            expected = rows(duck, parenthesised(wanted.recomputation().query, always=True).sql("duckdb"))
            told = rows(duck, over_tables(rewritten))
            assert told == expected, (
                f"seed {seed}, csn {at}\nview:  {asked.text}\nquery: {query.text}\n"
                f"over:  {rewritten.query.sql('spark')}\nmissing: {expected - told}\nsurplus: {told - expected}"
            )
    return len(found)


def matched(duck: Duck, plan: ViewPlan, query: Asked) -> tuple[Asked, ViewPlan, RewrittenQuery] | None:
    wanted = duck.compile("q", query.text)
    if wanted.outline.rel is None:
        return None
    try:
        return query, wanted, next(rewritings(flatten(wanted.outline.rel), answering(plan)))
    except (NoMatch, NotFlat):
        return None


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_a_query_over_a_view_is_the_query_over_its_tables(chunk: int) -> None:
    seeds = range(chunk, PAIRS // QUERIES, CHUNKS)
    assert sum(map(answered, seeds)) >= len(seeds) * QUERIES // 10


def check_together(duck: Duck, query: str, plans: dict[str, ViewPlan], random: Random) -> tuple[str, ...]:
    """The views that answer the query together: rightly, before and after a history."""
    wanted = duck.compile("q", query)
    if wanted.outline.rel is None:
        return ()
    try:
        made, _ = rewrite(flatten(wanted.outline.rel), [answering(plan, name) for name, plan in plans.items()])
    except NotFlat:
        return ()
    duck.reset()
    for csn, transaction in enumerate(random_history(random, KEYED, LENGTH), 1):
        duck.commit(csn, transaction)
    for at in (0, LENGTH) if made.how else ():
        for name, plan in plans.items():
            store(duck, plan, at, name)
        expected = rows(duck, parenthesised(wanted.recomputation().query, always=True).sql("duckdb"))
        told = rows(duck, over_tables(made))
        assert told == expected, f"{query}\nover {made.query.sql('spark')}\n{expected - told}\n{told - expected}"
    return tuple(made.how)


@pytest.mark.parametrize(
    ("query", "views", "used"),
    [
        # Each view has a row for several: how often the other's rows are there would be forgotten.
        (
            "SELECT c.x, COUNT(*) AS n FROM c JOIN o ON c.x = o.a GROUP BY c.x",
            ("SELECT x, COUNT(*) AS n FROM c GROUP BY x", "SELECT a, COUNT(*) AS n FROM o GROUP BY a"),
            1,
        ),
        # A least value is the same however often it is there.
        (
            "SELECT c.x, MIN(o.a) AS n FROM c JOIN o ON c.x = o.a GROUP BY c.x",
            ("SELECT x, COUNT(*) AS n FROM c GROUP BY x", "SELECT a, COUNT(*) AS n FROM o GROUP BY a"),
            2,
        ),
        ("SELECT x, MIN(DISTINCT x) AS n FROM c GROUP BY x", ("SELECT x, COUNT(*) AS n FROM c GROUP BY x",), 1),
        # Over no rows a total is a row, and there is no group.
        ("SELECT 'k' AS k, COUNT(*) AS n FROM c GROUP BY 'k'", ("SELECT COUNT(*) AS n FROM c",), 0),
    ],
    ids=["counts of two", "the least of two", "the least of different", "groups by a constant"],
)
def test_views_answer_together_what_the_tables_answer(query: str, views: tuple[str, ...], used: int) -> None:
    duck = engine()
    plans = {f"v{number}": duck.compile(f"v{number}", text) for number, text in enumerate(views)}
    assert [len(check_together(duck, query, plans, Random(seed))) for seed in range(5)] == [used] * 5


def routed(seed: int) -> bool:
    """Whether a query was answered from some of four random views: rightly, before and after a history."""
    random, duck = Random(seed), engine()
    pairs, plans = Pairs(random), dict[str, ViewPlan]()
    near = pairs.view()
    while len(plans) < 4:
        name, asked = f"v{len(plans)}", of(pairs, near.tables)
        plan = duck.compile(name, asked.text)
        if plan.mode is not Mode.WHOLE:
            plans[name], near = plan, asked
    query = next(query.text for _ in count() if _is_compared(duck, query := pairs.query(near)))
    return bool(check_together(duck, query, plans, random))


def _is_compared(duck: Duck, query: Asked) -> bool:
    return duck.compile("q", query.text).outline.rel is not None


def test_routed_equals_unrouted_and_half_are_routed() -> None:
    assert 2 * sum(map(routed, range(ROUTED))) >= ROUTED


def of(pairs: Pairs, tables: tuple[str, ...]) -> Asked:
    return next(asked for _ in count() if (asked := pairs.view()).tables == tables)


def several(seed: int) -> int:
    """How many views of one table answered a query of two."""
    random, duck = Random(seed), engine()
    pairs = Pairs(random)
    query, views = of(pairs, ("c", "o")), {"v0": of(pairs, ("c",)), "v1": of(pairs, ("o",)), "v2": of(pairs, ("c",))}
    plans = {name: duck.compile(name, view.text) for name, view in views.items()}
    usable = {name: plan for name, plan in plans.items() if plan.mode is not Mode.WHOLE}
    return len(check_together(duck, query.text, usable, random))


def test_random_views_answer_together_what_the_tables_answer() -> None:
    used = [several(seed) for seed in range(PAIRS // 10)]
    assert sum(one > 1 for one in used) >= 3
