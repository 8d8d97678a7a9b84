"""Columns that an inner join takes for equal, and the keys of its tables that its rows do not show.

Law: in every row of the join, columns of one class have the same value. So a row shows the key of a table if it shows a
column of the class of each of the key's columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from rollview.algebra.expressions import column
from rollview.algebra.operator import Operator, Output
from rollview.algebra.operators.aggregate import Aggregate
from rollview.algebra.operators.block import Block
from rollview.algebra.operators.leaf import Leaf
from rollview.algebra.types import compared_one_to_one
from rollview.core.names import RESERVED_PREFIX

KEY_TYPES = ("bigint", "int", "smallint", "tinyint", "string")
"""Of columns by which rows can be asked for: equal values are equal at every source."""

Place = tuple[str, str]
"""A column of an input: its alias, and the column's name there."""


@dataclass(slots=True)
class ColumnClasses:
    """Columns that the join takes for equal, by the name of the first of them."""

    named: dict[Place, str] = field(default_factory=dict)

    def join(self, left: Place, right: Place) -> None:
        ours, theirs = (self.named.setdefault(one, ".".join(one)) for one in (left, right))
        self.named = {place: ours if name == theirs else name for place, name in self.named.items()}


def tied(block: Block, condition: exp.Expr) -> tuple[Place, Place] | None:
    """The two columns that a condition compares, if it is an equality of columns of two tables."""
    if not isinstance(condition, exp.EQ):
        return None
    left, right = condition.this, condition.expression
    if not isinstance(left, exp.Column) or not isinstance(right, exp.Column):
        return None
    types = (block.source(side.table).rel.type_of(side.name) for side in (left, right))
    if left.table == right.table or not compared_one_to_one(block.sources, left, right):
        return None
    return ((left.table, left.name), (right.table, right.name)) if all(one in KEY_TYPES for one in types) else None


@dataclass(frozen=True, slots=True, eq=False)
class KeyedRows:
    """A join's rows with the keys of all its tables: groups of one row each. ``shown``: the columns of the view;
    ``hidden``: the others."""

    groups: Aggregate
    shown: tuple[Output, ...]
    hidden: tuple[Output, ...]

    @property
    def types(self) -> Mapping[str, str]:
        return {name: self.groups.input.type_of(name) or "" for name in self.groups.keys}


def with_hidden_keys(rel: Operator) -> KeyedRows | None:
    """None if nothing is hidden, or if it is no join of tables that all have keys."""
    if not isinstance(rel, Block) or not all(_has_key(source.rel) for source in rel.sources):
        return None
    hidden = tuple(_hidden(rel))
    if not hidden or not all(isinstance(output.expression, exp.Column) for output in rel.outputs):
        return None
    rows = replace(rel, outputs=(*rel.outputs, *hidden))
    names = tuple(output.name for output in rows.outputs)
    shown = tuple(Output(output.name, column("g", output.name)) for output in rel.outputs)
    return KeyedRows(Aggregate(rows.pruned(set(names)), names, ()), shown, hidden)


def _has_key(rel: Operator) -> bool:
    return isinstance(rel, Leaf) and bool(rel.constraints.primary_key)


def _hidden(block: Block) -> Iterator[Output]:
    classes = ColumnClasses()
    for condition in block.where:
        if (pair := tied(block, condition)) is not None:
            classes.join(*pair)

    def named(alias: str, name: str) -> str:
        return classes.named.get((alias, name), f"{alias}.{name}")

    columns = (output.expression for output in block.outputs)
    shown = {named(one.table, one.name) for one in columns if isinstance(one, exp.Column)}
    for place, source in enumerate(block.sources):
        assert isinstance(source.rel, Leaf)
        for number, own in enumerate(source.rel.constraints.primary_key):
            if named(source.alias, own) not in shown:
                shown.add(named(source.alias, own))
                # The column may get another name; what is stored keeps its own.
                yield Output(f"{RESERVED_PREFIX}key{place}_{number}", column(source.alias, own))
