"""LEFT, RIGHT and FULL joins with at least one equality: the rows of each touched join key are joined again.

Law: rows meet only where the equality holds, so matched rows and the rows that stay without a partner depend on the
rows of their own key alone. Rows whose key is NULL form a key of their own and never find a partner by ``=``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from rollview.algebra.expressions import AT, UNTIL, all_of, big, column, named, same_value, select, table
from rollview.algebra.rules import keyed
from rollview.algebra.tree import LEFT_SIDE, RIGHT_SIDE, OuterJoin
from rollview.core.names import COUNT

if TYPE_CHECKING:
    from rollview.algebra.script import Script


def delta(script: Script, rel: OuterJoin) -> exp.Query:
    def evaluate(inputs: Sequence[str], moments: str) -> exp.Query:
        left, right = inputs
        same_moment = [same_value(column(LEFT_SIDE, AT), column(RIGHT_SIDE, AT))]
        times = [
            named(exp.Coalesce(this=column(LEFT_SIDE, name), expressions=[column(RIGHT_SIDE, name)]), name)
            for name in (AT, UNTIL)
        ]
        return _join(rel, left, right, same_moment, times)

    sides = [
        (rel.left, tuple(left for left, _ in rel.keys)),
        (rel.right, tuple(right for _, right in rel.keys)),
    ]
    return keyed.delta(script, rel, sides, evaluate)


def old(script: Script, rel: OuterJoin) -> exp.Query:
    left, right = keyed.old_rows(script, rel.left), keyed.old_rows(script, rel.right)
    return _join(rel, left, right, [], [named(big(1), COUNT)])


def _join(
    rel: OuterJoin, left: str, right: str, conditions: Sequence[exp.Expr], extra: Sequence[exp.Expr]
) -> exp.Select:
    sides = dict.fromkeys(rel.left.columns, LEFT_SIDE) | dict.fromkeys(rel.right.columns, RIGHT_SIDE)
    columns = [column(sides[name], name) for name in rel.columns]
    return (
        select(*columns, *extra)
        .from_(table(left, LEFT_SIDE))
        .join(table(right, RIGHT_SIDE), on=all_of([*rel.on, *conditions]), join_type=rel.kind.value, copy=False)
    )
