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
    come_and_go,
    named,
    same_value,
    select,
    table,
)
from rollview.algebra.kinds import Kinds
from rollview.algebra.lives import lives, numbered, presences
from rollview.algebra.operator import LEFT_SIDE, RIGHT_SIDE, Operator, OperatorNote, Upkeep, check_names_differ
from rollview.algebra.overlaps import (
    COPIES,
    Side,
    copies,
    pairs,
    stretches,
    told_by_lives,
    with_partners,
    without_partners,
)
from rollview.algebra.pieces import JoinPiece, NotIncremental
from rollview.algebra.script import Script
from rollview.algebra.spelling import spelled_pairs
from rollview.algebra.timed import in_one_piece
from rollview.core.names import COUNT


class SemiJoinKind(StrEnum):
    SEMI = "LEFT SEMI"
    ANTI = "LEFT ANTI"


@dataclass(frozen=True, slots=True, eq=False)
class SemiJoin:
    """``on`` names columns ``l.column`` and ``r.column``; ``keys`` are the pairs that its equalities compare."""

    kind: SemiJoinKind
    left: Operator
    right: Operator
    on: tuple[exp.Expr, ...]
    keys: tuple[tuple[str, str], ...]
    hidden: tuple[str, ...] = ()

    words: ClassVar[tuple[str, ...]] = ("LEFT SEMI JOIN", "LEFT ANTI JOIN")
    upkeep: ClassVar[Upkeep] = Upkeep.KEYED
    renames: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_names_differ(self.left.columns + self.right.columns)
        if not self.keys:
            raise ValueError("a semi join without an equality has no keys to recompute by")

    @classmethod
    def build(cls, piece: JoinPiece) -> SemiJoin:
        if not piece.keys:
            reason = "a semi or anti join without an equality has no keys to recompute by"
            raise NotIncremental(piece.words, reason, piece.node)
        kind = SemiJoinKind(piece.words.removesuffix(" JOIN"))
        return cls(kind, piece.left, piece.right, piece.on, piece.keys, piece.hidden)

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.left, self.right)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name in self.left.columns if name not in self.hidden)

    @property
    def reads_states(self) -> bool:
        return True

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
        pairs = spelled_pairs(self.keys, self.left.origin, self.right.origin)
        return OperatorNote(
            f"{self.kind} JOIN", self.upkeep, f"the rows of each touched key are looked at again ({pairs})"
        )

    def delta(self, script: Script) -> exp.Query:
        if told_by_lives(script, self.left, self.right, self.keys):
            return self._over_lives(script)

        def evaluate(inputs: Sequence[str], moments: str) -> exp.Query:
            same_moment = same_value(column(LEFT_SIDE, AT), column(RIGHT_SIDE, AT))
            return self._join(inputs, [same_moment], [column(LEFT_SIDE, name) for name in (AT, UNTIL)])

        return keyed.delta(script, self, self._sides(), evaluate)

    def old(self, script: Script) -> exp.Query:
        rows = [keyed.old_rows(script, side) for side in self.inputs]
        return self._join(rows, [], [named(big(1), COUNT)])

    def timed(self, script: Script) -> exp.Query:
        return in_one_piece(script, self)

    def _sides(self) -> list[tuple[Operator, tuple[str, ...]]]:
        left, right = zip(*self.keys, strict=True)
        return [(self.left, left), (self.right, right)]

    def _over_lives(self, script: Script) -> exp.Query:
        """A left row is in the semi join while it has partners; several copies of a partner are one."""
        (left, left_keys), (right, right_keys) = sides = self._sides()
        moments = numbered(script, sides)
        ours = Side(LEFT_SIDE, left, left_keys, lives(script, left, left_keys, moments))
        theirs = Side(RIGHT_SIDE, right, right_keys, presences(script, right, right_keys, moments, apart=True))
        cut = stretches(script, ours, pairs(script, ours, theirs, self.on))
        wanted = with_partners() if self.kind is SemiJoinKind.SEMI else without_partners()
        columns = [column(None, name) for name in (*self.columns, AT, UNTIL)]
        rows = copies(select().from_(table(cut)).where(wanted, copy=False), columns, column(None, COPIES[LEFT_SIDE]))
        return come_and_go(script.add("result", rows), self.columns, AT, UNTIL)

    def _join(self, inputs: Sequence[str], conditions: Sequence[exp.Expr], extra: Sequence[exp.Expr]) -> exp.Select:
        left, right = inputs
        rows = select(*[column(LEFT_SIDE, name) for name in self.columns], *extra).from_(table(left, LEFT_SIDE))
        on = all_of([*self.on, *conditions])
        return rows.join(table(right, RIGHT_SIDE), on=on, join_type=self.kind.value, copy=False)
