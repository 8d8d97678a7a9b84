"""What joins that look at whole keys again have in common.

Law: rows of two sides meet only where the equalities hold, so whatever such a join gives depends on the rows of its own
key alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Self

from sqlglot import exp

from rollview.algebra.operator import Operator, OperatorNote, Upkeep, check_names_differ
from rollview.algebra.pieces import JoinPiece, NotIncremental
from rollview.algebra.spelling import spelled_pairs

_NO_KEYS = "without an equality has no keys to recompute by"


@dataclass(frozen=True, slots=True, eq=False)
class KeyedJoin:
    """``on`` names columns ``l.column`` and ``r.column``; ``keys`` are the pairs that its equalities compare."""

    kind: StrEnum
    left: Operator
    right: Operator
    on: tuple[exp.Expr, ...]
    keys: tuple[tuple[str, str], ...]
    hidden: tuple[str, ...] = ()

    upkeep: ClassVar[Upkeep] = Upkeep.KEYED
    renames: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_names_differ(self.left.columns + self.right.columns)
        if not self.keys:
            raise ValueError(f"a join {_NO_KEYS}")

    @classmethod
    def built(cls, piece: JoinPiece, kinds: type[StrEnum], called: str) -> Self:
        """From a piece whose words begin with one of the kinds; ``called``: the operator's name in the reason."""
        if not piece.keys:
            raise NotIncremental(piece.words, f"{called} {_NO_KEYS}", piece.node)
        kind = kinds(piece.words.removesuffix(" JOIN"))
        return cls(kind, piece.left, piece.right, piece.on, piece.keys, piece.hidden)

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.left, self.right)

    @property
    def reads_states(self) -> bool:
        return True

    @property
    def sides(self) -> list[tuple[Operator, tuple[str, ...]]]:
        """Both inputs, each with its columns of the keys."""
        left, right = zip(*self.keys, strict=True)
        return [(self.left, left), (self.right, right)]

    def noted(self, done: str) -> OperatorNote:
        """``done``: what is done to the rows of a touched key."""
        pairs = spelled_pairs(self.keys, self.left.origin, self.right.origin)
        return OperatorNote(
            f"{self.kind} JOIN", self.upkeep, f"the rows of each touched key are {done} again ({pairs})"
        )
