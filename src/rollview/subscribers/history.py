"""The history of a view that a subscriber's position belongs to, and how far it can be read.

Law: a position means something in one history alone: that of one definition with the same columns, in one warehouse,
from where its delta begins. In any other the subscriber is out of reach, and never goes on as if nothing had been.
"""

from __future__ import annotations

from rollview.catalog import Catalog, Relation, RelationKind, Snapshot, SubscriberRecord
from rollview.core.interval import Csn
from rollview.errors import OutOfReach
from rollview.relations.plans import covered
from rollview.relations.shared import changes_from, coarse_of
from rollview.relations.versions import began_anew


def check_history(catalog: Catalog, snapshot: Snapshot, subscriber: SubscriberRecord) -> Relation:
    """The view, if its changes can be told from the subscriber's position on."""
    view = snapshot.find(subscriber.view)
    why = _broken(catalog, view, subscriber)
    if view is None or why is not None:
        raise _ended(subscriber, why or "it is gone")
    since = told_since(snapshot, view)
    if subscriber.position < since:
        raise _ended(subscriber, f"it has another definition since csn {since}")
    reach = covered(snapshot, view)
    if subscriber.position < reach.after:
        raise _ended(subscriber, f"its changes are stored from csn {reach.after} on")
    inside = next(
        (stretch for stretch in coarse_of(snapshot, view) if stretch.strictly_inside(subscriber.position)), None
    )
    if inside is not None:
        raise _ended(subscriber, f"its changes over {inside} are stored as one")
    return view


def told_since(snapshot: Snapshot, view: Relation) -> Csn:
    """From here on the changes that the view's present definition tells are handed out."""
    return began_anew(changes_from(snapshot, view)) or 0


def _broken(catalog: Catalog, view: Relation | None, subscriber: SubscriberRecord) -> str | None:
    if view is None or view.kind is not RelationKind.VIEW:
        return "it is gone"
    if subscriber.warehouse != catalog.identity().warehouse:
        return "the catalog was restored from a backup since"
    if subscriber.folder != view.folder:
        return f"it was replaced by another definition at csn {view.created}"
    if subscriber.schema != view.schema:
        return "its columns are others now"
    return None


def _ended(subscriber: SubscriberRecord, why: str) -> OutOfReach:
    return OutOfReach(
        f"Subscriber '{subscriber.name}' is at csn {subscriber.position} of view '{subscriber.view}', "
        f"and cannot go on from there: {why}.",
        hint=f"Begin anew with all rows at one csn: rollview subscriber resync {subscriber.name}",
        subscriber=subscriber.name,
        view=subscriber.view,
        csn=subscriber.position,
    )
