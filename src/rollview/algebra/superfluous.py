"""Joins that keys prove to change nothing.

Laws, for constraints that hold at every csn:

* L ⟕ R that compares a whole key of R finds at most one row, so it is L where no column of R is used.
* C ⋈ P by a foreign key of C finds one row for each row of C whose foreign key is not NULL, and knows P's key from it:
  it is σ(foreign key is not NULL)(C) where no other column of P is used.

What is left out compares plain columns of one type only, so it could not have failed either.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from sqlglot import exp

from rollview.algebra.expressions import column, identifiers
from rollview.algebra.kinds import may_float
from rollview.algebra.operator import Input, Operator, Output
from rollview.algebra.operators.leaf import Leaf
from rollview.algebra.product import Product
from rollview.algebra.types import compared_one_to_one
from rollview.core.names import same
from rollview.core.schema import ForeignKey

_P = TypeVar("_P", bound=Product)


def without_parents(rel: _P) -> _P:
    """The same block without the inputs of which only a key is used that a foreign key tells."""
    smaller = next(_smaller(rel), None)
    return rel if smaller is None else without_parents(smaller)


def finds_at_most_one(side: Input, other: Input, on: Sequence[exp.Expr]) -> bool:
    """Whether a row of ``side`` meets at most one row of ``other``: the condition compares a whole key of that."""
    pairs = [_compared(condition) for condition in on]
    if not all(pair and compared_one_to_one((side, other), *pair) for pair in pairs):
        return False
    stored = [_stored(other.rel, one.name) for pair in pairs for one in pair or () if one.table == other.alias]
    found = {place[1].lower() for place in stored if place is not None}
    leaf = next((place[0] for place in stored if place is not None), None)
    return leaf is not None and any({part.lower() for part in key} <= found for key in leaf.constraints.keys)


def _compared(condition: exp.Expr) -> tuple[exp.Column, exp.Column] | None:
    left, right = condition.args.get("this"), condition.args.get("expression")
    if not isinstance(condition, exp.EQ) or not isinstance(left, exp.Column) or not isinstance(right, exp.Column):
        return None
    return (left, right) if left.table != right.table else None


def _stored(rel: Operator, name: str) -> tuple[Leaf, str] | None:
    """Where a column is stored, if all rows of that relation come up, each once."""
    if isinstance(rel, Leaf):
        return rel, name
    if not isinstance(rel, Product) or len(rel.sources) > 1 or rel.where:
        return None
    expression = rel.output(name)
    return _stored(rel.sources[0].rel, expression.name) if isinstance(expression, exp.Column) else None


def _smaller(rel: _P) -> Iterator[_P]:
    for parent in rel.sources:
        for child in rel.sources:
            if child is parent or not isinstance(child.rel, Leaf) or not isinstance(parent.rel, Leaf):
                continue
            for key in child.rel.constraints.foreign_keys:
                if same(key.table, parent.rel.relation):
                    yield from _without(rel, parent, child, key)


def _without(rel: _P, parent: Input, child: Input, key: ForeignKey) -> Iterator[_P]:
    told = {theirs.lower(): _own(child, ours) for theirs, ours in zip(key.referenced, key.columns, strict=True)}
    where = [_renamed(condition, parent, told) for condition in rel.where]
    outputs = tuple(Output(output.name, _renamed(output.expression, parent, told)) for output in rel.outputs)
    joins = [exp.EQ(this=one, expression=one.copy()) for one in told.values()]
    both = {parent.alias, child.alias}
    found = [new for old, new in zip(rel.where, where, strict=True) if identifiers(old) == both and new in joins]
    used = set().union(*map(identifiers, (*where, *(output.expression for output in outputs))))
    if set(found) != set(joins) or parent.alias in used or any(may_float(child.rel, one.name) for one in told.values()):
        return
    there = [exp.Not(this=exp.Is(this=one.copy(), expression=exp.Null())) for one in told.values()]
    kept = [condition for condition in where if condition not in joins]
    sources = tuple(source for source in rel.sources if source is not parent)
    yield replace(rel, sources=sources, where=(*kept, *there), outputs=outputs)


def _own(child: Input, name: str) -> exp.Column:
    return column(child.alias, next(own for own in child.rel.columns if same(own, name)))


def _renamed(expression: exp.Expr, parent: Input, told: Mapping[str, exp.Column]) -> exp.Expr:
    """The parent's key by the child's columns."""

    def renamed(node: exp.Expr) -> exp.Expr:
        known = isinstance(node, exp.Column) and node.table == parent.alias and told.get(node.name.lower())
        return known.copy() if known else node

    return expression.copy().transform(renamed)
