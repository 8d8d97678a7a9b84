"""C-Strobe and C-TStrobe: Zhuge et al., *The Strobe Algorithms*, section 6.

Law: updates are processed one after another, and readers see the view after each (C-Strobe) or after each transaction
(C-TStrobe). For an insert, every answer joins Δ, and every delete received since spawns Q⟨delete⟩, recursively: one
table fewer each time, so it ends. Then rows of later inserts leave Δ, unless that very row was deleted in between.

Δ carries every column of every table, and rows are compared whole; by key alone, or with shown columns alone, it is
wrong. ``grouped`` asks once for all deletes of one table: at most Σ (n−1)!/(n−1−k)! for k = 1…n−2 compensating queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from rollview.compensate import evaluation
from rollview.compensate.evaluation import VIEW, RunningQuery, SignedTerm
from rollview.compensate.maintainer import (
    Answered,
    Heard,
    Publish,
    Reported,
    Requirement,
    Said,
    Through,
    counted_in,
)
from rollview.consistency.bags import Bag, bag, once, plus
from rollview.consistency.history import Update
from rollview.consistency.join_view import JoinView, Partial, arranged
from rollview.consistency.levels import Level


@dataclass(frozen=True, slots=True)
class QueuedUpdate:
    """``ends``: the unit that this update is the last of."""

    update: Update
    ends: Reported | None


@dataclass(frozen=True, slots=True)
class Spawned:
    """A query of the update in work, and the place in the queue of the update that it is for."""

    query: RunningQuery
    since: int


@dataclass(frozen=True, slots=True)
class CStrobeState:
    """``queue`` begins with the update in work; ``delta`` is its Δ while its queries are ``unanswered``."""

    rows: Bag
    through: Through
    ask: int
    queue: tuple[QueuedUpdate, ...]
    unanswered: Mapping[int, Spawned]
    delta: Partial | None = None


@dataclass(frozen=True)
class CStrobe:
    view: JoinView
    by_transaction: bool = False
    grouped: bool = True
    promises: Level = Level.COMPLETE

    @property
    def needs(self) -> frozenset[Requirement]:
        single = () if self.by_transaction else (Requirement.SINGLE_UPDATES,)
        return frozenset((Requirement.KEYS, Requirement.WHOLE_OLD_ROWS, *single))

    def begin(self, rows: Bag, through: Through, ask: int = 1) -> CStrobeState:
        return CStrobeState(rows, through, ask, (), {})

    def on(self, state: CStrobeState, event: Heard) -> tuple[CStrobeState, tuple[Said, ...]]:
        said: list[Said] = []
        if isinstance(event, Reported):
            last = len(event.updates) - 1
            more = (QueuedUpdate(one, event if i == last else None) for i, one in enumerate(event.updates))
            state = replace(state, queue=(*state.queue, *more))
        elif isinstance(event, Answered) and event.ask in state.unanswered:
            spawned = state.unanswered[event.ask]
            rest = {number: other for number, other in state.unanswered.items() if number != event.ask}
            spawned = replace(spawned, query=evaluation.take(spawned.query, event))
            state = self._go_on(replace(state, unanswered=rest), spawned, said)
        while state.queue and not state.unanswered:
            state = self._finish(state, said) if state.delta is not None else self._begin(state, said)
        return state, tuple(said)

    def _begin(self, state: CStrobeState, said: list[Said]) -> CStrobeState:
        update = state.queue[0].update
        if update.is_delete:
            rows = self.view.key_delete(state.rows, update.table, update.row)
            return self._done(replace(state, rows=rows), said)
        state = replace(state, delta=Partial(frozenset(self.view.named), self._columns, {}))
        terms = evaluation.inserted(self.view, VIEW, update.table, bag([update.row]))
        return self._go_on(state, Spawned(evaluation.run_query(terms), 0), said)

    def _go_on(self, state: CStrobeState, spawned: Spawned, said: list[Said]) -> CStrobeState:
        query, ask = evaluation.next_ask(self.view, spawned.query, state.ask, state.rows)
        if ask is not None:
            said.append(ask)
            unanswered = {**state.unanswered, ask.ask: replace(spawned, query=query)}
            return replace(state, ask=state.ask + 1, unanswered=unanswered)
        state = self._add(state, query)
        for more in self._compensations(state, spawned):
            state = self._go_on(state, more, said)
        return state

    def _add(self, state: CStrobeState, query: RunningQuery) -> CStrobeState:
        """The answer joins Δ; duplicates go when Δ joins the view."""
        assert state.delta is not None
        whole = [one.partial for one in query.terms if len(one.partial.have) == len(self.view.occurrences)]
        rows = plus(state.delta.rows, *(arranged(one, self._columns).rows for one in whole))
        return replace(state, delta=replace(state.delta, rows=rows))

    def _compensations(self, state: CStrobeState, spawned: Spawned) -> Iterable[Spawned]:
        """Q⟨U⟩ for the deletes received since the update that the query is for."""
        since = [(i, one.update) for i, one in enumerate(state.queue) if i > spawned.since and one.update.is_delete]
        if self.grouped:
            tables = dict.fromkeys(update.table for _, update in since)
            groups = [(0, table, [one.row for _, one in since if one.table == table]) for table in tables]
        else:
            groups = [(place, update.table, [update.row]) for place, update in since]
        for place, table, rows in groups:
            terms = self._put(spawned.query.formed, table, once(bag(rows)))
            if terms:
                yield Spawned(evaluation.run_query(terms), place)

    def _put(self, formed: Iterable[SignedTerm], table: str, rows: Bag) -> list[SignedTerm]:
        terms = [more for term in formed for more in evaluation.inserted(self.view, term, table, rows)]
        return [term for term in terms if term.partial.rows]

    def _finish(self, state: CStrobeState, said: list[Said]) -> CStrobeState:
        """All is answered: take later inserts back, and add Δ to the view."""
        delta, deleted = state.delta, set[Update]()
        assert delta is not None
        for one in state.queue[1:]:
            update = one.update
            if update.is_delete:
                deleted.add(replace(update, count=1))
            elif update not in deleted:
                delta = self.view.row_delete(delta, update.table, update.row)
        rows = once(plus(state.rows, self.view.finish(delta)))
        return self._done(replace(state, rows=rows, delta=None), said)

    def _done(self, state: CStrobeState, said: list[Said]) -> CStrobeState:
        first = state.queue[0]
        through = counted_in(state.through, first.ends) if first.ends is not None else state.through
        if first.ends is not None or not self.by_transaction:
            said.append(Publish(state.rows, through if first.ends is not None else None))
        return replace(state, through=through, queue=state.queue[1:])

    @property
    def _columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(column for one in self.view.occurrences for column in one.columns))
