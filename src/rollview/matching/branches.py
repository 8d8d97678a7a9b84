"""The sides of a UNION ALL, and what two definitions have in common of them.

Law: σ and π go through UNION ALL, so rows made of R + S are those made of R and those made of S. Sides of one text are
the same rows; of what one definition has more often than the other, that is added or taken away.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from rollview.algebra.expressions import column
from rollview.algebra.operator import Input, Operator, Output
from rollview.algebra.operators.block import Block
from rollview.algebra.operators.union import Union
from rollview.algebra.text import render
from rollview.matching.flat import Flat, flatten
from rollview.matching.match import NoMatch
from rollview.matching.rewrite import written

_SIDE = "_rv_side"


@dataclass(frozen=True, slots=True)
class Branch:
    """``flat``: one side by itself. ``alone``: the whole, in which the other sides give types and no rows."""

    flat: Flat
    alone: Operator

    @property
    def text(self) -> str:
        """Columns meet by place, whatever they are called."""
        values = enumerate(self.flat.outputs.values())
        return render(written(replace(self.flat, outputs={f"c{place}": value for place, value in values})))


@dataclass(frozen=True, slots=True)
class BranchChange:
    added: tuple[Branch, ...]
    removed: tuple[Branch, ...]


def branches(rel: Operator) -> tuple[Branch, ...]:
    """What is no UNION ALL is one branch. Raises ``NotFlat`` where a side cannot be compared."""
    return tuple(Branch(flatten(by_itself), alone) for by_itself, alone in _branches(rel))


def _branches(rel: Operator) -> Iterator[tuple[Operator, Operator]]:
    """Each side by itself, and alone."""
    if isinstance(rel, Union):
        for place, side in enumerate(rel.inputs):
            for by_itself, alone in _branches(side):
                others = (_named(one, one.columns, exp.false()) for one in rel.inputs)
                sides = tuple(alone if number == place else other for number, other in enumerate(others))
                yield _named(by_itself, rel.columns), Union(sides)
    elif isinstance(rel, Block) and len(rel.sources) == 1:
        (source,) = rel.sources
        for one in _branches(source.rel):
            by_itself, alone = (replace(rel, sources=(Input(source.alias, part),)) for part in one)
            yield by_itself, alone
    else:
        yield rel, rel


def _named(rel: Operator, names: Sequence[str], *where: exp.Expr) -> Block:
    outputs = tuple(Output(name, column(_SIDE, own)) for name, own in zip(names, rel.columns, strict=True))
    return Block((Input(_SIDE, rel),), where, outputs)


def change(old: Sequence[Branch], new: Sequence[Branch]) -> BranchChange:
    """Raises ``NoMatch`` where both have nothing in common."""
    before, after = (Counter(one.text for one in some) for some in (old, new))
    if not before & after:
        raise NoMatch("it has no side of a UNION ALL in common")
    return BranchChange(_more(new, after - before), _more(old, before - after))


def _more(some: Sequence[Branch], wanted: Counter[str]) -> tuple[Branch, ...]:
    left, found = Counter(wanted), []
    for one in some:
        if left[one.text] > 0:
            left[one.text] -= 1
            found.append(one)
    return tuple(found)


def is_union(rel: Operator) -> bool:
    """Whether there is a UNION ALL below selections and projections."""
    while isinstance(rel, Block) and len(rel.sources) == 1:
        rel = rel.sources[0].rel
    return isinstance(rel, Union)
