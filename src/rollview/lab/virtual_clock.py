"""A virtual clock: threads, one queue per host, and locks. No time passes but the one that is counted.

Law: a host serves one request at a time, in the order in which requests come; what travels keeps nobody waiting but the
one who asked. Transactions begin in their order. The same transactions give the same times, to the last digit.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class HostRequest:
    """So many milliseconds of a host, then so many on the way back."""

    host: str
    service: float
    travel: float = 0.0


@dataclass(frozen=True, slots=True)
class InTurn:
    """Go on when all transactions before this one have ended: strict commit order."""


@dataclass(frozen=True, slots=True)
class TableLock:
    """Held until the transaction ends; several may hold it unless one of them is exclusive."""

    table: int
    exclusive: bool


@dataclass(frozen=True, slots=True)
class Opened:
    """From here on later transactions may begin beside this one, which began alone."""


Wish = HostRequest | InTurn | TableLock | Opened
Steps = Generator[Wish, float, None]
"""What a transaction asks for, one after another; it is told the time at which it has it."""


@dataclass(frozen=True, slots=True)
class TimedTransaction:
    """``at``: when it can begin. ``alone``: not before all that run have ended, and none after it before it says so."""

    steps: Callable[[], Steps]
    at: float = 0.0
    alone: bool = False


@dataclass(slots=True)
class ClockRun:
    """When each transaction began and ended, and how many were begun again."""

    began: dict[int, float] = field(default_factory=dict)
    ended: dict[int, float] = field(default_factory=dict)
    restarts: int = 0

    @property
    def total(self) -> float:
        return max(self.ended.values())

    @property
    def mean(self) -> float:
        return sum(self.ended[one] - self.began[one] for one in self.ended) / len(self.ended)


def simulate(transactions: Sequence[TimedTransaction], threads: int, hand_over: float = 0.0) -> ClockRun:
    """``hand_over``: what it takes to give a transaction to a thread."""
    return _Clock(transactions, threads, hand_over).run()


@dataclass(slots=True)
class _Clock:
    transactions: Sequence[TimedTransaction]
    threads: int
    hand_over: float
    done: ClockRun = field(default_factory=ClockRun)
    free: dict[str, float] = field(default_factory=dict)
    queue: list[tuple[float, int, int]] = field(default_factory=list)
    """Time, how many came before, and the transaction that goes on then."""
    came: int = 0
    next: int = 0
    closed_by: int | None = None
    running: dict[int, Steps] = field(default_factory=dict)
    started: set[int] = field(default_factory=set)
    in_turn: dict[int, float] = field(default_factory=dict)
    locks: dict[int, dict[int, bool]] = field(default_factory=dict)
    """By table: who holds it, and whether exclusively."""
    waiting: dict[int, TableLock] = field(default_factory=dict)
    """In the order in which they began to wait."""

    def run(self) -> ClockRun:
        self._begin(0.0)
        while self.queue:
            now, _, one = heapq.heappop(self.queue)
            self._go_on(one, now)
        return self.done

    def _begin(self, now: float) -> None:
        while self.next < len(self.transactions) and len(self.running) < self.threads and self.closed_by is None:
            transaction = self.transactions[self.next]
            if transaction.alone and self.running:
                return
            one, self.next = self.next, self.next + 1
            self.closed_by = one if transaction.alone else None
            self.running[one] = transaction.steps()
            began = self.done.began[one] = max(now, transaction.at)
            self._at(began + self.hand_over, one)

    def _at(self, time: float, one: int) -> None:
        self.came += 1
        heapq.heappush(self.queue, (time, self.came, one))

    def _go_on(self, one: int, now: float) -> None:
        steps = self.running[one]
        try:
            wish = steps.send(now) if one in self.started else next(steps)
        except StopIteration:
            self._end(one, now)
            return
        self.started.add(one)
        self._grant(one, wish, now)

    def _grant(self, one: int, wish: Wish, now: float) -> None:
        match wish:
            case HostRequest(host, service, travel):
                served = max(now, self.free.get(host, 0.0)) + service
                self.free[host] = served
                self._at(served + travel, one)
            case InTurn():
                if any(other < one for other in self.running):
                    self.in_turn[one] = now
                else:
                    self._at(now, one)
            case Opened():
                self.closed_by = None
                self._at(now, one)
                self._begin(now)
            case TableLock():
                self.waiting[one] = wish
                self._lock(now)
                self._resolve(one, now)

    def _end(self, one: int, now: float) -> None:
        del self.running[one]
        self.done.ended[one] = now
        self._release(one, now)
        first = min(self.running, default=None)
        if first is not None and self.in_turn.pop(first, None) is not None:
            self._at(now, first)
        self._begin(now)

    def _release(self, one: int, now: float) -> None:
        for holders in self.locks.values():
            holders.pop(one, None)
        self._lock(now)

    def _lock(self, now: float) -> None:
        """Give locks to those who wait, first come first served."""
        for one, wish in list(self.waiting.items()):
            if not self._blockers(one, wish):
                self.locks.setdefault(wish.table, {})[one] = wish.exclusive
                del self.waiting[one]
                self._at(now, one)

    def _blockers(self, one: int, wish: TableLock) -> set[int]:
        holders = self.locks.get(wish.table, {})
        held = {other for other, exclusive in holders.items() if other != one and (exclusive or wish.exclusive)}
        earlier = set[int]()
        for other, theirs in self.waiting.items():
            if other == one:
                break
            if theirs.table == wish.table and (theirs.exclusive or wish.exclusive):
                earlier.add(other)
        return held | earlier

    def _resolve(self, one: int, now: float) -> None:
        """As long as it waits for somebody who waits for it, the youngest of the circle begins again."""
        while circle := self._circle(one, one, set()):
            victim = max(circle)
            del self.waiting[victim]
            self.running[victim].close()
            self.running[victim] = self.transactions[victim].steps()
            self.started.discard(victim)
            self.done.restarts += 1
            self._at(now, victim)
            self._release(victim, now)

    def _circle(self, one: int, here: int, seen: set[int]) -> list[int]:
        """Those on a way from ``here`` to ``one``, each waiting for the next; empty if there is none."""
        wish = self.waiting.get(here)
        for other in sorted(self._blockers(here, wish)) if wish is not None else ():
            if other == one:
                return [here]
            if other not in seen:
                seen.add(other)
                if found := self._circle(one, other, seen):
                    return [here, *found]
        return []
