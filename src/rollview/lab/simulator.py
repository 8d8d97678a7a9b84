"""Sources, channels and a warehouse in one process, one event at a time.

Law: an event is a commit, an answer, a delivery, a deadline or a crash; each is atomic. Messages of one source come in
the order in which it sent them, unless the channels are made unruly; nothing orders messages of two sources.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from rollview.compensate.maintainer import Answered, AskFor, Due, Maintainer, Publish, Reported, Said, Seen
from rollview.consistency.bags import Bag, minus, plus, shown
from rollview.consistency.history import History, HistoryUnit, PublishedVersion
from rollview.consistency.join_view import JoinView, Partial, join

GlobalUnit = tuple[HistoryUnit, ...]
"""A transaction: one part per source that it changes."""


@dataclass(frozen=True, slots=True)
class Channels:
    """How messages travel. ``apart``: answers and units on two channels. ``unruly``: out of order and twice.
    ``snapshots``: answers from older snapshots, and from such that miss a unit that others do not depend on."""

    apart: bool = False
    unruly: bool = False
    snapshots: bool = False


@dataclass(frozen=True, slots=True)
class TraceLine:
    """One event, in words: ``message`` is the one that it sent or heard, ``answers`` the one that it answers."""

    kind: str
    source: str
    text: str
    message: int | None = None
    answers: int | None = None


@dataclass
class SimulatedSource:
    """Its tables at every number of units."""

    name: str
    versions: list[Mapping[str, Bag]]
    units: list[HistoryUnit] = field(default_factory=list)

    @property
    def number(self) -> int:
        return len(self.units)

    def commit(self, unit: HistoryUnit) -> None:
        tables = {table: plus(rows, unit.delta(table)) for table, rows in self.versions[-1].items()}
        self.units.append(unit)
        self.versions.append(tables)

    def snapshot(self, seen: Seen) -> Mapping[str, Bag]:
        tables = self.versions[seen.through]
        for number in seen.missing:
            unit = self.units[number - 1]
            tables = {table: minus(rows, unit.delta(table)) for table, rows in tables.items()}
        return tables


class Simulation:
    """``transactions`` are committed in this order."""

    def __init__(
        self,
        view: JoinView,
        initial: Mapping[str, Bag],
        transactions: Sequence[GlobalUnit],
        maintainer: Maintainer,
        channels: Channels | None = None,
    ) -> None:
        self.view = view
        self.initial = initial
        self.transactions = tuple(transactions)
        self.maintainer = maintainer
        self.channels = channels or Channels()
        names = dict.fromkeys((*view.sources, *(part.source for one in transactions for part in one)))
        homes = {one.table: one.source for one in view.occurrences}
        self.sources = {
            name: SimulatedSource(name, [{t: initial.get(t, {}) for t, home in homes.items() if home == name}])
            for name in names
        }
        self.committed = 0
        self.asks_sent = 0
        self.asks: dict[str, deque[tuple[int, AskFor]]] = {name: deque() for name in names}
        self.mail: dict[tuple[str, str], deque[tuple[int, Reported | Answered]]] = {}
        self.trace: list[TraceLine] = []
        self.heard: list[Reported] = []
        self._messages = 0
        self._next_ask = 1
        nothing = dict.fromkeys(names, 0)
        first = view.evaluate({table: rows for one in self.sources.values() for table, rows in one.versions[0].items()})
        self.versions = [PublishedVersion(first, nothing)]
        self.durable = self.versions[0]
        self.state: Any = maintainer.begin(first, nothing)

    # What can happen

    def commit(self) -> None:
        """The next transaction, at all of its sources at once; each reports its own part."""
        parts = self.transactions[self.committed]
        self.committed += 1
        for part in parts:
            source = self.sources[part.source]
            source.commit(part)
            told = Reported(part.source, source.number, part.updates, part.transaction, len(parts))
            number = self._send(part.source, "units", told)
            said = ", ".join(map(str, part.updates))
            self._note("commit", part.source, f"{said}{_of(part)}", number)

    def answer(self, source: str, seen: Seen | None = None) -> None:
        """The source evaluates the ask that has waited longest, by default on what it has now."""
        asked, ask = self.asks[source].popleft()
        here = self.sources[source]
        seen = seen or Seen(here.number)
        tables = here.snapshot(seen)
        partials = tuple(self._joined(*one, tables) for one in zip(ask.partials, ask.wanted, strict=True))
        number = self._send(source, "answers", Answered(source, ask.ask, partials, seen))
        self._note("answer", source, f"A{ask.ask} = {_rows(partials)}", number, asked)

    def deliver(self, source: str, channel: str = "units", place: int = 0, *, keep: bool = False) -> None:
        """The warehouse hears a message: the oldest one, unless ``place`` says which. ``keep``: it comes again."""
        box = self.mail[source, channel if self.channels.apart else "units"]
        number, message = box[place]
        if not keep:
            del box[place]
        if isinstance(message, Reported) and message not in self.heard:
            self.heard.append(message)
        text = f"U of {source}" if isinstance(message, Reported) else f"A{message.ask}"
        self._note("hear", source, text, number)
        self._hear(message)

    def due(self) -> None:
        self._note("due", "", "the view is due")
        self._hear(Due())

    def crash(self) -> None:
        """All that is not published is forgotten; captured units since then are heard again."""
        self._note("crash", "", "the warehouse forgets all that is not published")
        through = self.durable.through
        assert isinstance(through, Mapping)
        self.state = self.maintainer.begin(self.durable.rows, through, self._next_ask)
        for event in [event for event in self.heard if event.number > through.get(event.source, 0)]:
            self._hear(event)

    # Until it comes to rest

    def choices(self) -> list[tuple[str, ...]]:
        """All that can happen next, in a fixed order."""
        found: list[tuple[str, ...]] = [("commit",)] if self.committed < len(self.transactions) else []
        found += [("answer", source) for source, waiting in self.asks.items() if waiting]
        return found + [("deliver", *box) for box, waiting in sorted(self.mail.items()) if waiting]

    @property
    def is_quiet(self) -> bool:
        return not any(self.asks.values()) and not any(self.mail.values())

    def run(self, random: Random, *, one_by_one: bool = False, crashes: int = 0, dues: int = 0) -> None:
        """Random events until nothing is left. ``one_by_one``: sources wait until the warehouse is quiet."""
        while choices := self.choices():
            if one_by_one and not self.is_quiet:
                choices = [choice for choice in choices if choice[0] != "commit"]
            if crashes and random.random() < 0.1:
                crashes -= 1
                self.crash()
                continue
            if dues and random.random() < 0.1:
                dues -= 1
                self.due()
                continue
            # Commits are likelier than the rest, so that much is under way at once.
            self._do(random, random.choices(choices, [3 if one[0] == "commit" else 1 for one in choices])[0])

    def _do(self, random: Random, choice: tuple[str, ...]) -> None:
        if choice[0] == "commit":
            self.commit()
        elif choice[0] == "answer":
            self.answer(choice[1], self._seen(random, choice[1]))
        else:
            box = self.mail[choice[1], choice[2]]
            unruly = self.channels.unruly
            place = random.randrange(len(box)) if unruly else 0
            self.deliver(choice[1], choice[2], place, keep=unruly and random.random() < 0.2)

    def _seen(self, random: Random, source: str) -> Seen:
        here = self.sources[source]
        if not self.channels.snapshots:
            return Seen(here.number)
        through = random.randint(max(here.number - 2, 0), here.number)
        alone = [number for number in range(1, through + 1) if _stands_alone(here.units, number, through, self.view)]
        missing = frozenset(random.sample(alone, 1)) if alone and random.random() < 0.5 else frozenset()
        return Seen(through, missing)

    def history(self) -> History:
        units = tuple(part for one in self.transactions[: self.committed] for part in one)
        return History(self.view, self.initial, units, tuple(self.versions), at_rest=not self.choices())

    # Inside

    def _hear(self, event: Any) -> None:
        self.state, said = self.maintainer.on(self.state, event)
        for one in said:
            self._say(one)

    def _say(self, one: Said) -> None:
        if isinstance(one, AskFor):
            self.asks_sent += 1
            self._next_ask = max(self._next_ask, one.ask + 1)
            self._messages += 1
            self.asks[one.source].append((self._messages, one))
            text = f"Q{one.ask}: " + " + ".join(
                f"{shown(partial.rows)} ⋈ {' ⋈ '.join(names)}"
                for partial, names in zip(one.partials, one.wanted, strict=True)
            )
            self._note("ask", one.source, text, self._messages)
        else:
            self._publish(one)

    def _publish(self, one: Publish) -> None:
        version = PublishedVersion(one.rows, one.through)
        self.versions.append(version)
        if one.through is not None:
            self.durable = version
        self._note("publish", "", f"V = {shown(one.rows)}")

    def _send(self, source: str, channel: str, message: Reported | Answered) -> int:
        self._messages += 1
        box = (source, channel if self.channels.apart else "units")
        self.mail.setdefault(box, deque()).append((self._messages, message))
        return self._messages

    def _joined(self, partial: Partial, wanted: Iterable[str], tables: Mapping[str, Bag]) -> Partial:
        for name in wanted:
            partial = join(partial, self.view.partial(name, tables[self.view.named[name].table]))
        return partial

    def _note(self, kind: str, source: str, text: str, message: int | None = None, answers: int | None = None) -> None:
        self.trace.append(TraceLine(kind, source, text, message, answers))


def _of(part: HistoryUnit) -> str:
    return f" of {part.transaction}" if part.transaction is not None else ""


def _rows(partials: Iterable[Partial]) -> str:
    return " + ".join(shown(partial.rows) for partial in partials)


def _stands_alone(units: Sequence[HistoryUnit], number: int, through: int, view: JoinView) -> bool:
    """Whether no unit behind it, up to ``through``, touches a key that it touches."""
    own = _touched(units[number - 1], view)
    return not any(own & _touched(unit, view) for unit in units[number:through])


def _touched(unit: HistoryUnit, view: JoinView) -> set[tuple[Any, ...]]:
    found = set()
    for update in unit.updates:
        one = view.of_table(update.table)[0]
        found.add((update.table, *(update.row[one.columns.index(name)] for name in one.key)))
    return found
