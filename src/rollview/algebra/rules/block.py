"""Select, project, inner join: one term per changed input, each started at that input's delta.

Law (003 Eq. 2, with versions kept as in 002):

    ΔV(a,b] = Σ_i  R1@a ⋈ … ⋈ R(i-1)@a ⋈ ΔRi(a,b] ⋈ R(i+1)@b ⋈ … ⋈ Rn@b

Counts multiply. The csn of a result is the largest csn of its delta rows, where the part of Rj@b that lies in (a,b]
counts as delta rows. Every occurrence of a relation is an input of its own, so self-joins need nothing more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from rollview.algebra.expressions import (
    all_of,
    bag_union,
    big,
    broadcast,
    column,
    identifiers,
    named,
    select,
    table,
)
from rollview.algebra.rules import lookup
from rollview.algebra.tree import Block, Input, Leaf
from rollview.core.names import COUNT, CSN

if TYPE_CHECKING:
    from rollview.algebra.script import Script

_SO_FAR = "t"
_NEXT = "n"


def delta(script: Script, rel: Block) -> exp.Query:
    terms = [
        term
        for i, source in enumerate(rel.sources)
        if script.changed(source.rel) and (term := _term(script, rel, i)) is not None
    ]
    return bag_union(terms) if terms else _nothing(script, rel)


def old(script: Script, rel: Block) -> exp.Query:
    query = select(
        *[named(output.expression, output.name) for output in rel.outputs],
        named(_product([column(source.alias, COUNT) for source in rel.sources]), COUNT),
    )
    first, *rest = rel.sources
    query = query.from_(table(script.old(first.rel), first.alias))
    placed, waiting = {first.alias}, list(rel.where)
    for source in rest:
        placed.add(source.alias)
        ready, waiting = _ready(waiting, placed)
        query = query.join(table(script.old(source.rel), source.alias), on=all_of(ready), copy=False)
    return query.where(*waiting, copy=False) if waiting else query


def _term(script: Script, rel: Block, i: int) -> exp.Select | None:
    """The term that starts at the delta of input i, or None where the constraints prove it empty."""
    from rollview.algebra.script import TermNote

    start = rel.sources[i]
    if len(rel.sources) == 1:
        return _row_by_row(script, rel)
    wanted = _columns_wanted(rel)
    placed = {start.alias}
    ready, waiting = _ready(list(rel.where), placed)
    name = script.add(f"from_{start.alias}", _start(script, start, wanted[start.alias], ready))
    reasons: list[str] = []
    for source in _join_order(rel, i):
        placed.add(source.alias)
        ready, waiting = _ready(waiting, placed)
        is_later = rel.sources.index(source) > i
        partner = lookup.plan(script, start, source, ready, name, is_later=is_later)
        reasons.extend(partner.reasons)
        if partner.empty:
            script.notes.append(TermNote(_label(start), False, "; ".join(partner.reasons)))
            return None
        step = _step(script, name, source, partner, wanted, ready, placed)
        name = script.add(f"from_{start.alias}_to_{source.alias}", step)
    script.notes.append(TermNote(_label(start), True, "; ".join(reasons) or "starts at the delta"))
    outputs = [named(_flat(output.expression), output.name) for output in rel.outputs]
    query = select(*outputs, column(None, COUNT), column(None, CSN)).from_(table(name))
    return query.where(*[_flat(condition) for condition in waiting], copy=False) if waiting else query


def _row_by_row(script: Script, rel: Block) -> exp.Select:
    alias = rel.sources[0].alias
    outputs = [named(output.expression, output.name) for output in rel.outputs]
    query = select(*outputs, column(alias, COUNT), column(alias, CSN))
    query = query.from_(table(script.delta(rel.sources[0].rel), alias))
    return query.where(all_of(rel.where), copy=False) if rel.where else query


def _start(script: Script, start: Input, wanted: Sequence[str], ready: Sequence[exp.Expr]) -> exp.Select:
    columns = [named(column(start.alias, name), _flat_name(start.alias, name)) for name in wanted]
    query = select(*columns, column(start.alias, COUNT), column(start.alias, CSN))
    query = query.from_(table(script.delta(start.rel), start.alias))
    return query.where(all_of(ready), copy=False) if ready else query


def _step(
    script: Script,
    so_far: str,
    source: Input,
    partner: lookup.Partner,
    wanted: dict[str, list[str]],
    ready: Sequence[exp.Expr],
    placed: set[str],
) -> exp.Select:
    carried = [
        column(_SO_FAR, _flat_name(alias, name))
        for alias in wanted
        if alias in placed and alias != source.alias
        for name in wanted[alias]
    ]
    gained = [named(column(_NEXT, name), _flat_name(source.alias, name)) for name in wanted[source.alias]]
    count = _product([column(_SO_FAR, COUNT), column(_NEXT, COUNT)])
    csn: exp.Expr = column(_SO_FAR, CSN)
    if partner.timed:
        csn = exp.Greatest(this=csn, expressions=[column(_NEXT, CSN)])
    conditions = [_flat(condition, source.alias) for condition in ready]
    query = (
        select(*carried, *gained, named(count, COUNT), named(csn, CSN))
        .from_(table(so_far, _SO_FAR))
        .join(partner.rows(_NEXT), on=all_of(conditions), copy=False)
    )
    return broadcast(query, _SO_FAR) if script.small else query


def _flat(expression: exp.Expr, current: str | None = None) -> exp.Expr:
    """Column ``alias.name`` as it is called in the rows joined so far, or in the input that is being joined."""

    def flat(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        if node.table == current:
            return column(_NEXT, node.name)
        return column(_SO_FAR if current else None, _flat_name(node.table, node.name))

    return expression.copy().transform(flat)


def _flat_name(alias: str, name: str) -> str:
    return lookup.flat_name(alias, name)


def _join_order(rel: Block, start: int) -> list[Input]:
    """The other inputs, each as soon as some condition ties it to those before it."""
    placed = {rel.sources[start].alias}
    left = [source for i, source in enumerate(rel.sources) if i != start]
    order: list[Input] = []
    while left:
        tied = (s for s in left if any(_ties(condition, s.alias, placed) for condition in rel.where))
        chosen = next(tied, left[0])
        left.remove(chosen)
        placed.add(chosen.alias)
        order.append(chosen)
    return order


def _ties(condition: exp.Expr, alias: str, placed: set[str]) -> bool:
    used = identifiers(condition)
    return isinstance(condition, exp.EQ) and alias in used and len(used) > 1 and used <= placed | {alias}


def _ready(conditions: list[exp.Expr], placed: set[str]) -> tuple[list[exp.Expr], list[exp.Expr]]:
    ready = [condition for condition in conditions if identifiers(condition) <= placed]
    return ready, [condition for condition in conditions if not identifiers(condition) <= placed]


def _columns_wanted(rel: Block) -> dict[str, list[str]]:
    wanted: dict[str, list[str]] = {source.alias: [] for source in rel.sources}
    expressions = [*rel.where, *[output.expression for output in rel.outputs]]
    for node in (node for expression in expressions for node in expression.find_all(exp.Column)):
        if node.name not in wanted[node.table]:
            wanted[node.table].append(node.name)
    return wanted


def _product(counts: list[exp.Column]) -> exp.Expr:
    product: exp.Expr = counts[0]
    for count in counts[1:]:
        product = exp.Mul(this=product, expression=count)
    return product


def _label(source: Input) -> str:
    return source.rel.relation if isinstance(source.rel, Leaf) else source.alias


def _nothing(script: Script, rel: Block) -> exp.Query:
    """No term is left: an empty delta that still has the right columns and types."""
    state = old(script, rel)
    columns = [column(None, name) for name in rel.columns]
    query = select(*columns, column(None, COUNT), named(big(0), CSN)).from_(state.subquery("o"))
    return query.where(exp.false(), copy=False)
