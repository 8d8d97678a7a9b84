"""Maintenance as if sources stood still: every update asks V⟨U⟩ and the answer is added at once.

Law: none that holds while sources change: an answer sees updates that were not there when its update was made.
Zhuge et al., *View Maintenance in a Warehousing Environment*, shows the anomalies; it is here to be measured. Where the
view has every key, a delete takes its rows out by key and asks nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rollview.compensate import evaluation
from rollview.compensate.evaluation import VIEW, RunningQuery
from rollview.compensate.maintainer import Answered, Heard, Publish, Reported, Requirement, Said, Through
from rollview.consistency.bags import Bag, plus
from rollview.consistency.history import Update
from rollview.consistency.join_view import JoinView
from rollview.consistency.levels import Level


@dataclass(frozen=True, slots=True)
class ConventionalState:
    rows: Bag
    ask: int
    queries: Mapping[int, RunningQuery]


@dataclass(frozen=True)
class Conventional:
    view: JoinView
    promises: Level = Level.NONE
    needs: frozenset[Requirement] = frozenset((Requirement.WHOLE_OLD_ROWS,))

    def begin(self, rows: Bag, through: Through, ask: int = 1) -> ConventionalState:
        return ConventionalState(rows, ask, {})

    def on(self, state: ConventionalState, event: Heard) -> tuple[ConventionalState, tuple[Said, ...]]:
        said: list[Said] = []
        if isinstance(event, Reported):
            for update in event.updates:
                state = self._update(state, update, said)
        elif isinstance(event, Answered) and event.ask in state.queries:
            query = evaluation.take(state.queries[event.ask], event)
            rest = {number: other for number, other in state.queries.items() if number != event.ask}
            state = self._go_on(replace(state, queries=rest), query, said)
        return state, tuple(said)

    def _update(self, state: ConventionalState, update: Update, said: list[Said]) -> ConventionalState:
        if update.is_delete and self.view.is_keyed:
            rows = self.view.key_delete(state.rows, update.table, update.row)
            said.append(Publish(rows, None))
            return replace(state, rows=rows)
        return self._go_on(state, evaluation.run_query(evaluation.substitute(self.view, VIEW, update)), said)

    def _go_on(self, state: ConventionalState, query: RunningQuery, said: list[Said]) -> ConventionalState:
        query, ask = evaluation.next_ask(self.view, query, state.ask)
        if ask is not None:
            said.append(ask)
            return replace(state, ask=state.ask + 1, queries={**state.queries, ask.ask: query})
        rows = plus(state.rows, evaluation.answer(self.view, query))
        said.append(Publish(rows, None))
        return replace(state, rows=rows)
