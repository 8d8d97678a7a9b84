"""GROUP BY below other operators, or with an aggregate that is not linear: each touched group is aggregated again.

Law: a group's row depends on the group's rows alone. A query without keys has exactly one group, which is there even
when no row is. Linear aggregates at the top of a view are kept by ``summary`` instead and read no base rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import ClassVar

from sqlglot import exp

from rollview.algebra import keyed
from rollview.algebra.combined_groups import can_combine, combined_groups
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
from rollview.algebra.kinds import FLOATING, Kinds, kinds_of_call
from rollview.algebra.operator import Operator, OperatorNote, Output, Upkeep, check_names_differ
from rollview.algebra.pieces import GroupPiece
from rollview.algebra.script import Script
from rollview.algebra.spelling import followed, spelled_column
from rollview.algebra.timed import in_one_piece
from rollview.algebra.types import type_of_call
from rollview.core.names import COUNT

AGAIN = "each touched group is aggregated again"
_PRESENT = "_rv_present"


@dataclass(frozen=True, slots=True, eq=False)
class Aggregate:
    """γ: ``keys`` are columns of the input, ``aggregates`` are calls over bare columns of the input."""

    input: Operator
    keys: tuple[str, ...]
    aggregates: tuple[Output, ...]
    types: Mapping[str, str] = field(default_factory=dict)
    """Of the input's columns, where Spark was asked."""
    results: Mapping[str, str] = field(default_factory=dict)
    """Types of the aggregates, where Spark was asked."""

    words: ClassVar[tuple[str, ...]] = ("GROUP BY",)
    upkeep: ClassVar[Upkeep] = Upkeep.KEYED
    renames: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_names_differ(self.columns)

    @classmethod
    def build(cls, piece: GroupPiece) -> Aggregate:
        return cls(piece.input, piece.keys, piece.aggregates)

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.input,)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.keys + tuple(output.name for output in self.aggregates)

    @property
    def reads_states(self) -> bool:
        return True

    def pruned(self, wanted: Set[str]) -> Aggregate:
        kept = tuple(output for output in self.aggregates if output.name in wanted)
        if not self.keys and not kept:
            kept = self.aggregates[:1]
        used = {name for _, name in columns_in(output.expression for output in kept)}
        return replace(self, input=self.input.pruned(used.union(self.keys)), aggregates=kept)

    def kinds_of(self, name: str) -> Kinds:
        """Of the two zeroes that a key may have, one is left."""
        if name in self.keys:
            return self.input.kinds_of(name) - {FLOATING}
        return kinds_of_call(self._call(name), self.input)

    def type_of(self, name: str) -> str | None:
        return self.input.type_of(name) if name in self.keys else type_of_call(self._call(name), self.input.type_of)

    def origin(self, column: exp.Column) -> exp.Expr:
        return followed(column if column.name in self.keys else self._call(column.name), self.input.origin)

    def note(self) -> OperatorNote | None:
        keys = ", ".join(spelled_column(key, self.input.origin) for key in self.keys)
        what = f"GROUP BY {keys}" if keys else "grand total"
        return OperatorNote(what, self.upkeep, f"{AGAIN}: below another operator, where no groups are stored")

    @property
    def combines(self) -> bool:
        """Whether many commits on one group do not cost its rows each."""
        return can_combine(self.input, self.aggregates, self.types, self.results)

    def delta(self, script: Script) -> exp.Query:
        if script.many:
            groups = combined_groups(script, self.input, self.keys, self.aggregates, self.types, self.results)
            if groups is not None:
                return come_and_go(groups, self.columns, AT, UNTIL)

        def evaluate(inputs: Sequence[str], moments: str) -> exp.Query:
            return self._grouped(inputs[0]) if self.keys else self._grand_total(inputs[0], moments)

        return keyed.delta(script, self, [(self.input, self.keys)], evaluate)

    def old(self, script: Script) -> exp.Query:
        keys = [column(None, key) for key in self.keys]
        query = select(*keys, *self._calls(), named(big(1), COUNT)).from_(table(keyed.old_rows(script, self.input)))
        return query.group_by(*keys, copy=False) if keys else query

    def timed(self, script: Script) -> exp.Query:
        return in_one_piece(script, self)

    def _call(self, name: str) -> exp.Expr:
        return next(output.expression for output in self.aggregates if output.name == name)

    def _calls(self) -> list[exp.Alias]:
        return [named(output.expression.copy(), output.name) for output in self.aggregates]

    def _grouped(self, rows: str) -> exp.Query:
        groups = [column(None, name) for name in (*self.keys, AT, UNTIL)]
        return select(*groups[:-2], *self._calls(), *groups[-2:]).from_(table(rows)).group_by(*groups, copy=False)

    def _grand_total(self, rows: str, moments: str) -> exp.Query:
        """Start at the moments, so that a moment without rows still has its one group."""
        present = [column(None, name) for name in (*self.input.columns, AT)]
        marked = select(*present, named(exp.true(), _PRESENT)).from_(table(rows))
        calls = [named(_of_present(output.expression), output.name) for output in self.aggregates]
        times = [column("m", AT), column("m", UNTIL)]
        return (
            select(*calls, *times)
            .from_(table(moments, "m"))
            .join(marked.subquery("s"), on=same_value(column("m", AT), column("s", AT)), join_type="left", copy=False)
            .group_by(*times, copy=False)
        )


def _of_present(call: exp.Expr) -> exp.Expr:
    """The row that stands for no row must not be seen."""
    if isinstance(call, exp.Filter):
        both = all_of([call.expression.this, column(None, _PRESENT)])
        return exp.Filter(this=call.this.copy(), expression=exp.Where(this=both))
    return exp.Filter(this=call.copy(), expression=exp.Where(this=column(None, _PRESENT)))
