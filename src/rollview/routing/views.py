"""The views of a warehouse as answers to queries."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import lru_cache

from rollview.algebra.operator import Operator
from rollview.algebra.operators.leaf import Leaf
from rollview.algebra.pieces import TablePiece
from rollview.algebra.view import ViewPlan
from rollview.catalog import Relation, RelationKind, Snapshot
from rollview.core.schema import Constraints, Schema
from rollview.core.states import ViewState
from rollview.matching import Answering, NotFlat, flatten
from rollview.matching.flat import Expand
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


def answering_views(snapshot: Snapshot, asked: Collection[str]) -> Iterator[tuple[str, Answering | str]]:
    """The views over relations that are asked for, or the reason why one is not compared with queries."""
    for relation in snapshot.relations.values():
        if relation.kind is RelationKind.VIEW:
            below = snapshot.below(relation.name)
            if relation.name in asked or any(lower.name in asked for lower in below):
                yield relation.name, _answering(snapshot, relation, below)


def _answering(snapshot: Snapshot, relation: Relation, below: Collection[Relation]) -> Answering | str:
    if not _is_read(relation):
        return "its columns have changed at the source"
    if any(lower.layouts for lower in below) and sees_former_names(snapshot, relation):
        return "columns that it reads have other names by now"
    plan = plan_of(snapshot, relation)
    if plan.keeps_keys:
        return "it stores keys that it does not show"
    if plan.outline.rel is None:
        return plan.outline.whole_because or "it is recomputed whole"
    views = [lower for lower in below if lower.kind is RelationKind.VIEW and _is_read(lower)]
    try:
        return _read_view(
            relation.name, relation.schema, plan, tuple((one.name, plan_of(snapshot, one)) for one in views)
        )
    except NotFlat as operator:
        return f"{operator} is not matched with queries"


@lru_cache(maxsize=1024)
def _read_view(name: str, schema: Schema, plan: ViewPlan, through: tuple[tuple[str, ViewPlan], ...]) -> Answering:
    """``through``: the views below, which are read through."""
    below = dict(through)
    assert plan.outline.rel is not None
    flat = flatten(plan.outline.rel, lambda lower: below[lower].outline.rel if lower in below else None)
    columns = dict(zip(flat.outputs, schema.names, strict=True))
    return Answering(name, flat, _leaf(name, schema, plan), plan.summary, columns)


def _leaf(name: str, schema: Schema, plan: ViewPlan) -> Leaf:
    if plan.summary is None:
        return Leaf.build(TablePiece(name, schema, Constraints()))
    return Leaf.build(TablePiece(name + GROUPS_SUFFIX, plan.summary.schema, Constraints()))
