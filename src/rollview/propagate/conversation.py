"""One machine of ``compensate`` over the units that it has to publish, and sources that go on meanwhile.

Law: the machine hears units in the order of csns, and of each source an answer after all that it saw and before what it
did not. A publication counts only if what it reflects is all units up to a csn and none after. One that waits for quiet
sources hears of later units as they come, as in the papers: first of those with csns, then of those that sources have
committed since. When nothing is unanswered the latter get csns as well, and the newest of these is what it publishes.
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rollview.compensate.courier import Courier
from rollview.compensate.maintainer import AskFor, Due, Heard, Publish, Reported
from rollview.consistency.bags import EMPTY, Bag, minus, plus
from rollview.consistency.history import Update
from rollview.core.faults import reach
from rollview.core.interval import Csn
from rollview.errors import Retryable
from rollview.propagate.messages import CapturedUnit, SourceMessages

_TRIES = 20
_PAUSE = 0.05
MOST_ROUNDS = 50
"""So many answers may show units that are new: who is not quiet then is given up for now."""

Vector = frozenset[tuple[str, int]]
ShownRows = Callable[[Sequence[Update]], Bag]
"""Of the rows that the view shows at its start, those that have the key of a row that changes."""


def no_rows(updates: Sequence[Update]) -> Bag:
    return EMPTY


@dataclass(slots=True)
class Conversation:
    """``wanted``: what is to be published at least. ``quiet``: the machine publishes when nothing is unanswered, so it
    hears of later units only when an answer shows them; ``goes_on``: it may publish those too. ``due``: it has to be
    hurried over them. ``shown``: the rows that they can take away, of those that the machine does not know."""

    machine: Courier
    messages: SourceMessages
    wanted: tuple[CapturedUnit, ...]
    quiet: bool
    due: bool
    goes_on: bool = False
    shown: ShownRows = no_rows
    published: dict[Csn, Bag] = field(default_factory=dict)
    """By csn, how the view's rows changed since the csn before it."""
    csns: list[Csn] = field(default_factory=list)
    """Of what was heard and can be published."""
    _known: Bag = field(default_factory=dict)
    _shown: Bag = field(default_factory=dict)
    _state: Any = None
    _heard: dict[str, int] = field(default_factory=dict)
    _csns: dict[Vector, Csn] = field(default_factory=dict)
    _asks: list[AskFor] = field(default_factory=list)
    _tries: dict[int, int] = field(default_factory=dict)
    _rest: deque[CapturedUnit] = field(default_factory=deque)
    """Units with csns that the machine has not heard of."""
    _later: dict[str, deque[Reported]] = field(default_factory=lambda: defaultdict(deque))
    """The same of units beyond the ledger, by source."""
    _more: list[Update] = field(default_factory=list)
    """Updates of units that came after those that are wanted."""
    _is_beyond: bool = False
    """Whether units beyond the ledger were heard: until then what has no csn is a part of a unit."""
    _rounds: int = 0
    _ahead: Bag | None = None
    """The view's rows after all that was heard, the last of which has no csn yet."""

    @property
    def is_done(self) -> bool:
        return not self.wanted or self._ahead is not None or any(csn >= self.wanted[-1].csn for csn in self.published)

    def run(self, known: Bag) -> Retryable | None:
        """Until all is published; else why not."""
        self._heard = dict.fromkeys(self.messages.join.view.sources, 0)
        self._known, self._shown, self._state = known, known, self.machine.begin(known, dict(self._heard))
        self._rest = deque(self.messages.captured[len(self.wanted) :])
        try:
            self._feed(self.wanted)
            if not self.quiet:
                self._feed_rest()
            while not self.is_done:
                self._answer()
            if self._ahead is not None:
                self._take_ahead(self._ahead)
        except Retryable as problem:
            return problem
        return None

    def _feed(self, units: Iterable[CapturedUnit]) -> None:
        for unit in units:
            # Before the machine hears the last part it cannot publish the whole.
            vector = self._heard | {part.source: part.number for part in unit.parts}
            self._csns[frozenset(vector.items())] = unit.csn
            self.csns.append(unit.csn)
            for part in unit.parts:
                self._hear(part)

    def _feed_rest(self) -> None:
        while self._rest:
            self._feed((self._rest.popleft(),))

    def _answer(self) -> None:
        """All that is asked of one source, at once."""
        source = self._asks[0].source
        asks = [ask for ask in self._asks if ask.source == source]
        self._asks = [ask for ask in self._asks if ask.source != source]
        for ask in asks:
            self._count(ask)
        units, answers = self.messages.answers(asks, self._heard[source])
        reach("ask.answered")
        self._later[source] += units
        through = max(answer.seen.through for answer in answers)
        if not self.quiet:
            self._hear_later(source, None)
        elif through > self._heard[source]:
            if self.due:
                self._hurry()
                return
            self._hear_more(source, through)
        for answer in answers:
            self._hear(answer)

    def _count(self, ask: AskFor) -> None:
        """An ask that is put again may meet a commit that is logged and cannot be seen yet."""
        tried = self._tries[ask.ask] = self._tries.get(ask.ask, 0) + 1
        if tried > _TRIES:
            raise Retryable(
                f"Source '{ask.source}' has not shown all that it has committed.", hint="The next refresh asks again."
            )
        if tried > 1:
            time.sleep(_PAUSE)

    def _hear_more(self, source: str, through: int) -> None:
        """An answer saw later units: they come before it, and so do those with smaller csns."""
        self._rounds += 1
        if not self.goes_on or self._rounds > MOST_ROUNDS:
            raise Retryable(
                "The sources were not quiet: an answer shows commits that come after what is to be published.",
                hint="The next refresh asks again; 'rollview.publish_within' says how long it may wait.",
            )
        while self._heard[source] < through and self._rest:
            unit = self._rest.popleft()
            self._more += [update for part in unit.parts for update in part.updates]
            self._feed((unit,))
        self._hear_later(source, through)

    def _hear_later(self, source: str, through: int | None) -> None:
        later = self._later[source]
        while later and (through is None or later[0].number <= through):
            unit = later.popleft()
            self._more += unit.updates
            self._is_beyond = True
            self._hear(unit)

    def _hurry(self) -> None:
        """An answer saw units that the view is not to show yet."""
        self.quiet = False
        self._feed_rest()
        for source in [*self._later]:
            self._hear_later(source, None)
        # What is unanswered is given up.
        self._asks = []
        self._hear(Due())

    def _hear(self, event: Heard) -> None:
        self._state, said = self.machine.on(self._state, event)
        if isinstance(event, Reported):
            self._heard[event.source] = event.number
        for one in said:
            if isinstance(one, AskFor):
                self._asks.append(one)
            else:
                self._take(one)

    def _take(self, told: Publish) -> None:
        """Versions that reflect a part of a unit are nobody's business, nor are units that are not to be published."""
        if told.through is None or not self.wanted:
            return
        csn, last = self._csns.get(frozenset(told.through.items())), self.wanted[-1].csn
        if csn is not None and csn <= last:
            # What is told again of the same units is the middle of the next one.
            if csn not in self.published:
                self._publish(csn, told.rows)
        elif self.quiet and told.through == self._heard and not self.is_done:
            if csn is not None:
                self._publish(csn, told.rows, self._taken_away())
            elif self._is_beyond:
                self._ahead = told.rows

    def _take_ahead(self, rows: Bag) -> None:
        csn = self.messages.take(self._heard)
        self.csns.append(csn)
        self._publish(csn, rows, self._taken_away())

    def _publish(self, csn: Csn, rows: Bag, gone: Bag = EMPTY) -> None:
        self.published[csn] = minus(rows, plus(self._shown, gone))
        self._shown = rows

    def _taken_away(self) -> Bag:
        """Rows of the view that only units after those that are wanted delete: the machine does not know of them."""
        found = self.shown(self._more)
        unknown = {row: count for row, count in found.items() if row not in self._known}
        gone = [(update.table, update.row) for update in self._more if update.is_delete]
        return minus(unknown, self.messages.join.view.key_deletes(unknown, gone))
