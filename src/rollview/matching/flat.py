"""A query as one selection and projection of a product of stored relations, grouped at most once.

Law: a ``Flat`` means what the operator tree means that it was read from: nested selections are written into each other,
so that two queries can be compared condition by condition. What is not of this form has no ``Flat``, and says why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count

from sqlglot import exp

from rollview.algebra.expressions import column, identifiers
from rollview.algebra.operator import Operator
from rollview.algebra.operators.aggregate import Aggregate
from rollview.algebra.operators.block import Block
from rollview.algebra.operators.leaf import Leaf
from rollview.algebra.summary import find_aggregate


class NotStored(Exception):
    """A view does not store a column that an expression needs."""

    def __init__(self, column: exp.Column) -> None:
        super().__init__(f"it does not store {column.name}")
        self.column = column


class NotFlat(Exception):
    """The query is not of this form; says what stands in the way."""


@dataclass(frozen=True, slots=True)
class Place:
    """A stored relation, and the name under which the expressions see its columns."""

    alias: str
    leaf: Leaf


@dataclass(frozen=True, slots=True)
class Groups:
    """GROUP BY over the product; without keys there is one group."""

    keys: tuple[exp.Expr, ...]
    calls: tuple[exp.Expr, ...]
    having: tuple[exp.Expr, ...]
    inputs: Mapping[str, exp.Expr] = field(default_factory=dict)
    """What is grouped, by the names under which the calls see it."""

    def rewritten(self, write: Callable[[exp.Expr], exp.Expr]) -> Groups:
        """The same over other columns; ``inputs`` that cannot be written over them are left out."""
        inputs: dict[str, exp.Expr] = {}
        for name, value in self.inputs.items():
            with suppress(NotStored):
                inputs[name] = write(value)
        keys, calls, having = (tuple(map(write, part)) for part in (self.keys, self.calls, self.having))
        return Groups(keys, calls, having, inputs)


@dataclass(frozen=True, slots=True)
class Flat:
    """``where`` and ``outputs`` name columns ``alias.column``; with groups, outputs hold the aggregate calls."""

    places: tuple[Place, ...]
    where: tuple[exp.Expr, ...]
    outputs: Mapping[str, exp.Expr]
    groups: Groups | None = None

    def leaf(self, alias: str) -> Leaf:
        return next(place.leaf for place in self.places if place.alias == alias)

    def renamed(self, aliases: Mapping[str, str]) -> Flat:
        """The same with its places called otherwise."""

        def home(expression: exp.Expr) -> exp.Expr:
            return _replaced(expression, lambda one: column(aliases[one.table], one.name))

        groups = self.groups
        if groups is not None:
            groups = groups.rewritten(home)
        return Flat(
            tuple(Place(aliases[place.alias], place.leaf) for place in self.places),
            tuple(map(home, self.where)),
            {name: home(output) for name, output in self.outputs.items()},
            groups,
        )


Expand = Callable[[str], Operator | None]
"""The operator tree of a view, or None of a table."""


def flatten(rel: Operator, expand: Expand = lambda name: None) -> Flat:
    """``expand``: views are read through, down to tables."""
    numbers = count()
    top = find_aggregate(rel)
    if top is None:
        return _flat(rel, expand, numbers)
    aggregate, outputs, having = top
    below = _flat(aggregate.input, expand, numbers)
    values = _values(aggregate, below)

    def over_groups(expression: exp.Expr) -> exp.Expr:
        return _replaced(expression, lambda one: values[one.name])

    groups = Groups(
        tuple(values[key] for key in aggregate.keys),
        tuple(values[call.name] for call in aggregate.aggregates),
        tuple(map(over_groups, having)),
        below.outputs,
    )
    return replace(below, outputs={output.name: over_groups(output.expression) for output in outputs}, groups=groups)


def _values(aggregate: Aggregate, below: Flat) -> dict[str, exp.Expr]:
    """What each column of the groups stands for."""
    keys = {key: below.outputs[key] for key in aggregate.keys}
    calls = {
        output.name: _replaced(output.expression, lambda one: below.outputs[one.name])
        for output in aggregate.aggregates
    }
    return {**keys, **calls}


def _flat(rel: Operator, expand: Expand, numbers: count[int]) -> Flat:
    if isinstance(rel, Leaf):
        return _through(rel, expand, numbers) or _stored(rel, f"p{next(numbers)}")
    if not isinstance(rel, Block):
        raise NotFlat(rel.words[0])
    below = {source.alias: _flat(source.rel, expand, numbers) for source in rel.sources}

    def home(expression: exp.Expr) -> exp.Expr:
        return _replaced(expression, lambda one: below[one.table].outputs[one.name])

    return Flat(
        tuple(place for flat in below.values() for place in flat.places),
        (*(condition for flat in below.values() for condition in flat.where), *map(home, rel.where)),
        {output.name: home(output.expression) for output in rel.outputs},
    )


def _stored(leaf: Leaf, alias: str) -> Flat:
    return Flat((Place(alias, leaf),), (), {name: column(alias, name) for name in leaf.columns})


def _through(leaf: Leaf, expand: Expand, numbers: count[int]) -> Flat | None:
    """A view as its definition tells it, where that is of this form; its columns keep the names that it gives them."""
    lower = expand(leaf.relation)
    try:
        return None if lower is None else _flat(lower, expand, numbers)
    except NotFlat:
        return None


def _replaced(expression: exp.Expr, value: Callable[[exp.Column], exp.Expr]) -> exp.Expr:
    def one(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        found = value(node).copy()
        return found if isinstance(found, exp.Column | exp.Literal) else exp.Paren(this=found)

    return expression.copy().transform(one)


def uses(expression: exp.Expr, aliases: frozenset[str]) -> bool:
    """Whether all columns of an expression are of these places."""
    return identifiers(expression) <= aliases
