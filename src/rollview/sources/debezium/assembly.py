"""Events become whole transactions.

Law: a transaction is whole when its end has come and of each captured table as many events as the end tells; until then
it waits, and so does what follows. The ends tell the commit order, and every stream keeps it. The place of each stream
after a transaction is after its last event there, so everything before that place is known.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from rollview.errors import Corrupt, LostPosition
from rollview.sources.debezium.records import Event, TransactionEnd
from rollview.sources.debezium.streams import Place

Places = dict[str, Place]


@dataclass(frozen=True, slots=True)
class Placed:
    """A record in its stream; ``remote``: the captured table that an event is about."""

    stream: str
    place: Place
    record: Event | TransactionEnd
    remote: str | None = None


@dataclass(frozen=True, slots=True)
class Whole:
    """``places``: where the streams go on after it."""

    transaction: str
    events: tuple[Placed, ...]
    places: Places


@dataclass(slots=True)
class Assembly:
    source: str
    remotes: tuple[str, ...]
    places: Places
    _ends: deque[Placed] = field(default_factory=deque)
    _events: dict[str, deque[Placed]] = field(default_factory=dict)

    def add(self, placed: Placed) -> None:
        if isinstance(placed.record, TransactionEnd):
            if any(end.stream != placed.stream for end in self._ends):
                raise Corrupt(f"Source '{self.source}' has ends of transactions in two streams.")
            self._ends.append(placed)
        else:
            self._events.setdefault(placed.stream, deque()).append(placed)

    def whole(self) -> Iterator[Whole]:
        while self._ends and (events := self._find(self._ends[0])) is not None:
            end = self._ends.popleft()
            for placed in (*events, end):
                if self._events.get(placed.stream) and self._events[placed.stream][0] is placed:
                    self._events[placed.stream].popleft()
                self.places = {**self.places, placed.stream: _later(self.places.get(placed.stream), placed.place)}
            assert isinstance(end.record, TransactionEnd)
            yield Whole(end.record.transaction, events, self.places)

    @property
    def waits(self) -> bool:
        return bool(self._ends) or any(self._events.values())

    @property
    def oldest(self) -> tuple[str, datetime | None] | None:
        """The transaction that has waited for the longest, and when its first event was; None if its end came alone."""
        events = [queue[0].record for queue in self._events.values() if queue]
        times = [(event.time, event.transaction or "") for event in events if isinstance(event, Event)]
        if times:
            time, transaction = min(times)
            return transaction, time
        ends = [end.record for end in self._ends]
        return next(((end.transaction, None) for end in ends if isinstance(end, TransactionEnd)), None)

    def _find(self, end: Placed) -> tuple[Placed, ...] | None:
        """The events of the transaction, if all are there."""
        assert isinstance(end.record, TransactionEnd)
        wanted = {remote: _told(end.record.counts, remote) for remote in self.remotes}
        found: list[Placed] = []
        for queue in self._events.values():
            found += self._leading(queue, end.record.transaction)
        counts = {remote: sum(one.remote == remote for one in found) for remote in self.remotes}
        if any(counts[remote] < count for remote, count in wanted.items()):
            return None
        if counts != wanted:
            raise LostPosition(
                self.source, f"transaction {end.record.transaction} has events that its end does not tell"
            )
        return tuple(found)

    def _leading(self, queue: Iterable[Placed], transaction: str) -> Iterator[Placed]:
        for placed in queue:
            assert isinstance(placed.record, Event)
            if placed.record.transaction != transaction:
                return
            yield placed


def _told(counts: Mapping[str, int], remote: str) -> int:
    return sum(count for name, count in counts.items() if name == remote or name.endswith(f".{remote}"))


def _later(one: Place | None, other: Place) -> Place:
    return other if one is None or other[0] > one[0] else one
