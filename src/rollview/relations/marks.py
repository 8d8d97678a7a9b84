"""How far a relation is complete. Few need more than this, so it loads neither SQL nor storage."""

from __future__ import annotations

from collections.abc import Iterable

from rollview.catalog import Part, Relation, RelationKind, Snapshot
from rollview.core.interval import Csn


def high_water_mark(snapshot: Snapshot, relation: Relation) -> Csn:
    """The csn up to which the relation's changes are all there, as far as its definition goes."""
    if relation.kind is RelationKind.TABLE:
        return snapshot.moment.csn if relation.waits_at is None else relation.waits_at
    through = relation.pins[Part.DELTA].through
    return through if relation.until is None else min(through, relation.until - 1)


def told_at(tables: Iterable[Relation], csn: Csn) -> Csn:
    """The csn, or the last before it that is strictly inside no stretch over which changes of a table are one."""
    stretches = [one for table in tables if table.kind is RelationKind.TABLE for one in table.coarse]
    while inside := [one.after for one in stretches if one.strictly_inside(csn)]:
        csn = min(inside)
    return csn
