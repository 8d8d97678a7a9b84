"""Points in time: a csn, a moment, or the newest csn.

Law: a moment means that moment at every source that the named relations read.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from rollview.catalog import Catalog, Relation, RelationKind, Snapshot
from rollview.core.interval import Csn
from rollview.errors import UsageError
from rollview.relations.marks import high_water_mark

Point = Csn | datetime | Literal["latest"]
"""A csn, a moment (with its zone), or the newest csn."""


def resolve(catalog: Catalog, point: Point, *names: str) -> Csn:
    """The csn that a point means. ``latest`` is the newest, or as far as all of the named relations are complete."""
    snapshot = catalog.snapshot()
    if point == "latest":
        complete = [high_water_mark(snapshot, snapshot.get(name)) for name in names]
        return min(complete, default=snapshot.moment.csn)
    if isinstance(point, datetime):
        return catalog.csn_at(point, names or None)
    try:
        return int(point)
    except (TypeError, ValueError):
        hint = "Give a csn, a datetime with its zone, or 'latest'."
        raise UsageError(f"'{point}' is neither a csn nor a moment.", hint=hint) from None


def recorded_by(catalog: Catalog, point: Point | None) -> Csn | None:
    """The newest csn that was in the ledger at a moment; any other point as it is."""
    if isinstance(point, datetime):
        return catalog.csn_recorded_by(point)
    return None if point is None else resolve(catalog, point)


def published(snapshot: Snapshot, relation: Relation) -> Csn:
    """The csn at which readers see a relation when they name none."""
    return relation.shown.through if relation.kind is RelationKind.VIEW else high_water_mark(snapshot, relation)
