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
    bag_union,
    big,
    column,
    columns_in,
    come_and_go,
    named,
    same_value,
    select,
    table,
)
from rollview.algebra.kinds import Kinds
from rollview.algebra.lives import lives, numbered
from rollview.algebra.operator import (
    LEFT_SIDE,
    RIGHT_SIDE,
    Input,
    Operator,
    OperatorNote,
    Upkeep,
    check_names_differ,
)
from rollview.algebra.overlaps import COPIES, Side, copies, pairs, stretches, told_by_lives, without_partners
from rollview.algebra.pieces import JoinPiece, NotIncremental
from rollview.algebra.script import Script
from rollview.algebra.spelling import spelled_pairs
from rollview.algebra.superfluous import finds_at_most_one
from rollview.algebra.timed import in_one_piece
from rollview.core.names import COUNT


class JoinKind(StrEnum):
    LEFT = "LEFT"
    RIGHT = "RIGHT"
    FULL = "FULL"


@dataclass(frozen=True, slots=True, eq=False)
class OuterJoin:
    """``on`` names columns ``l.column`` and ``r.column``; ``keys`` are the pairs that its equalities compare."""

    kind: JoinKind
    left: Operator
    right: Operator
    on: tuple[exp.Expr, ...]
    keys: tuple[tuple[str, str], ...]
    hidden: tuple[str, ...] = ()

    words: ClassVar[tuple[str, ...]] = ("LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
    upkeep: ClassVar[Upkeep] = Upkeep.KEYED
    renames: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_names_differ(self.left.columns + self.right.columns)
        if not self.keys:
            raise ValueError("an outer join without an equality has no keys to recompute by")

    @classmethod
    def build(cls, piece: JoinPiece) -> OuterJoin:
        if not piece.keys:
            reason = "an outer join without an equality has no keys to recompute by"
            raise NotIncremental(piece.words, reason, piece.node)
        kind = JoinKind(piece.words.removesuffix(" JOIN"))
        return cls(kind, piece.left, piece.right, piece.on, piece.keys, piece.hidden)

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.left, self.right)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name in self.left.columns + self.right.columns if name not in self.hidden)

    @property
    def reads_states(self) -> bool:
        return True

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
        pairs = spelled_pairs(self.keys, self.left.origin, self.right.origin)
        return OperatorNote(
            f"{self.kind} JOIN", self.upkeep, f"the rows of each touched key are joined again ({pairs})"
        )

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

        return keyed.delta(script, self, self._sides(), evaluate)

    def old(self, script: Script) -> exp.Query:
        left, right = keyed.old_rows(script, self.left), keyed.old_rows(script, self.right)
        return self._join(left, right, [], [named(big(1), COUNT)])

    def timed(self, script: Script) -> exp.Query:
        return in_one_piece(script, self)

    def _sides(self) -> list[tuple[Operator, tuple[str, ...]]]:
        left, right = zip(*self.keys, strict=True)
        return [(self.left, left), (self.right, right)]

    def _over_lives(self, script: Script) -> exp.Query:
        """The pairs that meet, and what is left of the lives of a preserved side, padded with NULL."""
        (left, left_keys), (right, right_keys) = sides = self._sides()
        moments = numbered(script, sides)
        ours = Side(LEFT_SIDE, left, left_keys, lives(script, left, left_keys, moments))
        theirs = Side(RIGHT_SIDE, right, right_keys, lives(script, right, right_keys, moments))
        met = pairs(script, ours, theirs, self.on)
        both = exp.Mul(this=column(None, COPIES[LEFT_SIDE]), expression=column(None, COPIES[RIGHT_SIDE]))
        columns = [column(None, name) for name in (*self.columns, AT, UNTIL)]
        parts = [copies(select().from_(table(met)), columns, both)]
        if self.kind in (JoinKind.LEFT, JoinKind.FULL):
            parts.append(self._alone(ours, stretches(script, ours, met)))
        if self.kind in (JoinKind.RIGHT, JoinKind.FULL):
            parts.append(self._alone(theirs, stretches(script, theirs, met)))
        return come_and_go(script.add("result", bag_union(parts)), self.columns, AT, UNTIL)

    def _alone(self, side: Side, cut: str) -> exp.Select:
        padded = [column(None, name) if name in side.rel.columns else named(exp.null(), name) for name in self.columns]
        rows = select().from_(table(cut)).where(without_partners(), copy=False)
        return copies(rows, [*padded, column(None, AT), column(None, UNTIL)], column(None, COPIES[side.alias]))

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
