"""How far a relation is complete. Few need more than this, so it loads neither SQL nor storage."""

from __future__ import annotations

from rollview.catalog import Part, Relation, RelationKind, Snapshot
from rollview.core.interval import Csn


def high_water_mark(snapshot: Snapshot, relation: Relation) -> Csn:
    """The csn up to which the relation's changes are all there."""
    return snapshot.moment.csn if relation.kind is RelationKind.TABLE else relation.pins[Part.DELTA].through
