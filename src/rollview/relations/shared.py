"""Views that are another view and nothing more: one delta, many extents.

Law: a view that is only ``SELECT * FROM v`` has v's rows at every csn, so v's delta tells its changes, and it stores
none. It has a mark and an extent of its own, and is in reach where both are: daily and monthly from one delta.
"""

from __future__ import annotations

from rollview.catalog import Part, Relation, Snapshot
from rollview.core.interval import Interval, merge_overlapping

SHARES = "shares"
"""The fact of a definition by which a view has no delta of its own."""


def changes_from(snapshot: Snapshot, relation: Relation) -> Relation:
    """The relation whose delta tells the changes of this one: mostly itself."""
    while relation.definition is not None and relation.definition.facts.get(SHARES):
        relation = snapshot.get(relation.depends_on[0])
    return relation


def coarse_of(snapshot: Snapshot, relation: Relation) -> tuple[Interval, ...]:
    """The stretches inside which it cannot be read: its own, and those of the delta that it shares."""
    told_by = changes_from(snapshot, relation)
    return relation.coarse if told_by is relation else merge_overlapping((*relation.coarse, *told_by.coarse))


def told_over(snapshot: Snapshot, view: Relation) -> Interval:
    """The interval that a view's delta tells, its own or the one that it shares, up to its own mark."""
    first = max(one.pins[Part.DELTA].after for one in (view, changes_from(snapshot, view)))
    # The other's delta may be coarse where this one's own begins.
    while inside := [one.through for one in coarse_of(snapshot, view) if one.strictly_inside(first)]:
        first = max(inside)
    return Interval(first, max(first, view.pins[Part.DELTA].through))
