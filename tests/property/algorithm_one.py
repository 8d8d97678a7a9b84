"""The apply process of Beyer et al., *Immediate Propagate Deferred Apply*, in plain Python: Algorithm 1 as it is
printed, two shortened forms of it, and Algorithm 2.

A history is what a database did: transactions write records into the deltas of two views, each stamped with the time at
which the clock was read, which may be before it is inserted; a transaction ends at its commit. The six properties of
section 3 are judged after every apply.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random

VIEWS = ("withdrawals", "deposits")


@dataclass(frozen=True, slots=True)
class Record:
    number: int
    transaction: int
    view: str
    stamp: int
    inserted: int


@dataclass(frozen=True, slots=True)
class History:
    """``commits``: when each transaction committed. ``depends``: pairs of which the second needs the first."""

    records: tuple[Record, ...]
    commits: dict[int, int]
    depends: tuple[tuple[int, int], ...]

    def of(self, view: str) -> Iterator[Record]:
        return (record for record in self.records if record.view == view)


Choose = Callable[[History, str, int, int, int], list[Record]]
"""The records of a view that a roll from t1 to t2 applies, when it begins at ``now``."""


def as_printed(history: History, view: str, t1: int, t2: int, now: int) -> list[Record]:
    found = _found(history, view, now, lambda stamp: t1 < stamp <= t2)
    now = max([now, *(history.commits[x] for x in found)])
    later = {r.transaction for r in history.of(view) if r.stamp > t2 and r.inserted <= now}
    return [r for r in history.of(view) if r.transaction in found - later]


def without_step_2(history: History, view: str, t1: int, t2: int, now: int) -> list[Record]:
    """What was found in step 1 is applied as it is."""
    found = _found(history, view, now, lambda stamp: t1 < stamp <= t2)
    return [r for r in history.of(view) if r.transaction in found and t1 < r.stamp <= t2]


def closed_at_both_ends(history: History, view: str, t1: int, t2: int, now: int) -> list[Record]:
    found = _found(history, view, now, lambda stamp: t1 <= stamp <= t2)
    now = max([now, *(history.commits[x] for x in found)])
    later = {r.transaction for r in history.of(view) if r.stamp > t2 and r.inserted <= now}
    return [r for r in history.of(view) if r.transaction in found - later]


def by_commits(history: History, view: str, t1: int, t2: int, now: int) -> list[Record]:
    """Algorithm 2: the commit's own time, taken with one clock in one step, decides."""
    return [r for r in history.of(view) if t1 < history.commits[r.transaction] <= t2]


def _found(history: History, view: str, now: int, inside: Callable[[int], bool]) -> set[int]:
    """Step 1 reads with locks: it waits for whoever has written there and not committed."""
    while True:
        seen = {r.transaction for r in history.of(view) if inside(r.stamp) and r.inserted <= now}
        waits = max((history.commits[x] for x in seen), default=now)
        if waits <= now:
            return seen
        now = waits


@dataclass(slots=True)
class Judge:
    history: History
    applied: dict[str, Counter[int]] = field(default_factory=lambda: {view: Counter() for view in VIEWS})
    broken: set[int] = field(default_factory=set)

    def look(self, t2: int, *, last: bool) -> None:
        whole = {view: self._whole(view) for view in VIEWS}
        if last and any(self.applied[r.view][r.number] == 0 for r in self.history.records):
            self.broken.add(1)
        if any(count > 1 for counts in self.applied.values() for count in counts.values()):
            self.broken.add(2)
        both = set.intersection(*({r.transaction for r in self.history.of(view)} for view in VIEWS))
        if len({frozenset(whole[view] & both) for view in VIEWS}) > 1:
            self.broken.add(4)
        for first, second in self.history.depends:
            for view in VIEWS:
                if second in whole[view] and first not in whole[view] and self._touches(first, view):
                    self.broken.add(5)
        by_then = {x for x, time in self.history.commits.items() if time <= t2}
        if any(whole[view] != {x for x in by_then if self._touches(x, view)} for view in VIEWS):
            self.broken.add(6)

    def _whole(self, view: str) -> set[int]:
        """The transactions that are in the view; a part of one breaks the third property."""
        found = set()
        for x in self.history.commits:
            numbers = [r.number for r in self.history.of(view) if r.transaction == x]
            there = [self.applied[view][number] > 0 for number in numbers]
            if any(there) and not all(there):
                self.broken.add(3)
            if any(there):
                found.add(x)
        return found

    def _touches(self, x: int, view: str) -> bool:
        return any(r.transaction == x for r in self.history.of(view))


def broken_by(choose: Choose, history: History, rolls: list[tuple[int, int]]) -> set[int]:
    """The properties that fail when both views are rolled to each moment, beginning at the time beside it."""
    judge, before = Judge(history), 0
    for place, (t2, now) in enumerate(rolls):
        for view in VIEWS:
            judge.applied[view].update(r.number for r in choose(history, view, before, t2, now))
        judge.look(t2, last=place == len(rolls) - 1)
        before = t2
    return judge.broken


def random_history(random: Random, *, coarse: int = 1) -> tuple[History, list[tuple[int, int]]]:
    """``coarse``: the clock shows only every so many-th moment."""
    records, commits, begun = [], {}, {}
    for x in range(random.randint(1, 4)):
        start = begun[x] = random.randint(1, 60)
        moment = start
        for _ in range(random.randint(1, 4)):
            moment += random.randint(1, 8)
            inserted = moment + random.choice((0, 0, 0, 12))
            view = random.choice(VIEWS)
            records.append(Record(len(records), x, view, moment // coarse * coarse, inserted))
            moment = inserted
        commits[x] = moment + random.randint(1, 8)
    depends = tuple((a, b) for a in commits for b in commits if commits[a] < commits[b] and random.random() < 0.5)
    moments = sorted(random.sample(range(5, 100), 3))
    rolls = [(t // coarse * coarse, t + random.randint(1, 10)) for t in moments]
    return History(tuple(records), commits, depends), [*rolls, (1000, 1001)]
