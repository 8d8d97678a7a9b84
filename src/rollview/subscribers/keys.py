"""The columns of a view that hold a key, where its definition proves one.

Law: no two rows of the view have the same key at any csn, so a row that goes and one that comes with the same key in
one commit are one row that changed. What is not proven is no key.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from rollview.algebra.operator import Operator, Output
from rollview.algebra.operators.block import Block
from rollview.algebra.operators.leaf import Leaf
from rollview.catalog import Relation, Snapshot
from rollview.core.names import same
from rollview.relations.plans import plan_of
from rollview.relations.shared import changes_from

Key = tuple[str, ...] | None


def find_key(snapshot: Snapshot, view: Relation) -> Key:
    """The groups of a summary, or the primary key of the one table that the view reads row by row; () for one row."""
    plan = plan_of(snapshot, changes_from(snapshot, view))
    if plan.summary is not None:
        return _shown(plan.summary.outputs, plan.summary.keys)
    rel = plan.outline.rel
    table = _only_table(rel)
    if table is None or not isinstance(rel, Block):
        return None
    key = snapshot.get(table.relation).constraints.primary_key
    return _shown(rel.outputs, key) if key else None


def _only_table(rel: Operator | None) -> Leaf | None:
    if not isinstance(rel, Block) or len(rel.sources) != 1:
        return None
    below = rel.sources[0].rel
    return below if isinstance(below, Leaf) else None


def _shown(outputs: Iterable[Output], key: tuple[str, ...]) -> Key:
    """What the view calls the columns of the key, if it shows all of them."""
    plain = [(one.name, one.expression.name) for one in outputs if isinstance(one.expression, exp.Column)]
    shown = [next((name for name, read in plain if same(read, column)), None) for column in key]
    return None if None in shown else tuple(name for name in shown if name is not None)
