"""LEFT, RIGHT and FULL joins with at least one equality: the rows of each touched join key are joined again.

Law: rows meet only where the equality holds, so matched rows and the rows that stay without a partner depend on the
rows of their own key alone. Rows whose key is NULL form a key of their own and never find a partner by ``=``.
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
from rollview.algebra.operator import (
    LEFT_SIDE,
    RIGHT_SIDE,
    Input,
    Operator,
    OperatorNote,
)
from rollview.algebra.overlaps import joined, pair, told, told_by_lives, without_partners
from rollview.algebra.pieces import JoinPiece
from rollview.algebra.script import Script
from rollview.algebra.superfluous import finds_at_most_one
from rollview.algebra.timed import in_one_piece
from rollview.core.names import COUNT


class JoinKind(StrEnum):
    LEFT = "LEFT"
    RIGHT = "RIGHT"
    FULL = "FULL"


_PRESERVED = {
    JoinKind.LEFT: (LEFT_SIDE,),
    JoinKind.RIGHT: (RIGHT_SIDE,),
    JoinKind.FULL: (LEFT_SIDE, RIGHT_SIDE),
}


@dataclass(frozen=True, slots=True, eq=False)
class OuterJoin(KeyedJoin):
    kind: JoinKind

    words: ClassVar[tuple[str, ...]] = ("LEFT JOIN", "RIGHT JOIN", "FULL JOIN")

    @classmethod
    def build(cls, piece: JoinPiece) -> OuterJoin:
        return cls.built(piece, JoinKind, "an outer join")

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name in self.left.columns + self.right.columns if name not in self.hidden)

    def pruned(self, wanted: Set[str]) -> Operator:
        """No name is on both sides, so each takes what is its own."""
        alone = self._side_alone(wanted)
        if alone is not None:
            return alone.pruned(wanted)
        used = wanted | {name for _, name in columns_in(self.on)}.union(*self.keys)
        return replace(self, left=self.left.pruned(used), right=self.right.pruned(used))

    def kinds_of(self, name: str) -> Kinds:
        return self._side_of(name).kinds_of(name)

    def type_of(self, name: str) -> str | None:
        return self._side_of(name).type_of(name)

    def origin(self, column: exp.Column) -> exp.Expr:
        return self._side_of(column.name).origin(column)

    def note(self) -> OperatorNote | None:
        return self.noted("joined")

    def delta(self, script: Script) -> exp.Query:
        if told_by_lives(script, self.left, self.right, self.keys):
            return self._over_lives(script)

        def evaluate(inputs: Sequence[str], moments: str) -> exp.Query:
            left, right = inputs
            same_moment = [same_value(column(LEFT_SIDE, AT), column(RIGHT_SIDE, AT))]
            times = [
                named(exp.Coalesce(this=column(LEFT_SIDE, name), expressions=[column(RIGHT_SIDE, name)]), name)
                for name in (AT, UNTIL)
            ]
            return self._join(left, right, same_moment, times)

        return keyed.delta(script, self, self.sides, evaluate)

    def old(self, script: Script) -> exp.Query:
        left, right = keyed.old_rows(script, self.left), keyed.old_rows(script, self.right)
        return self._join(left, right, [], [named(big(1), COUNT)])

    def timed(self, script: Script) -> exp.Query:
        return in_one_piece(script, self)

    def _over_lives(self, script: Script) -> exp.Query:
        """The pairs that meet, and what is left of the lives of a preserved side, padded with NULL."""
        left, right = self.sides
        sides = {LEFT_SIDE: self.left, RIGHT_SIDE: self.right}
        preserved = _PRESERVED[self.kind]
        alone = [stretch for alias in preserved for stretch in without_partners(alias)]
        return told(script, self, sides, joined(script, left, right, self.on, preserved), [pair(), *alone])

    def _side_of(self, name: str) -> Operator:
        return self.left if name in self.left.columns else self.right

    def _side_alone(self, wanted: Set[str]) -> Operator | None:
        """The preserved side, if nothing of the other one is wanted and a key finds at most one row there."""
        if self.kind is JoinKind.LEFT:
            kept, other = Input(LEFT_SIDE, self.left), Input(RIGHT_SIDE, self.right)
        elif self.kind is JoinKind.RIGHT:
            kept, other = Input(RIGHT_SIDE, self.right), Input(LEFT_SIDE, self.left)
        else:
            return None
        is_unused = not wanted & set(other.rel.columns)
        return kept.rel if is_unused and finds_at_most_one(kept, other, self.on) else None

    def _join(self, left: str, right: str, conditions: Sequence[exp.Expr], extra: Sequence[exp.Expr]) -> exp.Select:
        sides = dict.fromkeys(self.left.columns, LEFT_SIDE) | dict.fromkeys(self.right.columns, RIGHT_SIDE)
        columns = [column(sides[name], name) for name in self.columns]
        return (
            select(*columns, *extra)
            .from_(table(left, LEFT_SIDE))
            .join(table(right, RIGHT_SIDE), on=all_of([*self.on, *conditions]), join_type=self.kind.value, copy=False)
        )
