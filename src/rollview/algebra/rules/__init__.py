"""One operator, one file: how its delta follows from its inputs' deltas, and what its old state is.

An operator that is not linear is one small file that calls ``keyed.delta``: it says by which columns its inputs meet,
and how to evaluate it over rows that carry the moment they belong to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from rollview.algebra.rules import aggregate, block, distinct, outer_join, union
from rollview.algebra.tree import Aggregate, Block, Distinct, OuterJoin, Rel, Union

if TYPE_CHECKING:
    from rollview.algebra.script import Script

Rule = Callable[["Script", Any], exp.Query]

_DELTA: dict[type, Rule] = {
    Block: block.delta,
    Union: union.delta,
    Distinct: distinct.delta,
    Aggregate: aggregate.delta,
    OuterJoin: outer_join.delta,
}
_OLD: dict[type, Rule] = {
    Block: block.old,
    Union: union.old,
    Distinct: distinct.old,
    Aggregate: aggregate.old,
    OuterJoin: outer_join.old,
}


def delta_of(script: Script, rel: Rel) -> exp.Query:
    return _DELTA[type(rel)](script, rel)


def old_of(script: Script, rel: Rel) -> exp.Query:
    return _OLD[type(rel)](script, rel)
