"""Bag union. Law: Δ(R + S) = ΔR + ΔS."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from rollview.algebra.expressions import bag_union, big, column, named, select, table
from rollview.algebra.tree import Rel, Union
from rollview.core.names import COUNT, CSN

if TYPE_CHECKING:
    from rollview.algebra.script import Script


def delta(script: Script, rel: Union) -> exp.Query:
    return bag_union([_changes(script, rel, side) for side in rel.inputs])


def old(script: Script, rel: Union) -> exp.Query:
    return bag_union([_side(rel, side, script.old(side), [column(None, COUNT)]) for side in rel.inputs])


def _changes(script: Script, rel: Union, side: Rel) -> exp.Select:
    """A side that did not change still takes part, without rows: Spark gives a column a type that fits all sides."""
    if script.changed(side) or script.is_absent(side):
        return _side(rel, side, script.delta(side), [column(None, COUNT), column(None, CSN)])
    return _side(rel, side, script.old(side), [column(None, COUNT), named(big(0), CSN)]).where(exp.false(), copy=False)


def _side(rel: Union, side: Rel, rows: str, extra: Sequence[exp.Expr]) -> exp.Select:
    renamed = [named(column(None, ours), name) for ours, name in zip(side.columns, rel.columns, strict=True)]
    return select(*renamed, *extra).from_(table(rows))
