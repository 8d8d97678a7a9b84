"""Between sources and a maintainer: messages in order, and asks put again where an answer cannot be used.

Law: its maintainer hears, per source, every unit once and in order, and an answer after all that it saw. An answer
that saw no prefix of its source's units, or not all that had been heard when it was asked for, is asked for again,
unless the maintainer reads seen sets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from rollview.compensate.inbox import Inbox
from rollview.compensate.maintainer import Answered, AskFor, Heard, Maintainer, Reported, Requirement, Said, Through
from rollview.consistency.bags import Bag
from rollview.consistency.levels import Level


@dataclass(frozen=True, slots=True)
class CourierState:
    inner: Any
    inbox: Inbox
    asks: Mapping[int, tuple[AskFor, int]]
    """Those under way, each with the units of its source that had been heard."""


@dataclass(frozen=True)
class Courier:
    maintainer: Maintainer

    @property
    def promises(self) -> Level:
        return self.maintainer.promises

    @property
    def needs(self) -> frozenset[Requirement]:
        return self.maintainer.needs

    def begin(self, rows: Bag, through: Through, ask: int = 1) -> CourierState:
        return CourierState(self.maintainer.begin(rows, through, ask), Inbox(dict(through)), {})

    def on(self, state: CourierState, event: Heard) -> tuple[CourierState, tuple[Said, ...]]:
        if not isinstance(event, Reported | Answered):
            return self._pass(state, event)
        inbox, ready = state.inbox.take(event)
        state, said = replace(state, inbox=inbox), list[Said]()
        for message in ready:
            state, more = self._hear(state, message)
            said += more
        return state, tuple(said)

    def _hear(self, state: CourierState, message: Reported | Answered) -> tuple[CourierState, tuple[Said, ...]]:
        if isinstance(message, Answered):
            if message.ask not in state.asks:
                # A duplicate, or of a process that is gone.
                return state, ()
            ask, heard = state.asks[message.ask]
            saw_enough = message.seen.is_prefix and message.seen.through >= heard
            if not saw_enough and Requirement.SEEN_SETS not in self.needs:
                return state, (ask,)
            asks = {number: other for number, other in state.asks.items() if number != message.ask}
            state = replace(state, asks=asks)
        return self._pass(state, message)

    def _pass(self, state: CourierState, event: Heard) -> tuple[CourierState, tuple[Said, ...]]:
        inner, said = self.maintainer.on(state.inner, event)
        heard = state.inbox.heard
        new = {one.ask: (one, heard.get(one.source, 0)) for one in said if isinstance(one, AskFor)}
        asks = {**state.asks, **new}
        return replace(state, inner=inner, asks=asks), said
