"""Batches brought to where subscribers want them.

Law: one process at a time delivers to a subscriber. It asks the sink first what that holds, so a batch that arrived
before a crash is acknowledged and not sent again, where the sink can tell. One that fails keeps no other waiting.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress

from rollview.catalog import SubscriberRecord
from rollview.core.faults import reach
from rollview.core.raised import unexpected_error
from rollview.errors import Busy, NotFound, RollviewError, UsageError
from rollview.publish.workplace import Workplace
from rollview.results import Delivered, SubscriberDelivered
from rollview.subscribers.pulling import MOST_ROWS, acknowledge_as, next_batch
from rollview.subscribers.sink import Sink, open_sink


def deliver(
    place: Workplace, names: Sequence[str] = (), seconds: float | None = None, most_rows: int = MOST_ROWS
) -> Delivered:
    """To all who have an address, or to these; each for so many seconds at most."""
    chosen = [place.catalog.subscriber(name) for name in names] or list(addressed(place))
    for one in chosen:
        if one.sink is None:
            raise UsageError(f"Subscriber '{one.name}' has no address: it pulls.", subscriber=one.name)
    return Delivered(tuple(_delivered(place, one, seconds, most_rows) for one in chosen))


def addressed(place: Workplace) -> tuple[SubscriberRecord, ...]:
    return tuple(one for one in place.catalog.subscribers() if one.sink is not None)


def _delivered(
    place: Workplace, subscriber: SubscriberRecord, seconds: float | None, most_rows: int
) -> SubscriberDelivered:
    try:
        done = _deliver(place, subscriber.name, seconds, most_rows)
    except Busy:
        return SubscriberDelivered(subscriber.name, subscriber.position, 0, 0)
    except NotFound:
        # It was removed meanwhile.
        return SubscriberDelivered(subscriber.name, subscriber.position, 0, 0)
    except Exception as error:
        return _failed(place, subscriber, unexpected_error(error))
    return done


def _failed(place: Workplace, subscriber: SubscriberRecord, error: RollviewError) -> SubscriberDelivered:
    if subscriber.problem != error.message:
        # It may have been removed meanwhile.
        with suppress(NotFound), place.catalog.write() as writer:
            writer.subscribers.set_problem(subscriber.name, error.message)
    about = (subscriber.name, subscriber.position, 0, 0)
    return SubscriberDelivered(*about, problem=error.message, retryable=error.retryable)


def _deliver(place: Workplace, name: str, seconds: float | None, most_rows: int) -> SubscriberDelivered:
    end = None if seconds is None else time.monotonic() + seconds
    batches = rows = 0
    with place.catalog.lease(f"subscriber:{name}", wait=0):
        subscriber = place.catalog.subscriber(name)
        assert subscriber.sink is not None
        sink = open_sink(subscriber.name, subscriber.sink)
        try:
            _believe(place, sink, subscriber)
            while (batch := next_batch(place, name, most_rows)) is not None:
                reach("deliver.offered")
                sink.put(batch)
                reach("deliver.put")
                batch.ack()
                reach("deliver.acked")
                batches, rows = batches + 1, rows + batch.rows.num_rows
                if end is not None and time.monotonic() >= end:
                    break
        finally:
            sink.close()
    return SubscriberDelivered(name, place.catalog.subscriber(name).position, batches, rows)


def _believe(place: Workplace, sink: Sink, subscriber: SubscriberRecord) -> None:
    """What the sink holds is acknowledged, as far as it holds more than the catalog knows."""
    held = sink.held(subscriber)
    if held is not None and subscriber.full:
        acknowledge_as(place, subscriber, subscriber.position, full=True)
    if held is not None and held > subscriber.position:
        acknowledge_as(place, subscriber, held, full=False)
