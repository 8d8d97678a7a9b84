"""EXCEPT and INTERSECT, with and without ALL. Law: how often a row is there follows from how often it is in each side.

With ALL, EXCEPT takes each row of the right from one of the left, and INTERSECT takes what both have; without ALL a row
is there once or not at all. Rows are equal where all columns are, NULL to NULL.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from typing import ClassVar

from sqlglot import exp

from rollview.algebra import running_counts
from rollview.algebra.expressions import all_of, big, call, case, number
from rollview.algebra.kinds import FLOATING, Kinds, met
from rollview.algebra.operator import Operator, OperatorNote, Upkeep
from rollview.algebra.pieces import SetPiece
from rollview.algebra.script import Script
from rollview.algebra.timed import in_one_piece


@dataclass(frozen=True, slots=True, eq=False)
class SetOperation:
    kind: str
    every: bool
    """With ALL."""
    inputs: tuple[Operator, ...]

    words: ClassVar[tuple[str, ...]] = ("EXCEPT", "INTERSECT")
    upkeep: ClassVar[Upkeep] = Upkeep.KEYED
    renames: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if len({len(rel.columns) for rel in self.inputs}) != 1:
            raise ValueError("the sides of a set operation differ in their number of columns")

    @classmethod
    def build(cls, piece: SetPiece) -> SetOperation:
        return cls(piece.words, not piece.node.args.get("distinct"), piece.sides)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.inputs[0].columns

    @property
    def reads_states(self) -> bool:
        return True

    def pruned(self, wanted: Set[str]) -> SetOperation:
        """Whole rows are compared, so all columns stay."""
        return replace(self, inputs=tuple(side.pruned(set(side.columns)) for side in self.inputs))

    def kinds_of(self, name: str) -> Kinds:
        """Equal rows become one, and of the two zeroes one is left."""
        place = self.columns.index(name)
        return met(side.kinds_of(side.columns[place]) for side in self.inputs) - {FLOATING}

    def type_of(self, name: str) -> str | None:
        place = self.columns.index(name)
        first, second = (side.type_of(side.columns[place]) for side in self.inputs)
        return first if first == second else None

    def origin(self, column: exp.Column) -> exp.Expr:
        return column

    def note(self) -> OperatorNote | None:
        words = f"{self.kind} ALL" if self.every else self.kind
        return OperatorNote(words, self.upkeep, "each touched row is counted again on both sides")

    def delta(self, script: Script) -> exp.Query:
        return running_counts.delta(script, self.inputs, self._copies)

    def old(self, script: Script) -> exp.Query:
        return running_counts.old(script, self.inputs, self._copies)

    def timed(self, script: Script) -> exp.Query:
        return in_one_piece(script, self)

    def _copies(self, counts: Sequence[exp.Expr]) -> exp.Expr:
        left, right = counts
        if self.kind == "INTERSECT" and self.every:
            return call("least", left.copy(), right.copy())
        if self.every:
            return call("greatest", exp.Sub(this=left.copy(), expression=right.copy()), big(0))
        compared = exp.GT if self.kind == "INTERSECT" else exp.LTE
        there = all_of([_is_there(left), compared(this=right.copy(), expression=number(0))])
        return case((there, big(1)), otherwise=big(0))


def _is_there(count: exp.Expr) -> exp.Expr:
    return exp.GT(this=count.copy(), expression=number(0))
