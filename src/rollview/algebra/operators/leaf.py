"""A base table or a view, as stored. Law: what is stored is its own delta and its own state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import ClassVar

from sqlglot import exp

from rollview.algebra.kinds import Kinds, kinds_of_type
from rollview.algebra.operator import Operator, OperatorNote, Upkeep, walk
from rollview.algebra.pieces import TablePiece
from rollview.algebra.script import Script
from rollview.algebra.timed import old_and_changes
from rollview.algebra.types import compared_as
from rollview.core.schema import Constraints


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """``types``: Spark's, by column."""

    relation: str
    columns: tuple[str, ...]
    types: Mapping[str, str] = field(default_factory=dict)
    constraints: Constraints = Constraints()

    words: ClassVar[tuple[str, ...]] = ("FROM",)
    upkeep: ClassVar[Upkeep] = Upkeep.LINEAR
    renames: ClassVar[bool] = False

    @classmethod
    def build(cls, piece: TablePiece) -> Leaf:
        types = {column.name: column.type for column in piece.schema}
        return cls(piece.name, piece.schema.names, types, piece.constraints)

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return ()

    @property
    def reads_states(self) -> bool:
        return False

    def pruned(self, wanted: Set[str]) -> Leaf:
        kept = tuple(name for name in self.columns if name in wanted)
        return replace(self, columns=kept or self.columns[:1])

    def kinds_of(self, name: str) -> Kinds:
        return kinds_of_type(self.types.get(name, ""))

    def type_of(self, name: str) -> str | None:
        return compared_as(self.types.get(name))

    def origin(self, column: exp.Column) -> exp.Expr:
        return column

    def note(self) -> OperatorNote | None:
        return None

    def delta(self, script: Script) -> exp.Table:
        return script.input(self.relation, "delta")

    def old(self, script: Script) -> exp.Table:
        return script.input(self.relation, "old")

    def timed(self, script: Script) -> exp.Query | exp.Table:
        return script.input(self.relation, "timed") if script.is_small(self) else old_and_changes(script, self)


def leaves(rel: Operator) -> Iterator[Leaf]:
    """The stored relations that an operator reads, one for each place where it reads them."""
    return (node for node in walk(rel) if isinstance(node, Leaf))
