"""The delta of a block: one term per changed input, each started at that input's delta.

Law (Salem et al., *How To Roll a Join*, equation 2, over tables whose versions are kept):

    ΔV(a,b] = Σ_i  R1@a ⋈ … ⋈ R(i-1)@a ⋈ ΔRi(a,b] ⋈ R(i+1)@b ⋈ … ⋈ Rn@b

Counts multiply. The csn of a result is the largest csn of its delta rows, where the part of Rj@b that lies in (a,b]
counts as delta rows. Every occurrence of a relation is an input of its own, so self-joins need nothing more. Small
inputs are joined ``at_once``: there is a term for each large one, and one for the small ones together.

A box of a rolling propagation is the term of one relation alone. With f the places to which relations have come,

    box of i over (f_i, y] = R1@f_1 ⋈ … ⋈ ΔRi(f_i, y] ⋈ … ⋈ Rn@f_n

where the part of Rj@f_j that lies behind f_i counts as delta rows too. Boxes never overlap, so nothing is compensated.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from rollview.algebra import at_once, lookup
from rollview.algebra.expressions import (
    all_of,
    bag_union,
    big,
    broadcast,
    column,
    gathered,
    hash_join,
    named,
    select,
    table,
)
from rollview.algebra.operator import Input
from rollview.algebra.operators.leaf import Leaf
from rollview.algebra.product import (
    Product,
    Wanted,
    columns_wanted,
    join_order,
    met_by,
    multiplied,
    ties,
)
from rollview.algebra.script import Script, TermNote
from rollview.core.names import COUNT, CSN

_SO_FAR = "t"
_NEXT = "n"
SMALL_SIDE_ROWS = 50_000
"""Up to here an input is sent to the rows joined so far, rather than they to it."""


def delta(script: Script, rel: Product) -> exp.Query:
    changed = any(script.starts(source.rel) for source in rel.sources)
    if len(rel.sources) == 1 and (changed or script.is_absent(rel.sources[0].rel)):
        return _row_by_row(script, rel)
    if not changed:
        return _nothing(script, rel)
    if script.moving is None and at_once.is_one(script, rel):
        script.notes.append(TermNote(", ".join(map(_label, rel.sources)), True, "small: joined at once"))
        return at_once.changes(script, rel)
    rel = at_once.folded(script, rel) if script.moving is None else rel
    wanted = columns_wanted(rel)
    core = _core(script, rel)
    child = _children_alone(script, rel, core, wanted)
    chains = [child] if child else [chain for i in core if (chain := _term(script, rel, i, core, wanted)) is not None]
    if not chains:
        return _nothing(script, rel)
    chain = _together(script, rel, chains, wanted)
    for source in join_order(rel, chain.placed, [s for s in rel.sources if s.alias not in chain.placed]):
        chain = _extended(script, chain, source, lookup.all_of_it(script, source), wanted)
    outputs = [named(_flat(output.expression), output.name) for output in rel.outputs]
    query = select(*outputs, column(None, COUNT), column(None, CSN)).from_(table(chain.name))
    return query.where(*[_flat(condition) for condition in chain.waiting], copy=False) if chain.waiting else query


def old(script: Script, rel: Product) -> exp.Query:
    query = select(
        *[named(output.expression, output.name) for output in rel.outputs],
        named(multiplied([column(source.alias, COUNT) for source in rel.sources]), COUNT),
    )
    first, *rest = rel.sources
    query = query.from_(table(script.old(first.rel), first.alias))
    placed, waiting = {first.alias}, list(rel.where)
    for source in rest:
        placed.add(source.alias)
        ready, waiting = met_by(waiting, placed)
        query = query.join(table(script.old(source.rel), source.alias), on=all_of(ready), copy=False)
    return query.where(*waiting, copy=False) if waiting else query


@dataclass(frozen=True, slots=True)
class _Chain:
    """Rows joined so far: their subquery, the inputs in them, and the conditions that wait for more."""

    name: str
    placed: frozenset[str]
    waiting: tuple[exp.Expr, ...]


def _core(script: Script, rel: Product) -> list[int]:
    """The inputs that the terms range over.

    What did not change is the same in every term, so it is joined once, to their union; a single term needs no union
    and asks of each input only what keys leave in doubt. Changed inputs that no equality ties together directly need
    the others between them.
    """
    changed = [i for i, source in enumerate(rel.sources) if script.changed(source.rel)]
    if len(changed) == 1:
        return list(range(len(rel.sources)))
    tied = {rel.sources[changed[0]].alias}
    while more := [
        rel.sources[i].alias
        for i in changed
        if rel.sources[i].alias not in tied and any(ties(c, rel.sources[i].alias, tied) for c in rel.where)
    ]:
        tied.update(more)
    return changed if len(tied) == len(changed) else list(range(len(rel.sources)))


def _term(script: Script, rel: Product, i: int, core: list[int], wanted: Wanted) -> _Chain | None:
    """The term that starts at the delta of input i, or None where nothing changed or constraints prove it empty."""
    start = rel.sources[i]
    if not script.starts(start.rel):
        return None
    chain = _started(script, rel, start, wanted)
    reasons: list[str] = []
    for source in join_order(rel, chain.placed, [rel.sources[j] for j in core if j != i]):
        ready, _ = met_by(chain.waiting, chain.placed | {source.alias})
        partner = lookup.plan(script, rel, start, source, ready, chain.name)
        reasons.extend(partner.reasons)
        if partner.empty:
            script.notes.append(TermNote(_label(start), False, "; ".join(partner.reasons)))
            return None
        chain = _extended(script, chain, source, partner, wanted)
    if not at_once.is_together(start):
        script.notes.append(TermNote(_label(start), True, "; ".join(reasons) or "starts at the delta"))
    return chain


def _children_alone(script: Script, rel: Product, core: list[int], wanted: Wanted) -> _Chain | None:
    """Two changed inputs, one of which lives within the other: one term for both."""
    if len(core) != 2 or script.moving is not None or not all(script.changed(rel.sources[i].rel) for i in core):
        return None
    for child, parent in ((rel.sources[core[0]], rel.sources[core[1]]), (rel.sources[core[1]], rel.sources[core[0]])):
        both, _ = met_by(rel.where, {child.alias, parent.alias})
        partner = lookup.lives_within(script, rel, child, parent, both)
        if partner is not None:
            script.notes.append(TermNote(_label(child), True, "; ".join(partner.reasons)))
            script.notes.append(TermNote(_label(parent), False, f"what changed in {child.alias} tells all"))
            return _extended(script, _started(script, rel, child, wanted), parent, partner, wanted)
    return None


def _together(script: Script, rel: Product, chains: list[_Chain], wanted: Wanted) -> _Chain:
    """The union of the terms."""
    if len(chains) == 1:
        return chains[0]
    names = [_flat_name(s.alias, c) for s in rel.sources if s.alias in chains[0].placed for c in wanted[s.alias]]
    columns = [column(None, name) for name in (*names, COUNT, CSN)]
    union = bag_union([select(*columns).from_(table(chain.name)) for chain in chains])
    together = select(*columns).from_(union.subquery("u"))
    name = script.add("terms", gathered(together) if script.reads_little else together)
    return _Chain(name, chains[0].placed, chains[0].waiting)


def _row_by_row(script: Script, rel: Product) -> exp.Select:
    alias = rel.sources[0].alias
    outputs = [named(output.expression, output.name) for output in rel.outputs]
    query = select(*outputs, column(alias, COUNT), column(alias, CSN))
    query = query.from_(table(script.delta(rel.sources[0].rel), alias))
    return query.where(all_of(rel.where), copy=False) if rel.where else query


def _started(script: Script, rel: Product, start: Input, wanted: Wanted) -> _Chain:
    ready, waiting = met_by(rel.where, {start.alias})
    columns = [named(column(start.alias, name), _flat_name(start.alias, name)) for name in wanted[start.alias]]
    query = select(*columns, column(start.alias, COUNT), column(start.alias, CSN))
    query = query.from_(table(script.delta(start.rel), start.alias))
    query = query.where(all_of(ready), copy=False) if ready else query
    return _Chain(script.add(f"from_{start.alias}", query), frozenset({start.alias}), tuple(waiting))


def _extended(script: Script, chain: _Chain, source: Input, partner: lookup.Partner, wanted: Wanted) -> _Chain:
    """One more input joined."""
    placed = chain.placed | {source.alias}
    ready, waiting = met_by(chain.waiting, placed)
    carried = [
        column(_SO_FAR, _flat_name(alias, name)) for alias in wanted if alias in chain.placed for name in wanted[alias]
    ]
    gained = [named(column(_NEXT, name), _flat_name(source.alias, name)) for name in wanted[source.alias]]
    count = multiplied([column(_SO_FAR, COUNT), column(_NEXT, COUNT)])
    csn: exp.Expr = column(_SO_FAR, CSN)
    if partner.timed:
        csn = exp.Greatest(this=csn, expressions=[column(_NEXT, CSN)])
    query = (
        select(*carried, *gained, named(count, COUNT), named(csn, CSN))
        .from_(table(chain.name, _SO_FAR))
        .join(partner.rows(_NEXT), on=all_of(_flat(condition, source.alias) for condition in ready), copy=False)
    )
    if script.small and partner.only_changes:
        hash_join(query, _NEXT)
    elif script.small:
        broadcast(query, _NEXT if _is_small(script, source) else _SO_FAR)
    return _Chain(script.add(f"{chain.name}_to_{source.alias}", query), placed, tuple(waiting))


def _is_small(script: Script, source: Input) -> bool:
    return (
        isinstance(source.rel, Leaf) and script.sizes.get(source.rel.relation, SMALL_SIDE_ROWS + 1) <= SMALL_SIDE_ROWS
    )


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


def _label(source: Input) -> str:
    return source.rel.relation if isinstance(source.rel, Leaf) else source.alias


def _nothing(script: Script, rel: Product) -> exp.Query:
    """No term is left: an empty delta that still has the right columns and types."""
    state = old(script, rel)
    columns = [column(None, name) for name in rel.columns]
    query = select(*columns, column(None, COUNT), named(big(0), CSN)).from_(state.subquery("o"))
    return query.where(exp.false(), copy=False)
