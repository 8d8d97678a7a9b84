"""LEFT SEMI and LEFT ANTI joins with at least one equality: the left rows of each touched join key are looked at again.

Law: whether a row finds a partner depends on the rows of its own key alone. A row that finds several stays one row, and
one whose key is NULL finds none by ``=``: it is never in the semi join and always in the anti join.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import ClassVar

from sqlglot import exp

from rollview.algebra import keyed
from rollview.algebra.expressions import (
    AT,
    UNTIL,
    all_of,
    big,
    column,
    columns_in,
    named,
    same_value,
    select,
    table,
)
from rollview.algebra.keyed_join import KeyedJoin
from rollview.algebra.kinds import Kinds
from rollview.algebra.operator import LEFT_SIDE, RIGHT_SIDE, OperatorNote
from rollview.algebra.overlaps import joined, life, told, told_by_lives, without_partners
from rollview.algebra.pieces import JoinPiece
from rollview.algebra.script import Script
from rollview.algebra.timed import in_one_piece
from rollview.core.names import COUNT


class SemiJoinKind(StrEnum):
    SEMI = "LEFT SEMI"
    ANTI = "LEFT ANTI"


@dataclass(frozen=True, slots=True, eq=False)
class SemiJoin(KeyedJoin):
    kind: SemiJoinKind

    words: ClassVar[tuple[str, ...]] = ("LEFT SEMI JOIN", "LEFT ANTI JOIN")

    @classmethod
    def build(cls, piece: JoinPiece) -> SemiJoin:
        return cls.built(piece, SemiJoinKind, "a semi or anti join")

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name in self.left.columns if name not in self.hidden)

    def pruned(self, wanted: Set[str]) -> SemiJoin:
        """No name is on both sides, so each takes what is its own."""
        compared = {name for _, name in columns_in(self.on)}.union(*self.keys)
        return replace(self, left=self.left.pruned(wanted | compared), right=self.right.pruned(compared))

    def kinds_of(self, name: str) -> Kinds:
        return self.left.kinds_of(name)

    def type_of(self, name: str) -> str | None:
        return self.left.type_of(name)

    def origin(self, column: exp.Column) -> exp.Expr:
        return self.left.origin(column)

    def note(self) -> OperatorNote | None:
        return self.noted("looked at")

    def delta(self, script: Script) -> exp.Query:
        if told_by_lives(script, self.left, self.right, self.keys):
            return self._over_lives(script)

        def evaluate(inputs: Sequence[str], moments: str) -> exp.Query:
            same_moment = same_value(column(LEFT_SIDE, AT), column(RIGHT_SIDE, AT))
            return self._join(inputs, [same_moment], [column(LEFT_SIDE, name) for name in (AT, UNTIL)])

        return keyed.delta(script, self, self.sides, evaluate)

    def old(self, script: Script) -> exp.Query:
        rows = [keyed.old_rows(script, side) for side in self.inputs]
        return self._join(rows, [], [named(big(1), COUNT)])

    def timed(self, script: Script) -> exp.Query:
        return in_one_piece(script, self)

    def _over_lives(self, script: Script) -> exp.Query:
        """A left row is in the anti join while it has no partner, and in the semi join all the other time."""
        left, right = self.sides
        found = joined(script, left, right, self.on, (LEFT_SIDE,))
        is_semi = self.kind is SemiJoinKind.SEMI
        alone = without_partners(LEFT_SIDE, -1 if is_semi else 1)
        sides = {LEFT_SIDE: self.left}
        return told(script, self, sides, found, [life(LEFT_SIDE), *alone] if is_semi else alone)

    def _join(self, inputs: Sequence[str], conditions: Sequence[exp.Expr], extra: Sequence[exp.Expr]) -> exp.Select:
        left, right = inputs
        rows = select(*[column(LEFT_SIDE, name) for name in self.columns], *extra).from_(table(left, LEFT_SIDE))
        on = all_of([*self.on, *conditions])
        return rows.join(table(right, RIGHT_SIDE), on=on, join_type=self.kind.value, copy=False)
