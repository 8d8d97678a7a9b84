"""Strobe: Zhuge et al., *The Strobe Algorithms*, section 5.2.

Law: strong for units of one row. It knows no transactions: rows of one unit are updates of their own, so readers may
see the middle of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rollview.compensate import strobing
from rollview.compensate.maintainer import Answered, Heard, Reported, Requirement, Said, Through, counted_in
from rollview.compensate.strobing import StrobeState
from rollview.consistency.bags import Bag
from rollview.consistency.join_view import JoinView
from rollview.consistency.levels import Level


@dataclass(frozen=True)
class Strobe:
    view: JoinView
    promises: Level = Level.STRONG
    needs: frozenset[Requirement] = frozenset((Requirement.KEYS, Requirement.SINGLE_UPDATES))

    def begin(self, rows: Bag, through: Through, ask: int = 1) -> StrobeState:
        return StrobeState(rows, through, ask, {})

    def on(self, state: StrobeState, event: Heard) -> tuple[StrobeState, tuple[Said, ...]]:
        said: list[Said] = []
        if isinstance(event, Reported):
            for place, update in enumerate(event.updates, start=1):
                if update.is_delete:
                    state = strobing.delete(state, update)
                else:
                    state = strobing.insert(self.view, state, (update,), said)
                whole = place == len(event.updates)
                state = replace(state, through=counted_in(state.through, event)) if whole else state
                state = self._settle(state, said, whole)
        elif isinstance(event, Answered):
            state = self._settle(strobing.answered(self.view, state, event, said), said, whole=True)
        return state, tuple(said)

    def _settle(self, state: StrobeState, said: list[Said], whole: bool) -> StrobeState:
        if state.unanswered or not state.actions:
            return state
        return strobing.publish(self.view, state, said, through=state.through if whole else None)
