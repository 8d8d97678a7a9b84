"""A view that is published at the latest when it is due, also where sources are never quiet.

Law: when it is due, what is unanswered is given up, and the units since the last publication go through the complete
algorithm, one published step each; when none is left the quiet one goes on from there. Nothing unanswered is ever kept:
a process that died does the same from the last publication.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from rollview.compensate.maintainer import (
    AskFor,
    Due,
    Heard,
    Maintainer,
    Reported,
    Requirement,
    Said,
    Through,
)
from rollview.consistency.bags import Bag
from rollview.consistency.levels import Level


@dataclass(frozen=True, slots=True)
class DeadlineState:
    """``since``: units that are not in the published rows, in the order they were heard."""

    inner: Any
    hurried: bool
    rows: Bag
    through: Through
    since: tuple[Reported, ...]
    ask: int


@dataclass(frozen=True)
class Deadline:
    quiet: Maintainer
    complete: Maintainer

    @property
    def promises(self) -> Level:
        return self.quiet.promises

    @property
    def needs(self) -> frozenset[Requirement]:
        return self.quiet.needs | self.complete.needs

    def begin(self, rows: Bag, through: Through, ask: int = 1) -> DeadlineState:
        return DeadlineState(self.quiet.begin(rows, through, ask), False, rows, through, (), ask)

    def on(self, state: DeadlineState, event: Heard) -> tuple[DeadlineState, tuple[Said, ...]]:
        if isinstance(event, Due):
            return self._hurry(state) if state.since and not state.hurried else (state, ())
        if isinstance(event, Reported):
            state = replace(state, since=(*state.since, event))
        state, said = self._hear(state, event)
        if state.hurried and not state.since:
            inner = self.quiet.begin(state.rows, state.through, state.ask)
            state = replace(state, inner=inner, hurried=False)
        return state, said

    def _hurry(self, state: DeadlineState) -> tuple[DeadlineState, tuple[Said, ...]]:
        inner = self.complete.begin(state.rows, state.through, state.ask)
        waiting, said = state.since, list[Said]()
        state = replace(state, inner=inner, hurried=True)
        for event in waiting:
            state, more = self._hear(state, event)
            said += more
        return state, tuple(said)

    def _hear(self, state: DeadlineState, event: Heard) -> tuple[DeadlineState, tuple[Said, ...]]:
        machine = self.complete if state.hurried else self.quiet
        inner, said = machine.on(state.inner, event)
        state = replace(state, inner=inner)
        for one in said:
            if isinstance(one, AskFor):
                state = replace(state, ask=max(state.ask, one.ask + 1))
            elif one.through is not None:
                left = tuple(unit for unit in state.since if unit.number > one.through.get(unit.source, 0))
                state = replace(state, rows=one.rows, through=one.through, since=left)
        return state, said
