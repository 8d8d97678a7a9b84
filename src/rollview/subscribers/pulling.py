"""Pull, store, acknowledge.

Law: a batch comes again, the same interval with the same rows, until it is acknowledged. Who stores its csn together
with its rows has every commit exactly once, wherever it is cut off: after it, the stored csn is acknowledged first.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pyarrow as pa

from rollview.catalog import SubscriberRecord
from rollview.core.interval import Csn, Interval
from rollview.publish.workplace import Workplace
from rollview.relations.plans import check_reachable, high_water_mark
from rollview.results import Acknowledged
from rollview.subscribers.batch import ChangeBatch
from rollview.subscribers.changes import find_end, read_changes, read_rows
from rollview.subscribers.history import check_history
from rollview.subscribers.keys import Key, find_key

MOST_ROWS = 10_000
"""A batch ends after the commit with which it has so many rows."""
_TICK = 0.25


def pull(place: Workplace, name: str, wait: float = 0.0, most_rows: int = MOST_ROWS) -> ChangeBatch | None:
    """The next batch, as soon as there is one; None if none comes within so many seconds."""
    give_up = time.monotonic() + wait
    while True:
        batch = next_batch(place, name, most_rows)
        left = give_up - time.monotonic()
        if batch is not None or left <= 0:
            return batch
        time.sleep(min(_TICK, left))


def batches(place: Workplace, name: str, stored: Csn | None, wait: float, most_rows: int) -> Iterator[ChangeBatch]:
    """One after another; each is acknowledged when the next is asked for. ``stored``: acknowledged before the first."""
    subscriber = place.catalog.subscriber(name)
    if stored is not None and not subscriber.full:
        acknowledge(place, subscriber.name, stored)
    while (batch := pull(place, name, wait, most_rows)) is not None:
        yield batch
        batch.ack()


def acknowledge(place: Workplace, name: str, csn: Csn, *, full: bool = False) -> Acknowledged:
    """Everything up to the csn is stored. Idempotent; an earlier csn than the position changes nothing."""
    return acknowledge_as(place, place.catalog.subscriber(name), csn, full=full)


def next_batch(place: Workplace, name: str, most_rows: int) -> ChangeBatch | None:
    """What comes after the position, if something changed; where it ends is recorded before anybody has it."""
    subscriber, snapshot = place.catalog.subscriber(name), place.snapshot()
    view = check_history(place.catalog, snapshot, subscriber)
    at, key = subscriber.position, find_key(snapshot, view)
    if subscriber.full:
        return _batch(place, subscriber, Interval(at, at), read_rows(place, snapshot, view, at), key)
    is_offered = subscriber.offered is not None and subscriber.offered > at
    end = subscriber.offered if is_offered else find_end(place, snapshot, view, at, most_rows)
    with place.catalog.write() as writer:
        if end is None:
            writer.subscribers.skip(subscriber, high_water_mark(snapshot, view))
            return None
        interval = writer.subscribers.offer(subscriber, end)
        if interval.through > high_water_mark(snapshot, view):
            # Another pull was offered it, which saw more changes than there were when this one looked.
            snapshot = writer.snapshot()
            view = snapshot.view(view.name)
    if not interval:
        return None
    return _batch(place, subscriber, interval, read_changes(place, snapshot, view, interval, key), key)


def _batch(place: Workplace, subscriber: SubscriberRecord, interval: Interval, rows: pa.Table, key: Key) -> ChangeBatch:
    def ack(batch: ChangeBatch) -> Csn:
        return acknowledge_as(place, subscriber, batch.through, full=batch.full).position

    about = (subscriber.name, subscriber.view, interval.after, interval.through, not interval)
    return ChangeBatch(*about, rows, key, subscriber.token, ack)


def acknowledge_as(place: Workplace, subscriber: SubscriberRecord, csn: Csn, *, full: bool) -> Acknowledged:
    """By who knows the subscriber as it was: refused if it was begun anew since."""
    snapshot = place.snapshot()
    view = check_history(place.catalog, snapshot, subscriber)
    if csn > subscriber.position:
        check_reachable(snapshot, view, csn)
    with place.catalog.write() as writer:
        before = writer.subscribers.get(subscriber.name)
        position = writer.subscribers.advance(subscriber, csn, full=full)
        moved = position != before.position or writer.subscribers.get(subscriber.name).full != before.full
    return Acknowledged(subscriber.name, position, moved)
