"""The order of units of work from several sources.

Law: a unit of work never overtakes one of its own source. The parts of a global transaction go together, so they wait
until all have come, and whatever follows one of them at its source waits with it; other sources go on. Where two global
transactions were committed in different orders at two sources, they and what lies between them are one unit of work.
(Zhuge et al., *The Strobe Algorithms*, section 5.4: what a transaction depends on is at its
sources before it, so this order never shows it without.)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from rollview.capture.commit_stream import Arrived

Queues = Mapping[str, Sequence[Arrived]]
Cut = Mapping[str, int]
"""For each source, up to which place of its queue."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What becomes one csn."""

    arrived: tuple[Arrived, ...]
    effective: datetime
    global_id: str | None = None


@dataclass(frozen=True, slots=True)
class Blocked:
    """A source that cannot go on. ``missing``: whose parts have not come, or how many."""

    arrived: Arrived
    global_id: str
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Arranged:
    entries: tuple[Entry, ...]
    taken: Cut
    blocked: Mapping[str, Blocked]


def arrange(queues: Queues, released: frozenset[str], through: datetime | None, by_time: bool) -> Arranged:
    """``released``: global transactions that go without their missing parts. ``through``: nothing that counts as
    committed later is taken; ``by_time``: sources take turns by time, otherwise one after the other."""
    table = _Table(queues, released)
    at: dict[str, int] = dict.fromkeys(queues, 0)
    entries: list[Entry] = []
    while (cut := _next(table, at, through, by_time)) is not None:
        members = [one for source in queues for one in queues[source][at[source] : cut.get(source, at[source])]]
        entries.append(_entry(members, released))
        at |= cut
    heads = {source: queue[at[source]] for source, queue in queues.items() if at[source] < len(queue)}
    return Arranged(tuple(entries), at, dict(_blocked(table, at, heads)))


class _Table:
    """Where the parts of each global transaction are."""

    def __init__(self, queues: Queues, released: frozenset[str]) -> None:
        self.queues = queues
        self.released = released
        self.places: dict[str, list[tuple[str, int]]] = defaultdict(list)
        for source, queue in queues.items():
            for place, one in enumerate(queue):
                for member in self.members(one):
                    self.places[member].append((source, place))

    def members(self, one: Arrived) -> Iterator[str]:
        return (member.global_id for member in one.members if member.global_id not in self.released)

    def closure(self, at: Cut, source: str) -> Cut:
        """The shortest beginnings of the queues that hold the head of ``source`` and all parts of what they hold."""
        cut = {source: at[source] + 1}
        looked = dict(at)
        while any(looked[name] < end for name, end in cut.items()):
            name = next(name for name, end in cut.items() if looked[name] < end)
            for member in self.members(self.queues[name][looked[name]]):
                for other, place in self.places[member]:
                    cut[other] = max(cut.get(other, at[other]), place + 1)
            looked[name] += 1
        return cut

    def missing(self, at: Cut, cut: Cut) -> tuple[str, tuple[str, ...]] | None:
        """The first global transaction of these beginnings that is not whole, and what it lacks."""
        for source, end in cut.items():
            for one in self.queues[source][at[source] : end]:
                for member in one.members:
                    if member.global_id in self.released:
                        continue
                    present = [name for name, _ in self.places[member.global_id]]
                    lacking = tuple(sorted(member.names - set(present)))
                    if not lacking and len(present) < member.count:
                        lacking = (str(member.count - len(present)),)
                    if lacking:
                        return member.global_id, lacking
        return None


def _next(table: _Table, at: Cut, through: datetime | None, by_time: bool) -> Cut | None:
    found: list[tuple[int, datetime, Cut]] = []
    for source, queue in table.queues.items():
        if at[source] == len(queue):
            continue
        head = queue[at[source]]
        if through is not None and head.effective > through:
            continue
        if not head.members and not by_time:
            return {source: at[source] + 1}
        cut = table.closure(at, source)
        last = max(table.queues[name][end - 1].effective for name, end in cut.items())
        if (through is None or last <= through) and table.missing(at, cut) is None:
            found.append((sum(end - at[name] for name, end in cut.items()), last, cut))
    order: Callable[[tuple[int, datetime, Cut]], tuple[datetime, int] | tuple[int, datetime]]
    order = (lambda one: (one[1], one[0])) if by_time else (lambda one: (one[0], one[1]))
    return min(found, key=order)[2] if found else None


def _entry(members: Sequence[Arrived], released: frozenset[str]) -> Entry:
    ids = list(dict.fromkeys(member.global_id for one in members for member in one.members))
    return Entry(tuple(members), max(one.effective for one in members), ", ".join(ids) or None)


def _blocked(table: _Table, at: Cut, heads: Mapping[str, Arrived]) -> Iterable[tuple[str, Blocked]]:
    for source, head in heads.items():
        found = table.missing(at, table.closure(at, source))
        if found is not None:
            yield source, Blocked(head, *found)
