"""T-Strobe: Zhuge et al., *The Strobe Algorithms*, section 5.3.

Law: strong for source-local transactions. A transaction is told whole and is one unit: inserts that it deletes again
are dropped with those deletes, then come its deletes, then one query for all its inserts. Parts of a global transaction
are taken as transactions of their own, which is weak.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from rollview.compensate import strobing
from rollview.compensate.maintainer import Answered, Heard, Reported, Requirement, Said, Through, counted_in
from rollview.compensate.strobing import StrobeState
from rollview.consistency.bags import Bag, Row
from rollview.consistency.history import Update
from rollview.consistency.join_view import JoinView
from rollview.consistency.levels import Level


@dataclass(frozen=True)
class TStrobe:
    view: JoinView
    promises: Level = Level.STRONG
    needs: frozenset[Requirement] = frozenset((Requirement.KEYS,))

    def begin(self, rows: Bag, through: Through, ask: int = 1) -> StrobeState:
        return StrobeState(rows, through, ask, {})

    def on(self, state: StrobeState, event: Heard) -> tuple[StrobeState, tuple[Said, ...]]:
        said: list[Said] = []
        if isinstance(event, Reported):
            state = replace(state, through=counted_in(state.through, event))
            state = process_unit(self.view, state, event.updates, said)
        elif isinstance(event, Answered):
            state = strobing.answered(self.view, state, event, said)
        if not state.unanswered and state.actions:
            state = strobing.publish(self.view, state, said, through=state.through)
        return state, tuple(said)


def process_unit(view: JoinView, state: StrobeState, updates: Iterable[Update], said: list[Said]) -> StrobeState:
    left = without_pairs(view, updates)
    for update in left:
        if update.is_delete:
            state = strobing.delete(state, update)
    return strobing.insert(view, state, [update for update in left if not update.is_delete], said)


def without_pairs(view: JoinView, updates: Iterable[Update]) -> list[Update]:
    """The unit without inserts of a key that it deletes again, and without those deletes."""
    left: dict[int, Update] = {}
    inserts: dict[tuple[str, Row], list[int]] = {}
    for place, update in enumerate(updates):
        same = inserts.setdefault(_key(view, update), [])
        if update.is_delete and same:
            del left[same.pop()]
            continue
        left[place] = update
        if not update.is_delete:
            same.append(place)
    return list(left.values())


def _key(view: JoinView, update: Update) -> tuple[str, Row]:
    one = view.of_table(update.table)[0]
    return update.table, tuple(update.row[one.columns.index(name)] for name in one.key)
