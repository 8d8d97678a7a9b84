"""The oldest csn of a relation that something still reads from.

Law: a view reads on from its high-water mark, and its extent is brought elsewhere from its own csn; below a view that
reads, everything is read at that view's csn. A subscriber reads its view on from its position. A delta may only be
shortened behind all of these; what is not overtaken by name is not overtaken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rollview.catalog import Part, Relation, RelationKind, Snapshot, SubscriberRecord
from rollview.core.interval import Csn
from rollview.relations.shared import changes_from


@dataclass(frozen=True, slots=True)
class NeededCsn:
    csn: Csn
    why: str


def oldest_need(snapshot: Snapshot, relation: Relation, subscribers: Iterable[SubscriberRecord] = ()) -> NeededCsn:
    """Groups are not counted: they can be folded forward, as a table's state can."""
    needs = (*_needs(snapshot, relation), *_of_subscribers(snapshot, relation, subscribers))
    return min(needs, key=lambda need: need.csn)


def legal(relation: Relation, csn: Csn) -> Csn:
    """The csn, or the beginning of the coarse stretch that it is strictly inside of."""
    return next((stretch.after for stretch in relation.coarse if stretch.strictly_inside(csn)), csn)


def _needs(snapshot: Snapshot, relation: Relation) -> Iterator[NeededCsn]:
    yield NeededCsn(snapshot.moment.csn, "it is the newest csn")
    if relation.kind is RelationKind.VIEW:
        yield from _of_view(relation)
    for view in snapshot.above(relation.name):
        yield from _of_view(view)


def _of_subscribers(
    snapshot: Snapshot, relation: Relation, subscribers: Iterable[SubscriberRecord]
) -> Iterator[NeededCsn]:
    """Also of views that share the relation's delta. One whose history has ended needs nothing: it begins anew."""
    for one in subscribers:
        view = snapshot.find(one.view)
        if view is None or one.folder != view.folder:
            continue
        if relation in (view, changes_from(snapshot, view)):
            yield NeededCsn(one.position, f"subscriber '{one.name}' is at csn {one.position}")


def _of_view(view: Relation) -> Iterator[NeededCsn]:
    mark, extent = view.pins[Part.DELTA].through, view.shown.through
    yield NeededCsn(extent, f"the extent of view '{view.name}' is at csn {extent}")
    yield NeededCsn(mark, f"the high-water mark of view '{view.name}' is csn {mark}")
