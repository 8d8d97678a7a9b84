"""Columns that nothing above uses are not carried along, nor joins that keys prove to change nothing.

Law: a multiset projected keeps its multiplicities, so a delta of fewer columns is the delta of the fewer columns.
Operators that compare whole rows (DISTINCT) or go by position (UNION) keep all of theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import replace

from sqlglot import exp

from rollview.algebra.superfluous import side_alone, without_parents
from rollview.algebra.tree import Aggregate, Block, Distinct, Input, Leaf, OuterJoin, Output, Rel, Union


def prune(rel: Rel, wanted: Set[str] | None = None) -> Rel:
    """The same relation, with at least the ``wanted`` columns (all, if None) and at least one."""
    wanted = set(rel.columns) if wanted is None else wanted
    match rel:
        case Leaf():
            return replace(rel, columns=_kept(rel.columns, wanted))
        case Block():
            return _block(rel, wanted)
        case Aggregate():
            return _aggregate(rel, wanted)
        case OuterJoin():
            return _outer_join(rel, wanted)
        case Distinct():
            return Distinct(prune(rel.input))
        case Union():
            return Union(tuple(prune(side) for side in rel.inputs))


def _block(rel: Block, wanted: Set[str]) -> Block:
    rel = without_parents(replace(rel, outputs=_named_in(rel.outputs, _kept(rel.columns, wanted))))
    used = _columns([*rel.where, *(output.expression for output in rel.outputs)])
    sources = [
        Input(source.alias, prune(source.rel, {name for alias, name in used if alias == source.alias}))
        for source in rel.sources
    ]
    return replace(rel, sources=tuple(sources))


def _aggregate(rel: Aggregate, wanted: Set[str]) -> Aggregate:
    aggregates = _named_in(rel.aggregates, wanted)
    if not rel.keys and not aggregates:
        aggregates = rel.aggregates[:1]
    used = {name for _, name in _columns(output.expression for output in aggregates)}
    return Aggregate(prune(rel.input, used.union(rel.keys)), rel.keys, aggregates)


def _outer_join(rel: OuterJoin, wanted: Set[str]) -> Rel:
    """No name is on both sides, so each takes what is its own."""
    alone = side_alone(rel, wanted)
    if alone is not None:
        return prune(alone, wanted)
    used = wanted | {name for _, name in _columns(rel.on)}.union(*rel.keys)
    return replace(rel, left=prune(rel.left, used), right=prune(rel.right, used))


def _kept(columns: tuple[str, ...], wanted: Set[str]) -> tuple[str, ...]:
    return tuple(name for name in columns if name in wanted) or columns[:1]


def _named_in(outputs: tuple[Output, ...], names: Iterable[str]) -> tuple[Output, ...]:
    kept = set(names)
    return tuple(output for output in outputs if output.name in kept)


def _columns(expressions: Iterable[exp.Expr]) -> set[tuple[str, str]]:
    """(alias, name) of every column that the expressions use."""
    return {(node.table, node.name) for expression in expressions for node in expression.find_all(exp.Column)}
