"""Rows of the catalog that nobody needs any more.

Law: the ledger is needed from the oldest csn on that any table or view can be read at, or that a subscriber is at. What
lies behind all of these can no longer be asked for anyway.
"""

from __future__ import annotations

from collections.abc import Iterable

from rollview.catalog import Catalog, Snapshot, SubscriberRecord
from rollview.core.interval import Csn, Interval
from rollview.relations.plans import covered
from rollview.results import MaintenanceDone

FORGET = "forget"


def plan_forget(snapshot: Snapshot, subscribers: Iterable[SubscriberRecord]) -> Csn:
    """The oldest csn that something needs."""
    read = (covered(snapshot, relation).after for relation in snapshot.relations.values())
    return min([snapshot.moment.csn, *read, *(one.position for one in subscribers)])


def explain_forget(catalog: Catalog, snapshot: Snapshot) -> tuple[MaintenanceDone, ...]:
    before, csn = catalog.horizon().csn, plan_forget(snapshot, catalog.subscribers())
    why = f"the ledger up to csn {csn}: no table, view or subscriber needs it"
    return (MaintenanceDone(None, "ledger", FORGET, why, Interval(before, csn), 0, 0),) if csn > before else ()


def run_forget(catalog: Catalog, wait: float) -> tuple[MaintenanceDone, ...]:
    """A view or subscriber that is being added chooses its csn before anybody can see that it needs it."""
    with catalog.lease("definitions", wait=wait) as lease:
        before = catalog.horizon().csn
        csn = plan_forget(catalog.snapshot(), catalog.subscribers())
        with catalog.write(lease) as writer:
            ledger, changes, steps = writer.forget_before(csn)
    if not (ledger or changes or steps):
        return ()
    why = f"rows behind csn {csn} that nothing needs: {ledger} of the ledger, {changes} of changes, {steps} of steps"
    return (MaintenanceDone(None, "ledger", FORGET, why, Interval(before, max(before, csn)), 0, 0),)
