"""G-Strobe: Zhuge et al., *The Strobe Algorithms*, section 5.4.

Law: strong for global transactions. It publishes when no query is unanswered, all that received transactions depend on
has come, and all their parts are processed. A part that waits for the others holds back whatever follows at its source,
so what a transaction depends on is always before it.

``hold=False`` and ``publish_early=True`` are what must not be done: the paper's holding queue that later updates
overtake, and T-Strobe that holds parts but publishes meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rollview.compensate import strobing
from rollview.compensate.maintainer import Answered, Heard, Reported, Requirement, Said, Through, counted_in
from rollview.compensate.strobing import StrobeState
from rollview.compensate.t_strobe import process_unit
from rollview.consistency.bags import Bag
from rollview.consistency.join_view import JoinView
from rollview.consistency.levels import Level

Waiting = Mapping[str, tuple[Reported, ...]]


@dataclass(frozen=True, slots=True)
class GStrobeState:
    """``waiting``: per source what was received and is not processed, in order."""

    strobe: StrobeState
    waiting: Waiting


@dataclass(frozen=True)
class GStrobe:
    view: JoinView
    hold: bool = True
    publish_early: bool = False
    promises: Level = Level.STRONG
    needs: frozenset[Requirement] = frozenset((Requirement.KEYS, Requirement.GLOBAL_IDS))

    def begin(self, rows: Bag, through: Through, ask: int = 1) -> GStrobeState:
        return GStrobeState(StrobeState(rows, through, ask, {}), {})

    def on(self, state: GStrobeState, event: Heard) -> tuple[GStrobeState, tuple[Said, ...]]:
        said: list[Said] = []
        strobe, waiting = state.strobe, state.waiting
        if isinstance(event, Reported):
            waiting = received(waiting, event)
            while unit := self._whole_unit(waiting):
                waiting = without(waiting, unit)
                for part in unit:
                    strobe = replace(strobe, through=counted_in(strobe.through, part))
                updates = [update for part in unit for update in part.updates]
                strobe = process_unit(self.view, strobe, updates, said)
        elif isinstance(event, Answered):
            strobe = strobing.answered(self.view, strobe, event, said)
        complete = self.publish_early or not any(waiting.values())
        if not strobe.unanswered and strobe.actions and complete:
            through = strobe.through if not any(waiting.values()) else None
            strobe = strobing.publish(self.view, strobe, said, through=through)
        return GStrobeState(strobe, waiting), tuple(said)

    def _whole_unit(self, waiting: Waiting) -> tuple[Reported, ...]:
        if self.hold:
            return next_whole(waiting)
        every = [part for parts in waiting.values() for part in parts]
        return next((found for part in every if (found := _together(part, every))), ())


def received(waiting: Waiting, event: Reported) -> Waiting:
    return {**waiting, event.source: (*waiting.get(event.source, ()), event)}


def next_whole(waiting: Waiting) -> tuple[Reported, ...]:
    """All parts of a transaction that is next at each of its sources; nothing if every one waits."""
    heads = [parts[0] for parts in waiting.values() if parts]
    return next((found for part in heads if (found := _together(part, heads))), ())


def without(waiting: Waiting, unit: tuple[Reported, ...]) -> Waiting:
    return {source: tuple(part for part in parts if part not in unit) for source, parts in waiting.items()}


def _together(part: Reported, among: list[Reported]) -> tuple[Reported, ...]:
    """Its transaction's parts, if all of them are there."""
    if part.transaction is None:
        return (part,)
    found = tuple(other for other in among if other.transaction == part.transaction)
    return found if len(found) == part.parts else ()
