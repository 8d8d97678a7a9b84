"""UNION ALL. Law: Δ(R + S) = ΔR + ΔS. Columns meet by position, named as in the first side."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import ClassVar

from sqlglot import exp

from rollview.algebra.expressions import bag_union, big, column, named, select, table
from rollview.algebra.kinds import Kinds, met
from rollview.algebra.operator import Operator, OperatorNote, Upkeep
from rollview.algebra.pieces import SetPiece
from rollview.algebra.script import Script
from rollview.core.names import COUNT, CSN


@dataclass(frozen=True, slots=True, eq=False)
class Union:
    inputs: tuple[Operator, ...]

    words: ClassVar[tuple[str, ...]] = ("UNION",)
    upkeep: ClassVar[Upkeep] = Upkeep.LINEAR
    renames: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if len({len(rel.columns) for rel in self.inputs}) != 1:
            raise ValueError("the sides of a union differ in their number of columns")

    @classmethod
    def build(cls, piece: SetPiece) -> Union:
        return cls(piece.sides)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.inputs[0].columns

    @property
    def reads_states(self) -> bool:
        return False

    def pruned(self, wanted: Set[str]) -> Union:
        """By position, so all columns stay."""
        return Union(tuple(side.pruned(set(side.columns)) for side in self.inputs))

    def kinds_of(self, name: str) -> Kinds:
        at = self.columns.index(name)
        return met(side.kinds_of(side.columns[at]) for side in self.inputs)

    def type_of(self, name: str) -> str | None:
        at = self.columns.index(name)
        found = {side.type_of(side.columns[at]) for side in self.inputs}
        return found.pop() if len(found) == 1 else None

    def origin(self, column: exp.Column) -> exp.Expr:
        return column

    def note(self) -> OperatorNote | None:
        return OperatorNote("UNION ALL", self.upkeep, "the deltas of both sides")

    def delta(self, script: Script) -> exp.Query:
        return bag_union([self._changes(script, side) for side in self.inputs])

    def old(self, script: Script) -> exp.Query:
        return bag_union([self._side(side, script.old(side), [column(None, COUNT)]) for side in self.inputs])

    def timed(self, script: Script) -> exp.Query:
        extra = [column(None, COUNT), column(None, CSN)]
        return bag_union([self._side(side, script.timed(side), extra) for side in self.inputs])

    def _changes(self, script: Script, side: Operator) -> exp.Select:
        """A side that did not change takes part without rows: Spark gives a column a type that fits all sides."""
        if script.starts(side) or script.is_absent(side):
            return self._side(side, script.delta(side), [column(None, COUNT), column(None, CSN)])
        nothing = self._side(side, script.old(side), [column(None, COUNT), named(big(0), CSN)])
        return nothing.where(exp.false(), copy=False)

    def _side(self, side: Operator, rows: str, extra: Sequence[exp.Expr]) -> exp.Select:
        renamed = [named(column(None, ours), name) for ours, name in zip(side.columns, self.columns, strict=True)]
        return select(*renamed, *extra).from_(table(rows))
