"""Events become whole transactions.

Law: a transaction is whole when its end has come and of each captured table as many events as the end tells; until then
it waits, and so does what follows. The ends tell the commit order, and every stream keeps it. The place of each stream
after a transaction is after its last event there, so everything before that place is known.

A statement about a table has its place between transactions: by its stream where they are in it as well, else by the
source's log. One whose place among the rows of its table nobody can tell proves nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from rollview.errors import Corrupt, LostPosition
from rollview.sources.debezium.records import Event, LogPlace, TransactionEnd
from rollview.sources.debezium.statements import TableStatement
from rollview.sources.debezium.streams import Place

Places = dict[str, Place]


@dataclass(frozen=True, slots=True)
class Placed:
    """A record in its stream; ``remote``: the captured table that it is about."""

    stream: str
    place: Place
    record: Event | TransactionEnd | TableStatement
    remote: str | None = None


@dataclass(frozen=True, slots=True)
class Whole:
    """``places``: where the streams go on after it; ``log``: its last place in the source's log."""

    transaction: str
    events: tuple[Placed, ...]
    places: Places
    log: LogPlace | None = None


@dataclass(frozen=True, slots=True)
class Stated:
    """A statement at its place in a stream; ``places``: where the streams go on after it."""

    told: TableStatement
    stream: str
    place: Place
    places: Places


@dataclass(slots=True)
class Assembly:
    """``reached``: the place in the source's log up to which everything was taken, if that is known."""

    source: str
    remotes: tuple[str, ...]
    places: Places
    reached: LogPlace | None = None
    _ends: deque[Placed] = field(default_factory=deque)
    _events: dict[str, deque[Placed]] = field(default_factory=dict)
    _statements: deque[Placed] = field(default_factory=deque)
    _forgotten: set[str | None] = field(default_factory=set)

    def add(self, placed: Placed) -> None:
        if isinstance(placed.record, TransactionEnd):
            if any(end.stream != placed.stream for end in self._ends):
                raise Corrupt(f"Source '{self.source}' has ends of transactions in two streams.")
            self._ends.append(placed)
        elif isinstance(placed.record, TableStatement):
            # RENAME TABLE t TO old, new TO t is a record for each pair: t is another table after it.
            if placed.record.moved and self._statements and _is_of_one(self._statements[-1], placed):
                self._statements.pop()
            self._statements.append(placed)
        else:
            self._events.setdefault(placed.stream, deque()).append(placed)

    def pass_over(self, stream: str, place: Place) -> None:
        """A statement that is nothing to us, unless something before it waits."""
        waits = self._events.get(stream) or any(one.stream == stream for one in (*self._ends, *self._statements))
        if not waits:
            self.places = {**self.places, stream: _later(self.places.get(stream), place)}

    def forget(self, copied: Placed) -> None:
        """What its stream has before a row of a snapshot is in the snapshot."""
        stream = copied.stream
        self._forgotten.update(_transaction(one) for one in (*self._events.pop(stream, ()), *self._ends_of(stream)))
        self._ends = deque(end for end in self._ends if end.stream != stream)
        self._pass_over(lambda one: one.stream == stream)
        self._pass(copied)

    def begin_after(self, copied: Iterable[Placed]) -> list[Placed]:
        """Go on after a snapshot, and after the last transaction that one of its streams has before it. The events that
        are in it."""
        left: list[Placed] = []
        self.reached = max((log for log in map(_log, copied) if log is not None), default=None)
        past = [number for number, end in enumerate(self._ends, 1) if _transaction(end) in self._forgotten]
        ends = [self._ends.popleft() for _ in range(max(past, default=0))]
        gone = self._forgotten.union(map(_transaction, ends))
        for queue in self._events.values():
            while queue and _transaction(queue[0]) in gone:
                left.append(queue.popleft())
                self._pass(left[-1])
        for end in ends:
            self._pass(end)
            self._pass_over(lambda one, end=end: _is_in_front(one, end))  # type: ignore[misc]
        self._pass_over(lambda one: not _is_later(_log(one), self.reached))
        return left

    def _ends_of(self, stream: str) -> Iterator[Placed]:
        return (end for end in self._ends if end.stream == stream)

    def steps(self) -> Iterator[Whole | Stated]:
        """Transactions, and statements about tables, in the order in which they were done."""
        while True:
            events = self._find(self._ends[0]) if self._ends else None
            if (stated := self._statement(events)) is not None:
                yield stated
            elif events is None:
                return
            else:
                yield self._transaction(events)

    def _transaction(self, events: tuple[Placed, ...]) -> Whole:
        end = self._ends.popleft()
        for placed in (*events, end):
            if self._events.get(placed.stream) and self._events[placed.stream][0] is placed:
                self._events[placed.stream].popleft()
            self._pass(placed)
        assert isinstance(end.record, TransactionEnd)
        log = max((one for one in map(_log, events) if one is not None), default=None)
        if log is not None:
            if not _is_after(log, self.reached):
                # It is the log of another server: what was stated in the former one has no place in it.
                reached = self.reached
                self._pass_over(lambda one: one.stream != end.stream and not _is_between(log, _log(one), reached))
            self.reached = log
        return Whole(end.record.transaction, events, self.places, log)

    def _statement(self, events: tuple[Placed, ...] | None) -> Stated | None:
        """The next statement, if it comes before the next transaction."""
        while self._statements:
            first = self._statements[0]
            assert isinstance(first.record, TableStatement)
            if events is None:
                is_next: bool | None = self._has_nothing_before(first)
            else:
                is_next = self._is_before(first, (*events, self._ends[0]))
                if is_next is None and self._is_of_a_new_name(self._ends[0]):
                    is_next = True
                if is_next is None and not any(one.remote == first.remote for one in events):
                    is_next = False
            if is_next is False:
                return None
            self._statements.popleft()
            self._pass(first)
            if is_next:
                return Stated(first.record, first.stream, first.place, self.places)
        return None

    def _is_of_a_new_name(self, end: Placed) -> bool:
        """Whether a transaction has rows of a table by the name that it gets by a statement that is still to come."""
        assert isinstance(end.record, TransactionEnd)
        told = (one.record for one in self._statements if isinstance(one.record, TableStatement))
        named = next((one for one in told if one.called and _told(end.record.counts, one.called)), None)
        if named is not None and named.was_taken:
            what = f"table '{named.remote}' got another's name, '{named.called}', and nobody tells whose rows are whose"
            raise LostPosition(self.source, f"{what}; have the connector copy its tables again")
        return named is not None

    def _has_nothing_before(self, statement: Placed) -> bool:
        """Whether no transaction that waits can come before a statement."""
        waiting = (*self._ends, *(queue[0] for queue in self._events.values() if queue))
        return len(self.places) == 1 and all(statement.place[0] < one.place[0] for one in waiting)

    def _is_before(self, statement: Placed, others: Iterable[Placed]) -> bool | None:
        """None if nobody can tell."""
        same = [one.place[0] for one in others if one.stream == statement.stream]
        if same:
            return bool(statement.place[0] < min(same))
        place, logs = _log(statement), [one for one in map(_log, others) if one is not None]
        if place is None or not logs or any(one[0] != place[0] for one in logs):
            return None
        if place > min(logs):
            return False
        # What is older than the newest rows that were taken has come too late, or was there before it was read.
        return True if self.reached is not None and _is_after(place, self.reached) else None

    def _pass(self, placed: Placed) -> None:
        self.places = {**self.places, placed.stream: _later(self.places.get(placed.stream), placed.place)}

    def _pass_over(self, is_left: Callable[[Placed], bool]) -> None:
        for placed in filter(is_left, self._statements):
            self._pass(placed)
        self._statements = deque(one for one in self._statements if not is_left(one))

    def has_rows(self, stream: str) -> bool:
        """Whether there is anything of a stream but statements."""
        return bool(self._events.get(stream)) or any(self._ends_of(stream))

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


def _log(placed: Placed) -> LogPlace | None:
    return None if isinstance(placed.record, TransactionEnd) else placed.record.log


def _is_later(place: LogPlace | None, reached: LogPlace | None) -> bool:
    """Also where nobody can tell."""
    return place is None or reached is None or place[0] != reached[0] or place > reached


def _is_in_front(one: Placed, other: Placed) -> bool:
    return bool(one.stream == other.stream and one.place[0] < other.place[0])


def _transaction(placed: Placed) -> str | None:
    return None if isinstance(placed.record, TableStatement) else placed.record.transaction


def _is_after(place: LogPlace, reached: LogPlace | None) -> bool:
    return reached is None or (place[0] == reached[0] and place > reached)


def _is_between(log: LogPlace, place: LogPlace | None, reached: LogPlace | None) -> bool:
    """Whether it comes after a place in the log, and was not in the former one: what came before was taken."""
    return place is not None and _is_after(place, log) and (reached is None or not _is_after(place, reached))


def _is_of_one(one: Placed, other: Placed) -> bool:
    """Whether two records about a table are of one statement, the first of which gave it another name."""
    told = one.record
    assert isinstance(told, TableStatement)
    return bool(told.called and one.remote == other.remote and told.log is not None and told.log == _log(other))


def _later(one: Place | None, other: Place) -> Place:
    return other if one is None or other[0] > one[0] else one
