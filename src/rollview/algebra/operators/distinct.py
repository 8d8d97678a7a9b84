"""DISTINCT below other operators. Law: a row is there once iff its count is positive; the key is the whole row."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import ClassVar

from sqlglot import exp

from rollview.algebra import keyed, zeroes
from rollview.algebra.expressions import all_of, big, case, column, named, number, over, select, table
from rollview.algebra.kinds import FLOATING, Kinds
from rollview.algebra.lives import is_there, turns_at
from rollview.algebra.operator import Operator, OperatorNote, Upkeep
from rollview.algebra.pieces import DistinctPiece
from rollview.algebra.script import Script
from rollview.algebra.timed import in_one_piece
from rollview.core.names import COUNT, CSN

_NOW = "_rv_now"


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
        """A row comes and goes where its running count leaves and reaches zero."""
        names = [column(None, name) for name in self.columns]
        keyed_by = [(self.input, self.columns)]
        timed = script.add("timed", keyed.timed_of_touched(script, self.input, keyed_by, self.columns))
        netted = zeroes.net_of_equals(self.input, select().from_(table(timed)), None, [column(None, CSN)])
        total = over(exp.Sum(this=column(None, COUNT)), names, column(None, CSN), running=True)
        kept = [*names, column(None, COUNT), column(None, CSN)]
        running = script.add("running", select(*kept, named(total, _NOW)).from_(netted.subquery("n")))
        sign = case((is_there(_NOW), big(1)), otherwise=big(-1))
        turns = all_of([turns_at(_NOW, COUNT), exp.GT(this=column(None, CSN), expression=number(0))])
        return select(*names, named(sign, COUNT), column(None, CSN)).from_(table(running)).where(turns, copy=False)

    def old(self, script: Script) -> exp.Query:
        columns = [column(None, name) for name in self.columns]
        distinct = select(*columns).distinct().from_(table(keyed.old_rows(script, self.input)))
        return select(*columns, named(big(1), COUNT)).from_(distinct.subquery("d"))

    def timed(self, script: Script) -> exp.Query:
        return in_one_piece(script, self)
