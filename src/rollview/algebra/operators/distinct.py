"""DISTINCT below other operators. Law: a row is there once iff its count is positive; the key is the whole row."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import ClassVar

from sqlglot import exp

from rollview.algebra import keyed
from rollview.algebra.expressions import AT, UNTIL, big, column, come_and_go, named, select, table
from rollview.algebra.kinds import FLOATING, Kinds
from rollview.algebra.lives import numbered, presences
from rollview.algebra.operator import Operator, OperatorNote, Upkeep
from rollview.algebra.pieces import DistinctPiece
from rollview.algebra.script import Script
from rollview.algebra.timed import in_one_piece
from rollview.core.names import COUNT


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
        if script.many:
            moments = numbered(script, [(self.input, self.columns)])
            there = presences(script, self.input, self.columns, moments, apart=False)
            return come_and_go(there, self.columns, AT, UNTIL)

        def evaluate(inputs: Sequence[str], moments: str) -> exp.Query:
            return self._rows(AT, UNTIL).from_(table(inputs[0]))

        return keyed.delta(script, self, [(self.input, self.columns)], evaluate)

    def old(self, script: Script) -> exp.Query:
        distinct = self._rows().from_(table(keyed.old_rows(script, self.input)))
        columns = [column(None, name) for name in self.columns]
        return select(*columns, named(big(1), COUNT)).from_(distinct.subquery("d"))

    def timed(self, script: Script) -> exp.Query:
        return in_one_piece(script, self)

    def _rows(self, *extra: str) -> exp.Select:
        return select(*[column(None, name) for name in (*self.columns, *extra)]).distinct()
