"""Bag union. Law: Δ(R + S) = ΔR + ΔS (003 §2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sqlglot import exp

from rollview.algebra.expressions import bag_union, column, named, select, table
from rollview.algebra.tree import Rel, Union
from rollview.core.names import COUNT, CSN

if TYPE_CHECKING:
    from rollview.algebra.script import Script


def delta(script: Script, rel: Union) -> exp.Query:
    return _over([side for side in rel.inputs if script.changed(side)], rel, script.delta, (COUNT, CSN))


def old(script: Script, rel: Union) -> exp.Query:
    return _over(rel.inputs, rel, script.old, (COUNT,))


def _over(
    sides: tuple[Rel, ...] | list[Rel], rel: Union, of: Callable[[Rel], str], extra: tuple[str, ...]
) -> exp.Query:
    def side(rows: Rel) -> exp.Select:
        renamed = [named(column(None, ours), name) for ours, name in zip(rows.columns, rel.columns, strict=True)]
        return select(*renamed, *[column(None, name) for name in extra]).from_(table(of(rows)))

    return bag_union([side(rows) for rows in sides])
