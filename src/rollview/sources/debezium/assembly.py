"""Events become whole transactions.

Law: a transaction is whole when its end has come and of each captured table as many events as the end tells; until then
it waits, and so does what follows. The ends tell the commit order, and every stream keeps it. The place of each stream
after a transaction is after its last event there, so everything before that place is known.

A statement about a table has its place between transactions: by its stream where they are in it as well, else by the
source's log. One whose place among the rows of its table nobody can tell is a lost position.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from rollview.errors import Corrupt, LostPosition
from rollview.sources.debezium.reached import Places, ReadSoFar
from rollview.sources.debezium.records import Event, LogPlace, Statement, TransactionEnd
from rollview.sources.debezium.statements import TableStatement
from rollview.sources.debezium.streams import Place

_DONE_KEPT = 100
_LEFT_KEPT = 300


@dataclass(frozen=True, slots=True)
class Placed:
    """A record in its stream; ``remote``: the captured table that it is about. A Statement is about none."""

    stream: str
    place: Place
    record: Event | TransactionEnd | TableStatement | Statement
    remote: str | None = None


@dataclass(frozen=True, slots=True)
class Whole:
    """``places``: where the streams go on after it."""

    transaction: str
    events: tuple[Placed, ...]
    places: Places


@dataclass(frozen=True, slots=True)
class Stated:
    """A statement at its place in a stream; ``places``: where the streams go on after it."""

    told: TableStatement
    stream: str
    place: Place
    places: Places


@dataclass(slots=True)
class Assembly:
    """The fields with a name are as in ReadSoFar, of the places that were passed."""

    source: str
    remotes: tuple[str, ...]
    places: Places
    reached: LogPlace | None = None
    done: tuple[str, ...] = ()
    types: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    left: tuple[str, ...] = ()
    _left_later: set[str] = field(default_factory=set)
    _ends: deque[Placed] = field(default_factory=deque)
    _events: dict[str, deque[Placed]] = field(default_factory=dict)
    _statements: deque[Placed] = field(default_factory=deque)
    _forgotten: set[str | None] = field(default_factory=set)

    @classmethod
    def after(cls, source: str, remotes: tuple[str, ...], places: Places, at: ReadSoFar) -> Assembly:
        return cls(source, remotes, places, at.log, at.done, at.types, at.left)

    @property
    def at(self) -> ReadSoFar:
        return ReadSoFar(self.places, self.reached, self.done, self.types, self.left)

    def add(self, placed: Placed) -> None:
        if isinstance(placed.record, TransactionEnd):
            if any(end.stream != placed.stream for end in self._ends):
                raise Corrupt(f"Source '{self.source}' has ends of transactions in two streams.")
            self._ends.append(placed)
        elif isinstance(placed.record, TableStatement):
            self._add_statement(placed, placed.record)
        elif isinstance(placed.record, Statement):
            self._left_later.update(placed.record.left if placed.record.is_met else ())
            if self._pass_over_now(placed) and placed.record.is_met:
                self._leave(placed.record.left)
        else:
            self._events.setdefault(placed.stream, deque()).append(placed)

    def _add_statement(self, placed: Placed, told: TableStatement) -> None:
        if told.mark and told.mark in (*self.done, *(one.mark for one in self.statements)):
            # A connector that was killed writes its last records again.
            self._pass_over_now(placed)
            return
        if told.called in self._left_later or told.called in self.left:
            placed = replace(placed, record=replace(told, was_taken=True))
        self._left_later.update(told.left)
        # RENAME TABLE t TO old, new TO t is a record for each pair: t is another table after it.
        former = next((one for one in reversed(self._statements) if one.stream == placed.stream), None)
        if told.moved and former is not None and _is_of_one(former, placed):
            self._statements.remove(former)
        # Those of several streams are in the order of the log.
        later = (number for number, one in enumerate(self._statements) if _comes_later(one, placed))
        self._statements.insert(next(later, len(self._statements)), placed)

    def _pass_over_now(self, placed: Placed) -> bool:
        """A statement that is nothing to us, unless something before it waits."""
        stream = placed.stream
        if self._events.get(stream) or any(one.stream == stream for one in (*self._ends, *self._statements)):
            return False
        self._pass(placed)
        return True

    def _leave(self, names: Iterable[str]) -> None:
        self.left = tuple(dict.fromkeys((*self.left, *names)))[-_LEFT_KEPT:]

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
                self._go_on_in_another_log(log, end.stream)
            self.reached = log
        return Whole(end.record.transaction, events, self.places)

    def _go_on_in_another_log(self, log: LogPlace, stream: str) -> None:
        """Of another server: a statement may be of the former log, and come before what was taken."""
        for one in self._statements:
            if one.stream != stream and not _is_between(log, _log(one), self.reached):
                raise self._unsure(one)
        self.done = ()

    def _statement(self, events: tuple[Placed, ...] | None) -> Stated | None:
        """The next statement, if it comes before the next transaction."""
        if not self._statements:
            return None
        first = self._statements[0]
        assert isinstance(first.record, TableStatement)
        if not (self._has_nothing_before(first) if events is None else self._comes_before(first, events)):
            return None
        self._statements.popleft()
        self._pass(first)
        if first.record.mark:
            self.done = (*self.done, first.record.mark)[-_DONE_KEPT:]
        return Stated(first.record, first.stream, first.place, self.places)

    def _comes_before(self, statement: Placed, events: tuple[Placed, ...]) -> bool:
        """LostPosition if nobody can tell, and it matters."""
        found = self._is_before(statement, (*events, self._ends[0]))
        if found is not None:
            return found
        if self._is_of_a_new_name(self._ends[0]):
            return True
        if any(one.remote == statement.remote for one in events):
            raise self._unsure(statement)
        return False

    def _unsure(self, statement: Placed) -> LostPosition:
        what = f"nobody can tell which rows of table '{statement.remote}' came before a statement about it"
        return LostPosition(self.source, f"{what}; have the connector copy its tables again")

    def _is_of_a_new_name(self, end: Placed) -> bool:
        """Whether a transaction has rows of a table by the name that it gets by a statement that is still to come."""
        assert isinstance(end.record, TransactionEnd)
        named = next((one for one in self.statements if one.called and _told(end.record.counts, one.called)), None)
        if named is not None and named.was_taken:
            what = f"table '{named.remote}' got another's name, '{named.called}', and nobody tells whose rows are whose"
            raise LostPosition(self.source, f"{what}; have the connector copy its tables again")
        return named is not None

    def _has_nothing_before(self, statement: Placed) -> bool:
        """Whether no transaction that waits can come before a statement. One that gives a table another name may be
        followed by one that gives its name to another table."""
        if isinstance(statement.record, TableStatement) and statement.record.called:
            return False
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
        told = placed.record
        if isinstance(told, TableStatement):
            self._leave(told.left)
            self.types = {**self.types, told.called or told.remote: told.types} if told.types else self.types

    def _pass_over(self, is_left: Callable[[Placed], bool]) -> None:
        for placed in filter(is_left, self._statements):
            self._pass(placed)
        self._statements = deque(one for one in self._statements if not is_left(one))

    def has_rows(self, stream: str) -> bool:
        """Whether there is anything of a stream but statements."""
        return bool(self._events.get(stream)) or any(self._ends_of(stream))

    @property
    def statements(self) -> tuple[TableStatement, ...]:
        """Those that wait."""
        return tuple(one.record for one in self._statements if isinstance(one.record, TableStatement))

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
    return placed.record.transaction if isinstance(placed.record, Event | TransactionEnd) else None


def _is_after(place: LogPlace, reached: LogPlace | None) -> bool:
    return reached is None or (place[0] == reached[0] and place > reached)


def _is_between(log: LogPlace, place: LogPlace | None, reached: LogPlace | None) -> bool:
    """Whether it comes after a place in the log, and was not in the former one: what came before was taken."""
    return place is not None and _is_after(place, log) and (reached is None or not _is_after(place, reached))


def _comes_later(one: Placed, other: Placed) -> bool:
    """By the log, of two streams."""
    place, before = _log(one), _log(other)
    if place is None or before is None or one.stream == other.stream:
        return False
    return _is_after(place, before)


def _is_of_one(one: Placed, other: Placed) -> bool:
    """Whether two records about a table are of one statement, the first of which gave it another name."""
    told = one.record
    assert isinstance(told, TableStatement)
    return bool(told.called and one.remote == other.remote and told.log is not None and told.log == _log(other))


def _later(one: Place | None, other: Place) -> Place:
    return other if one is None or other[0] > one[0] else one
