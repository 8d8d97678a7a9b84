"""What a block is made of: a selection and projection of a product."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

from sqlglot import exp

from rollview.algebra.expressions import identifiers
from rollview.algebra.operator import Input, Output, check_names_differ


@dataclass(frozen=True, slots=True, eq=False)
class Product:
    """π(σ(R1 × … × Rn)). Expressions name columns ``alias.column``."""

    sources: tuple[Input, ...]
    where: tuple[exp.Expr, ...]
    outputs: tuple[Output, ...]

    def __post_init__(self) -> None:
        check_names_differ(self.columns)
        check_names_differ(tuple(source.alias for source in self.sources))

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(output.name for output in self.outputs)

    def output(self, name: str) -> exp.Expr:
        return next(output.expression for output in self.outputs if output.name == name)

    def source(self, alias: str) -> Input:
        return next(source for source in self.sources if source.alias == alias)


def join_order(rel: Product, placed: Set[str], left: list[Input]) -> list[Input]:
    """The inputs that are left, each as soon as some condition ties it to those before it."""
    done, order = set(placed), []
    while left:
        tied = (s for s in left if any(ties(condition, s.alias, done) for condition in rel.where))
        chosen = next(tied, left[0])
        left = [source for source in left if source is not chosen]
        done.add(chosen.alias)
        order.append(chosen)
    return order


def ties(condition: exp.Expr, alias: str, placed: Set[str]) -> bool:
    used = identifiers(condition)
    return isinstance(condition, exp.EQ) and alias in used and len(used) > 1 and used <= placed | {alias}


def met_by(conditions: Sequence[exp.Expr], placed: Set[str]) -> tuple[list[exp.Expr], list[exp.Expr]]:
    """The conditions that name no other inputs, and those that have to wait for more."""
    ready = [condition for condition in conditions if identifiers(condition) <= placed]
    return ready, [condition for condition in conditions if not identifiers(condition) <= placed]


def can_be_netted(sources: Sequence[Input], columns: Sequence[tuple[str, str]]) -> bool:
    """Whether rows with these columns, by alias and name, can be grouped by them."""
    rels = {source.alias: source.rel for source in sources}
    types = [rels[alias].type_of(name) for alias, name in columns]
    return not any(type_ is None or "map<" in type_ for type_ in types)


Wanted = dict[str, list[str]]
"""Columns that the block uses, by input."""


def columns_wanted(rel: Product) -> Wanted:
    wanted: Wanted = {source.alias: [] for source in rel.sources}
    expressions = [*rel.where, *[output.expression for output in rel.outputs]]
    for node in (node for expression in expressions for node in expression.find_all(exp.Column)):
        if node.name not in wanted[node.table]:
            wanted[node.table].append(node.name)
    return wanted


def multiplied(counts: Sequence[exp.Expr]) -> exp.Expr:
    product: exp.Expr = counts[0]
    for count in counts[1:]:
        product = exp.Mul(this=product, expression=count)
    return product
