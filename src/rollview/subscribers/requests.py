"""Who subscribes to what, from where on: add, look, begin anew, remove. No Spark.

Law: a position is taken under the lease that keeps definitions and histories as they are, so that nothing is given up
between choosing it and holding it.
"""

from __future__ import annotations

from typing import Literal

from rollview.catalog import Catalog, Part, Relation, Snapshot, SubscriberRecord
from rollview.core.interval import Csn
from rollview.core.names import same
from rollview.errors import OutOfReach, UsageError
from rollview.publish.workplace import Workplace
from rollview.relations.plans import check_reachable, covered, high_water_mark
from rollview.relations.weak import refuse_csn
from rollview.results import SubscriberState, SubscriberStatus
from rollview.subscribers.batch import ADDED
from rollview.subscribers.history import check_history, told_since
from rollview.subscribers.sink import open_sink

From = Csn | Literal["start", "now"]
_PATIENCE = 30.0


def add(place: Workplace, name: str, view: str, from_: From = "start", sink: str | None = None) -> SubscriberStatus:
    """``start``: all rows at the oldest csn in reach, then changes; a csn: changes after it; ``now``: later changes.

    ``sink``: an address, as ``anchored`` wrote it.
    """
    if sink is not None:
        open_sink(name, sink).close()
    with place.catalog.lease("definitions", wait=_PATIENCE) as lease, place.catalog.write(lease) as writer:
        snapshot = writer.snapshot()
        relation = snapshot.view(view)
        _check_columns(relation)
        refuse_csn(relation, "be sent to a subscriber")
        at = _begin(snapshot, relation, from_)
        warehouse = writer.identity().warehouse
        writer.subscribers.add(name, relation, warehouse, at, full=from_ == "start", sink=sink)
    return status(place.catalog, name)[0]


def resync(place: Workplace, name: str) -> SubscriberStatus:
    """All rows of the view at one csn come next, then changes; what was pulled before counts no more."""
    with place.catalog.lease("definitions", wait=_PATIENCE) as lease, place.catalog.write(lease) as writer:
        view = writer.snapshot().view(writer.subscribers.get(name).view)
        at = view.pins[Part.EXTENT].through
        writer.subscribers.begin_anew(name, view, writer.identity().warehouse, at)
    return status(place.catalog, name)[0]


def remove(place: Workplace, name: str) -> str:
    """It holds nothing back any more. What was delivered stays where it is."""
    with place.catalog.write() as writer:
        found = writer.subscribers.get(name)
        writer.subscribers.remove(found.name)
    return found.name


def status(catalog: Catalog, name: str | None = None) -> tuple[SubscriberStatus, ...]:
    snapshot = catalog.snapshot()
    found = catalog.subscribers() if name is None else (catalog.subscriber(name),)
    return tuple(_status(catalog, snapshot, one) for one in found)


def _status(catalog: Catalog, snapshot: Snapshot, subscriber: SubscriberRecord) -> SubscriberStatus:
    view = snapshot.find(subscriber.view)
    mark = subscriber.position if view is None else high_water_mark(snapshot, view)
    state, problem = _state(subscriber), subscriber.problem
    try:
        check_history(catalog, snapshot, subscriber)
    except OutOfReach as error:
        state, problem = SubscriberState.OUT_OF_REACH, error.message
    return SubscriberStatus(
        name=subscriber.name,
        view=subscriber.view,
        position=subscriber.position,
        high_water_mark=mark,
        behind=max(0, mark - subscriber.position),
        to=subscriber.sink,
        state=state,
        problem=problem,
        added=subscriber.added,
        moved=subscriber.moved,
    )


def _state(subscriber: SubscriberRecord) -> SubscriberState:
    if subscriber.problem is not None:
        return SubscriberState.FAILING
    return SubscriberState.ROWS_FIRST if subscriber.full else SubscriberState.OK


def _begin(snapshot: Snapshot, view: Relation, from_: From) -> Csn:
    since = told_since(snapshot, view)
    if from_ == "start":
        return max(since, covered(snapshot, view).after)
    if from_ == "now":
        return high_water_mark(snapshot, view)
    check_reachable(snapshot, view, from_)
    if from_ < since:
        raise OutOfReach(
            f"View '{view.name}' has another definition since csn {since}: only later changes are handed out.",
            hint=f"Begin at csn {since} or later.",
            csn=from_,
            oldest=since,
        )
    return from_


def _check_columns(view: Relation) -> None:
    taken = next((name for name in view.schema.names if any(same(name, added) for added in ADDED)), None)
    if taken is not None:
        raise UsageError(
            f"View '{view.name}' has a column '{taken}', which every change has beside the view's own.",
            hint="Subscribe to a view that calls the column otherwise.",
            column=taken,
        )
