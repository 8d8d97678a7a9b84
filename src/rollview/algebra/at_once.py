"""Small inputs of a block, joined at once over their timed rows.

Law: with the rows that were there at the start at csn 0, counts multiplied and the csn of a result the largest of its
rows, the join of timed rows is the timed join, so

    ΔV(a,b] = σ_{csn > 0}(R1 ⋈ … ⋈ Rn)

because every combination with a changed row in it is there exactly once. One join takes the place of n terms, each of
n inputs: over few rows Spark plans longer than it computes. Beside large inputs L1 … Lk the small ones that equalities
tie together are one input more, so the terms follow k and not n:

    ΔV = Σ_i  L1@a ⋈ … ⋈ ΔLi ⋈ … ⋈ Lk@b ⋈ T@b  +  L1@a ⋈ … ⋈ Lk@a ⋈ σ_{csn > 0}(T)

Where keys were touched at many csns, a row meets all that its partners ever were, and n inputs the product of n
histories. So each join is netted before the next: what is left of a csn is what changed there.

Joins are written one inside the other, each brought into one piece: Spark does not see that a join of two inputs of one
piece each is in one piece, and would send it on before the next join, which costs more than joining few rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from sqlglot import exp

from rollview.algebra import zeroes
from rollview.algebra.expressions import (
    all_of,
    column,
    columns_in,
    gathered,
    hash_join,
    identifiers,
    named,
    number,
    select,
    table,
)
from rollview.algebra.operator import Input, Operator, Output
from rollview.algebra.product import Product, can_be_netted, join_order, met_by, multiplied, ties
from rollview.algebra.script import Script
from rollview.core.names import COUNT, CSN

_TOGETHER, _NETTED, _JOINED = "_rv_together", "_rv_netted", "_rv_joined"

Joined = TypeVar("Joined", bound=Product)


def changes(script: Script, rel: Product) -> exp.Select:
    """The delta of a block whose inputs are all small."""
    rel = _two_by_two(script, rel)
    query = timed(script, rel)
    return query.where(exp.GT(this=_latest(rel.sources), expression=number(0)), copy=False)


def timed(script: Script, rel: Product) -> exp.Select:
    """The timed rows of a block whose inputs are all small, or of one with one input."""
    rel = _two_by_two(script, rel)
    first, *rest = rel.sources
    query = select(
        *[named(output.expression, output.name) for output in rel.outputs],
        named(multiplied([column(source.alias, COUNT) for source in rel.sources]), COUNT),
        named(_latest(rel.sources), CSN),
    ).from_(table(_rows_of(script, first), first.alias))
    ready, waiting = met_by(rel.where, {first.alias})
    placed = {first.alias}
    for source in join_order(rel, placed, rest):
        placed.add(source.alias)
        on, waiting = met_by(waiting, placed)
        query = query.join(table(_rows_of(script, source), source.alias), on=all_of(on), copy=False)
    if rest and script.small:
        hash_join(query, *(source.alias for source in rest))
    return query.where(all_of(ready), copy=False) if ready else query


def _two_by_two(script: Script, rel: Joined) -> Joined:
    """The same block of two inputs, the first of which is the join of all others, its net effect where that pays."""
    if len(rel.sources) < 3:
        return rel
    first, *rest = rel.sources
    *before, last = [first, *join_order(rel, {first.alias}, rest)]
    if script.many and script.counts_add_up:
        joined, made = _with_one_before(rel, before, last, _NETTED)
        if can_be_netted([joined], [(_NETTED, name) for name in joined.rel.columns]):
            return made
    return _with_one_before(rel, before, last, _JOINED)[1] if script.small else rel


def _with_one_before(rel: Joined, some: Sequence[Input], last: Input, alias: str) -> tuple[Input, Joined]:
    """The join of ``some``, and the block of it and the last input."""
    made = _with_one_for(rel, some, alias)
    (joined,) = (source for source in made.sources if source.alias == alias)
    return joined, replace(made, sources=(joined, last))


def _rows_of(script: Script, source: Input) -> str:
    if source.alias == _NETTED:
        return script.once(("net", source.rel), "netted", lambda: _gathered(script, _netted(script, source.rel)))
    if source.alias == _JOINED:
        assert isinstance(source.rel, Product)
        block = source.rel
        return script.once(("joined", block), "joined", lambda: _gathered(script, timed(script, block)))
    return script.timed(source.rel)


def _netted(script: Script, rel: Operator) -> exp.Select:
    return zeroes.net_by_csn(rel, select().from_(table(script.timed(rel))))


def _gathered(script: Script, query: exp.Select) -> exp.Select:
    return gathered(query) if script.small else query


def folded(script: Script, rel: Joined) -> Joined:
    """The same block with small changed inputs that equalities tie together as one input, behind all others."""
    few = [source for source in rel.sources if script.changed(source.rel) and script.is_small(source.rel)]
    for place, some in enumerate(_tied(rel, few)):
        if 1 < len(some) < len(rel.sources):
            rel = _with_one_for(rel, some, f"{_TOGETHER}{place}")
    return rel


def is_together(source: Input) -> bool:
    """Whether the input is one that ``folded`` made."""
    return source.alias.startswith(_TOGETHER)


def is_one(script: Script, rel: Product) -> bool:
    """Whether all inputs are small, and tied together by equalities."""
    return all(script.is_small(source.rel) for source in rel.sources) and len(list(_tied(rel, rel.sources))) == 1


def _tied(rel: Product, sources: Sequence[Input]) -> Iterator[list[Input]]:
    """The inputs in groups: those of one group can be joined by equalities that name no other input."""
    left = list(sources)
    while left:
        group, placed = [left.pop(0)], set[str]()
        while True:
            placed = {source.alias for source in group}
            more = [s for s in left if any(ties(condition, s.alias, placed) for condition in rel.where)]
            if not more:
                break
            group.extend(more)
            left = [source for source in left if source not in more]
        yield group


def _with_one_for(rel: Joined, some: Sequence[Input], alias: str) -> Joined:
    """The block with one input, the join of ``some``, in their place."""
    inside = {source.alias for source in some}
    where = [condition for condition in rel.where if identifiers(condition) and identifiers(condition) <= inside]
    others = [condition for condition in rel.where if not any(condition is one for one in where)]
    used = columns_in([*others, *(output.expression for output in rel.outputs)])
    wanted = sorted((table, name) for table, name in used if table in inside) or [
        (some[0].alias, some[0].rel.columns[0])
    ]
    outputs = tuple(Output(_flat(*one), column(*one)) for one in wanted)
    joined: Operator = replace(rel, sources=tuple(some), where=tuple(where), outputs=outputs)  # type: ignore[assignment]

    def above(expression: exp.Expr) -> exp.Expr:
        def renamed(node: exp.Expr) -> exp.Expr:
            if isinstance(node, exp.Column) and node.table in inside:
                return column(alias, _flat(node.table, node.name))
            return node

        return expression.copy().transform(renamed)

    return replace(
        rel,
        sources=(*(source for source in rel.sources if source.alias not in inside), Input(alias, joined)),
        where=tuple(map(above, others)),
        outputs=tuple(Output(output.name, above(output.expression)) for output in rel.outputs),
    )


def _flat(alias: str, name: str) -> str:
    return f"{alias}.{name}"


def _latest(sources: Sequence[Input]) -> exp.Expr:
    first, *rest = [column(source.alias, CSN) for source in sources]
    return exp.Greatest(this=first, expressions=rest) if rest else first
