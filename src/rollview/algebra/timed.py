"""Timed rows: the state at an interval's start, at csn 0, and the changes of the interval.

Law: the rows up to a csn t of (a, b] add up to the state at t. So the rows above 0 are the delta, and those at 0 are
the old state. What is linear keeps this; for everything else the two are put side by side.
"""

from __future__ import annotations

from sqlglot import exp

from rollview.algebra.expressions import bag_union, big, column, gathered, named, select, table
from rollview.algebra.script import Script, ScriptNode
from rollview.core.names import COUNT, CSN


def old_and_changes(script: Script, rel: ScriptNode) -> exp.Query:
    columns = [column(None, name) for name in rel.columns]
    state = select(*columns, column(None, COUNT), named(big(0), CSN)).from_(table(script.old(rel)))
    if not script.changed(rel):
        return state
    changes = select(*columns, column(None, COUNT), column(None, CSN)).from_(table(script.delta(rel)))
    return bag_union([state, changes])


def in_one_piece(script: Script, rel: ScriptNode) -> exp.Query:
    """The same; few rows are brought together, so that what they are joined with need not be sent to them."""
    both = old_and_changes(script, rel)
    if not script.small or not script.is_small(rel):
        return both
    columns = [column(None, name) for name in (*rel.columns, COUNT, CSN)]
    return gathered(select(*columns).from_(both.subquery("u")))
