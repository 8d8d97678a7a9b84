"""How far a relation is complete. Few need more than this, so it loads neither SQL nor storage."""

from __future__ import annotations

from rollview.catalog import Part, Relation, RelationKind, Snapshot
from rollview.core.interval import Csn


def high_water_mark(snapshot: Snapshot, relation: Relation) -> Csn:
    """The csn up to which the relation's changes are all there, as far as its definition goes."""
    if relation.kind is RelationKind.TABLE:
        return snapshot.moment.csn
    through = relation.pins[Part.DELTA].through
    return through if relation.until is None else min(through, relation.until - 1)
