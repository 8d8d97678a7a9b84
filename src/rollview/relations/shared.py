"""Views that are another view and nothing more: one delta, many extents.

Law: a view that is only ``SELECT * FROM v`` has v's rows at every csn, so v's delta tells its changes, and it stores
none. It has a mark and an extent of its own, and is in reach where both are: daily and monthly from one delta.
"""

from __future__ import annotations

from rollview.catalog import Part, Relation, Snapshot
from rollview.core.interval import Interval, merge_overlapping
from rollview.relations.marks import high_water_mark
from rollview.relations.versions import earlier

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
    """The interval that a view's delta tells, its own or the one that it shares, up to its own mark. Below the csn at
    which its present definition began, what it stored by the one before tells more."""
    told = _told_by_its_definition(snapshot, view)
    before = earlier(snapshot, view)
    return told if before is None else Interval(told_over(*before).after, told.through)


def _told_by_its_definition(snapshot: Snapshot, view: Relation) -> Interval:
    first = view.pins[Part.DELTA].after
    told_by = changes_from(snapshot, view)
    if told_by is not view:
        first = max(first, told_over(snapshot, told_by).after)
    # The other's delta may be coarse where this one's own begins.
    while inside := [one.through for one in coarse_of(snapshot, view) if one.strictly_inside(first)]:
        first = max(inside)
    return Interval(first, max(first, high_water_mark(snapshot, view)))
