"""The views of a warehouse as answers to queries."""

from __future__ import annotations

from functools import lru_cache

from rollview.algebra.operator import Operator
from rollview.algebra.operators.leaf import Leaf
from rollview.algebra.pieces import TablePiece
from rollview.algebra.view import ViewPlan
from rollview.catalog import Relation, RelationKind, Snapshot
from rollview.core.schema import Constraints, Schema
from rollview.core.states import ViewState
from rollview.matching import Answering, NotFlat, flatten
from rollview.matching.flat import Expand, Flat
from rollview.matching.rewrite import GROUPS_SUFFIX
from rollview.relations.former import sees_former_names
from rollview.relations.plans import plan_of


def expanding(snapshot: Snapshot) -> Expand:
    """Views read through, down to tables, where their text was read as Spark reads it."""

    def expand(name: str) -> Operator | None:
        relation = snapshot.find(name)
        if relation is None or relation.kind is RelationKind.TABLE or not _is_read(relation):
            return None
        if sees_former_names(snapshot, relation):
            return None
        return plan_of(snapshot, relation).outline.rel

    return expand


def _is_read(view: Relation) -> bool:
    """What a view means is known as long as it has not lost its columns."""
    return view.state is not ViewState.SCHEMA_CHANGED


def answering(snapshot: Snapshot, relation: Relation) -> Answering | str:
    """The view, or the reason why it is not compared with queries."""
    if not _is_read(relation):
        return "its columns have changed at the source"
    if sees_former_names(snapshot, relation):
        return "columns that it reads have other names by now"
    plan = plan_of(snapshot, relation)
    if plan.outline.rel is None:
        return plan.outline.whole_because or "it is recomputed whole"
    below = [lower for lower in snapshot.below(relation.name) if lower.kind is RelationKind.VIEW]
    through = tuple((lower.name, plan_of(snapshot, lower)) for lower in below if _is_read(lower))
    try:
        flat = _flat(plan, through)
    except NotFlat as operator:
        return f"{operator} is not matched with queries"
    columns = dict(zip(flat.outputs, relation.schema.names, strict=True))
    return Answering(relation.name, flat, _leaf(relation.name, relation.schema, plan), plan.summary, columns)


@lru_cache(maxsize=1024)
def _flat(plan: ViewPlan, through: tuple[tuple[str, ViewPlan], ...]) -> Flat:
    """``through``: the views below, which are read through."""
    below = dict(through)
    assert plan.outline.rel is not None
    return flatten(plan.outline.rel, lambda name: below[name].outline.rel if name in below else None)


def _leaf(name: str, schema: Schema, plan: ViewPlan) -> Leaf:
    if plan.summary is None:
        return Leaf.build(TablePiece(name, schema, Constraints()))
    return Leaf.build(TablePiece(name + GROUPS_SUFFIX, plan.summary.schema, Constraints()))
