"""DISTINCT below other operators. Law: a row is there once iff its count is positive; the key is the whole row."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import ClassVar

from sqlglot import exp

from rollview.algebra import running_counts
from rollview.algebra.expressions import big, case, number
from rollview.algebra.kinds import FLOATING, Kinds
from rollview.algebra.operator import Operator, OperatorNote, Upkeep
from rollview.algebra.pieces import DistinctPiece
from rollview.algebra.script import Script
from rollview.algebra.timed import in_one_piece


@dataclass(frozen=True, slots=True, eq=False)
class Distinct:
    input: Operator

    words: ClassVar[tuple[str, ...]] = ("DISTINCT",)
    upkeep: ClassVar[Upkeep] = Upkeep.KEYED
    renames: ClassVar[bool] = False

    @classmethod
    def build(cls, piece: DistinctPiece) -> Distinct:
        return cls(piece.input)

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.input,)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.input.columns

    @property
    def reads_states(self) -> bool:
        return True

    def pruned(self, wanted: Set[str]) -> Distinct:
        """Whole rows are compared, so all columns stay."""
        return Distinct(self.input.pruned(set(self.columns)))

    def kinds_of(self, name: str) -> Kinds:
        """Equal rows become one, and of the two zeroes one is left."""
        return self.input.kinds_of(name) - {FLOATING}

    def type_of(self, name: str) -> str | None:
        return self.input.type_of(name)

    def origin(self, column: exp.Column) -> exp.Expr:
        return column

    def note(self) -> OperatorNote | None:
        return OperatorNote("DISTINCT", self.upkeep, "each touched row is looked at again")

    def delta(self, script: Script) -> exp.Query:
        return running_counts.delta(script, (self.input,), _once)

    def old(self, script: Script) -> exp.Query:
        return running_counts.old(script, (self.input,), _once)

    def timed(self, script: Script) -> exp.Query:
        return in_one_piece(script, self)


def _once(counts: Sequence[exp.Expr]) -> exp.Expr:
    there = exp.GT(this=counts[0].copy(), expression=number(0))
    return case((there, big(1)), otherwise=big(0))
