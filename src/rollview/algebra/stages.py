"""A query whose subqueries read each other several times, computed in stages.

Law: the stages, run in order, each seeing the results of those before it, give the query's result. An engine writes a
subquery out wherever it is read, so nested ones would be read a number of times that doubles with every level; where a
stage begins they count as one table, and no stage grows beyond a bound times its own text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sqlglot import exp

from rollview.algebra.expressions import identifier

HEAVY = 24
"""Tables that a subquery reads, all written out, from which it is worth computing once if it is read twice."""


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """``name``: what later stages call the result; None for the last."""

    name: str | None
    query: exp.Query


def stages(query: exp.Query) -> tuple[Stage, ...]:
    subqueries: Subqueries = {cte.alias: cte.this for cte in query.ctes}
    body = query.copy()
    body.set("with_", None)
    apart = _worth_computing_once(body, subqueries)
    if not apart:
        return (Stage(None, query),)
    first = [Stage(name, _with_what_it_reads(subqueries[name], subqueries, apart)) for name in apart]
    return (*first, Stage(None, _with_what_it_reads(body, subqueries, apart)))


Subqueries = Mapping[str, exp.Query]
"""By name, each after those that it reads."""


def _worth_computing_once(body: exp.Query, subqueries: Subqueries) -> list[str]:
    reads = {name: _tables(subquery) for name, subquery in subqueries.items()}
    uses = sum((_tables(body), *reads.values()), Counter[str]())
    weights: dict[str, int] = {}
    apart: list[str] = []
    for name, tables in reads.items():
        weights[name] = sum(weights.get(read, 1) * times for read, times in tables.items())
        if weights[name] >= HEAVY and uses[name] > 1:
            apart.append(name)
            weights[name] = 1
    return apart


def _with_what_it_reads(body: exp.Query, subqueries: Subqueries, apart: Collection[str]) -> exp.Query:
    """The query with those subqueries in front that it needs and that are not computed apart."""
    needed: set[str] = set()
    unseen = [body]
    while unseen:
        found = {name for name in _tables(unseen.pop()) if name in subqueries and name not in apart} - needed
        needed |= found
        unseen.extend(subqueries[name] for name in found)
    whole = body.copy()
    for name in (name for name in subqueries if name in needed):
        whole = whole.with_(identifier(name), as_=subqueries[name].copy(), append=True, copy=False)
    return whole


def _tables(query: exp.Query) -> Counter[str]:
    return Counter(found.name for found in query.find_all(exp.Table))
