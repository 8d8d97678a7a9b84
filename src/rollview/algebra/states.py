"""Which of the relations below a view have to be here as rows, and not only as changes.

Law: selection, projection and bag union are linear, so their delta is made of their inputs' deltas alone; groups that
are kept as accumulators grow by increments. Every other operator may look at rows that did not change: how much of them
depends on the interval, so all that lies below it counts as read.
"""

from __future__ import annotations

from rollview.algebra.operator import Operator
from rollview.algebra.operators.leaf import leaves
from rollview.algebra.view import Mode, ViewPlan


def states_read(plan: ViewPlan) -> frozenset[str]:
    """The relations whose state some refresh of the view may read, if none of them recomputes it."""
    if plan.mode is Mode.WHOLE:
        return frozenset(relation.name for relation in plan.reads)
    assert plan.outline.rel is not None
    return frozenset(_below(plan.outline.rel if plan.summary is None else plan.summary.input))


def _below(rel: Operator) -> set[str]:
    if rel.reads_states:
        return {leaf.relation for leaf in leaves(rel)}
    return set().union(*map(_below, rel.inputs))
