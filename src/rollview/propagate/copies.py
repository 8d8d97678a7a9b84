"""Whether a view is another view and nothing more, so that it needs no delta of its own."""

from __future__ import annotations

from sqlglot import exp

from rollview.algebra.operators.block import Block
from rollview.algebra.operators.leaf import Leaf
from rollview.algebra.view import Outline
from rollview.catalog import RelationKind, Snapshot
from rollview.core.schema import Schema


def is_copy(outline: Outline, schema: Schema, snapshot: Snapshot) -> bool:
    """Whether the definition is all columns of one view, in their order, and nothing else."""
    block = outline.rel
    if not isinstance(block, Block) or block.where or len(block.sources) != 1:
        return False
    leaf = block.sources[0].rel
    lower = snapshot.get(leaf.relation) if isinstance(leaf, Leaf) else None
    plain = [one.expression.name if isinstance(one.expression, exp.Column) else None for one in block.outputs]
    return (
        lower is not None
        and lower.kind is RelationKind.VIEW
        and schema == lower.schema
        and plain == list(lower.schema.names)
    )
