"""Select, project and inner join. Law: it is linear, so its delta is a sum of terms; ``terms`` writes them.

ΔV(a,b] = Σ_i  R1@a ⋈ … ⋈ R(i-1)@a ⋈ ΔRi(a,b] ⋈ R(i+1)@b ⋈ … ⋈ Rn@b
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace
from typing import ClassVar

from sqlglot import exp

from rollview.algebra import at_once, terms
from rollview.algebra.expressions import columns_in
from rollview.algebra.kinds import Kinds, kinds_of_expression
from rollview.algebra.operator import Input, Operator, OperatorNote, Upkeep
from rollview.algebra.operators.aggregate import Aggregate
from rollview.algebra.pieces import SelectPiece
from rollview.algebra.product import Product
from rollview.algebra.script import Script
from rollview.algebra.spelling import followed, spelled
from rollview.algebra.superfluous import without_parents
from rollview.algebra.timed import in_one_piece
from rollview.algebra.types import type_of_expression


@dataclass(frozen=True, slots=True, eq=False)
class Block(Product):
    words: ClassVar[tuple[str, ...]] = ("SELECT",)
    upkeep: ClassVar[Upkeep] = Upkeep.LINEAR
    renames: ClassVar[bool] = False

    @classmethod
    def build(cls, piece: SelectPiece) -> Block:
        return cls(piece.sources, piece.where, piece.outputs)

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return tuple(source.rel for source in self.sources)

    @property
    def reads_states(self) -> bool:
        return len(self.sources) > 1

    def pruned(self, wanted: Set[str]) -> Block:
        kept = tuple(output for output in self.outputs if output.name in wanted)
        block = without_parents(replace(self, outputs=kept or self.outputs[:1]))
        used = columns_in([*block.where, *(output.expression for output in block.outputs)])
        sources = [
            Input(source.alias, source.rel.pruned({name for alias, name in used if alias == source.alias}))
            for source in block.sources
        ]
        return replace(block, sources=tuple(sources))

    def kinds_of(self, name: str) -> Kinds:
        return kinds_of_expression(self.output(name), {source.alias: source.rel for source in self.sources})

    def type_of(self, name: str) -> str | None:
        return type_of_expression(self.output(name), lambda read: self.source(read.table).rel.type_of(read.name))

    def origin(self, column: exp.Column) -> exp.Expr:
        return followed(self.output(column.name), self._read)

    def note(self) -> OperatorNote | None:
        if len(self.sources) > 1:
            names = ", ".join(source.alias for source in self.sources)
            return OperatorNote(f"join of {names}", self.upkeep, f"{len(self.sources)} terms, one per input")
        if not self.where and all(isinstance(output.expression, exp.Column) for output in self.outputs):
            return None
        where = " and ".join(spelled(condition, self._read) for condition in self.where)
        what = "HAVING" if isinstance(self.sources[0].rel, Aggregate) else "WHERE"
        return OperatorNote(f"{what} {where}" if where else "expressions", self.upkeep, "row by row")

    def delta(self, script: Script) -> exp.Query:
        return terms.delta(script, self)

    def old(self, script: Script) -> exp.Query:
        return terms.old(script, self)

    def timed(self, script: Script) -> exp.Query:
        if len(self.sources) == 1 or at_once.is_one(script, self):
            return at_once.timed(script, self)
        return in_one_piece(script, self)

    def _read(self, column: exp.Column) -> exp.Expr:
        """What a column of an input stands for; the names of a table or of a subquery are the author's own."""
        below = self.source(column.table).rel
        return below.origin(exp.Column(this=exp.to_identifier(column.name))) if below.renames else column
