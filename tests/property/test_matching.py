"""A query that is answered from a view has the rows that it has over the tables, whatever is in them."""

from __future__ import annotations

import os
from collections import Counter
from functools import cache
from random import Random

import pytest

from rollview.algebra.levels import parenthesised
from rollview.algebra.operators.leaf import Leaf
from rollview.algebra.pieces import TablePiece
from rollview.algebra.view import Mode, ViewPlan
from rollview.core.schema import Column, Constraints, Schema
from rollview.matching import Answering, NoMatch, NotFlat, RewrittenQuery, flatten, rewritings
from tests.property.asked import Asked, Pairs
from tests.property.duck import Duck, canonical, in_duckdb, quoted
from tests.property.histories import random_history
from tests.property.schemas import KEYED
from tests.sizes import times

PAIRS = int(os.environ.get("ROLLVIEW_PAIRS", times(3_000, full=20_000)))
QUERIES = 5
"""So many queries near each view."""
LENGTH = 6
CHUNKS = 10
KEPT = "v@groups"


@cache
def engine() -> Duck:
    return Duck(KEYED)


def answering(plan: ViewPlan) -> Answering:
    rel = plan.outline.rel
    assert rel is not None
    flat = flatten(rel)
    schema = Schema(tuple(Column(name, "int") for name in rel.columns)) if plan.hidden is None else plan.hidden
    name = "v" if plan.summary is None else KEPT
    leaf = Leaf.build(TablePiece(name, schema, Constraints()))
    return Answering("v", flat, leaf, plan.summary, {name: name for name in rel.columns})


def store(duck: Duck, plan: ViewPlan, at: int) -> None:
    duck.set(t=at, a=at)
    name, query = ("v", plan.recomputation()) if plan.summary is None else (KEPT, plan.first_groups())
    duck.db.execute(f"CREATE OR REPLACE TABLE {quoted(name)} AS {in_duckdb(query.query.copy())}")


def rows(duck: Duck, text: str) -> Counter[tuple[object, ...]]:
    return Counter(canonical(row) for row in duck.run(text))


def over_tables(rewritten: RewrittenQuery) -> str:
    query = rewritten.query
    for table in query.find_all(type(query.args["from_"].this)):
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
