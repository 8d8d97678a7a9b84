"""GROUP BY below other operators, or with an aggregate that is not linear: each touched group is aggregated again.

Law: a group's row depends on the group's rows alone. A query without keys has exactly one group, which is there even
when no row is. Linear aggregates at the top of a view are kept by ``summary`` instead and read no base rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from rollview.algebra.expressions import AT, UNTIL, all_of, big, column, named, same_value, select, table
from rollview.algebra.rules import keyed
from rollview.algebra.tree import Aggregate
from rollview.core.names import COUNT

if TYPE_CHECKING:
    from rollview.algebra.script import Script

_PRESENT = "_rv_present"


def delta(script: Script, rel: Aggregate) -> exp.Query:
    def evaluate(inputs: Sequence[str], moments: str) -> exp.Query:
        return _grouped(rel, inputs[0]) if rel.keys else _grand_total(rel, inputs[0], moments)

    return keyed.delta(script, rel, [(rel.input, rel.keys)], evaluate)


def old(script: Script, rel: Aggregate) -> exp.Query:
    keys = [column(None, key) for key in rel.keys]
    calls = [named(output.expression.copy(), output.name) for output in rel.aggregates]
    query = select(*keys, *calls, named(big(1), COUNT)).from_(table(keyed.old_rows(script, rel.input)))
    return query.group_by(*keys, copy=False) if keys else query


def _grouped(rel: Aggregate, rows: str) -> exp.Query:
    groups = [column(None, name) for name in (*rel.keys, AT, UNTIL)]
    calls = [named(output.expression.copy(), output.name) for output in rel.aggregates]
    return select(*groups[:-2], *calls, *groups[-2:]).from_(table(rows)).group_by(*groups, copy=False)


def _grand_total(rel: Aggregate, rows: str, moments: str) -> exp.Query:
    """Start at the moments, so that a moment without rows still has its one group."""
    present = [column(None, name) for name in (*rel.input.columns, AT)]
    marked = select(*present, named(exp.true(), _PRESENT)).from_(table(rows))
    calls = [named(_of_present(output.expression), output.name) for output in rel.aggregates]
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
