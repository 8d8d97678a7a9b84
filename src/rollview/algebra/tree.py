"""A view's definition as a small algebra. Immutable; a wrong tree cannot be built.

Law: every node is a function from timed multisets to a timed multiset with the given columns. Names inside a node are
the node's own: a ``Block`` sees its inputs by alias, the others see their input's columns bare.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from sqlglot import exp

from rollview.core.schema import Constraints


@dataclass(frozen=True, slots=True)
class Output:
    """A named expression."""

    name: str
    expression: exp.Expr


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """A base table or a view, as stored. ``types``: Spark's, by column."""

    relation: str
    columns: tuple[str, ...]
    types: Mapping[str, str] = field(default_factory=dict)
    constraints: Constraints = Constraints()

    @property
    def inputs(self) -> tuple[Rel, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class Input:
    alias: str
    rel: Rel


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """π(σ(R1 ⋈ … ⋈ Rn)): inner and cross joins, selection, projection. Expressions name columns ``alias.column``."""

    sources: tuple[Input, ...]
    where: tuple[exp.Expr, ...]
    outputs: tuple[Output, ...]

    def __post_init__(self) -> None:
        _check_distinct(self.columns)
        _check_distinct(tuple(source.alias for source in self.sources))

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(output.name for output in self.outputs)

    @property
    def inputs(self) -> tuple[Rel, ...]:
        return tuple(source.rel for source in self.sources)


@dataclass(frozen=True, slots=True, eq=False)
class Union:
    """Bag union; columns by position, named as in the first."""

    inputs: tuple[Rel, ...]

    def __post_init__(self) -> None:
        if len({len(rel.columns) for rel in self.inputs}) != 1:
            raise ValueError("the sides of a union differ in their number of columns")

    @property
    def columns(self) -> tuple[str, ...]:
        return self.inputs[0].columns


@dataclass(frozen=True, slots=True, eq=False)
class Distinct:
    input: Rel

    @property
    def columns(self) -> tuple[str, ...]:
        return self.input.columns

    @property
    def inputs(self) -> tuple[Rel, ...]:
        return (self.input,)


@dataclass(frozen=True, slots=True, eq=False)
class Aggregate:
    """γ: ``keys`` are columns of the input, ``aggregates`` are calls over bare columns of the input."""

    input: Rel
    keys: tuple[str, ...]
    aggregates: tuple[Output, ...]

    def __post_init__(self) -> None:
        _check_distinct(self.columns)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.keys + tuple(output.name for output in self.aggregates)

    @property
    def inputs(self) -> tuple[Rel, ...]:
        return (self.input,)


class JoinKind(StrEnum):
    LEFT = "LEFT"
    RIGHT = "RIGHT"
    FULL = "FULL"


LEFT_SIDE, RIGHT_SIDE = "l", "r"


@dataclass(frozen=True, slots=True, eq=False)
class OuterJoin:
    """``on`` names columns ``l.column`` and ``r.column``; ``keys`` are the pairs that its equalities compare."""

    kind: JoinKind
    left: Rel
    right: Rel
    on: tuple[exp.Expr, ...]
    keys: tuple[tuple[str, str], ...]
    hidden: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_distinct(self.left.columns + self.right.columns)
        if not self.keys:
            raise ValueError("an outer join without an equality has no keys to recompute by")

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(c for c in self.left.columns + self.right.columns if c not in self.hidden)

    @property
    def inputs(self) -> tuple[Rel, ...]:
        return (self.left, self.right)


Rel = Leaf | Block | Union | Distinct | Aggregate | OuterJoin


def walk(rel: Rel) -> Iterator[Rel]:
    """The node and all below it, top first."""
    yield rel
    for child in rel.inputs:
        yield from walk(child)


def leaves(rel: Rel) -> Iterator[Leaf]:
    return (node for node in walk(rel) if isinstance(node, Leaf))


def _check_distinct(names: tuple[str, ...]) -> None:
    if len({name.lower() for name in names}) != len(names):
        raise ValueError(f"names must differ: {names}")
