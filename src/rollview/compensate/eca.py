"""ECA, the eager compensating algorithm.

Law: Q = V⟨U⟩ − Σ Q'⟨U⟩ over every unanswered Q', compensations included, in signed counts; answers are collected and
added to the view when no query is unanswered. Zhuge et al., *View Maintenance in a Warehousing Environment*. Right if
an answer that comes after an update has seen it, and sees all tables in one snapshot: one source.

The paper does not say when answers are added. Added at once (``collect=False``) readers see states that never were.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

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
from rollview.consistency.bags import EMPTY, Bag, plus
from rollview.consistency.history import Update
from rollview.consistency.join_view import JoinView
from rollview.consistency.levels import Level


@dataclass(frozen=True, slots=True)
class EcaState:
    """``unanswered`` is the paper's UQS."""

    rows: Bag
    through: Through
    ask: int
    unanswered: Mapping[int, RunningQuery]
    collected: Bag = field(default_factory=dict)


@dataclass(frozen=True)
class Eca:
    view: JoinView
    collect: bool = True
    promises: Level = Level.STRONG
    needs: frozenset[Requirement] = frozenset((Requirement.ONE_SOURCE, Requirement.WHOLE_OLD_ROWS))

    def begin(self, rows: Bag, through: Through, ask: int = 1) -> EcaState:
        return EcaState(rows, through, ask, {})

    def on(self, state: EcaState, event: Heard) -> tuple[EcaState, tuple[Said, ...]]:
        said: list[Said] = []
        if isinstance(event, Reported):
            for place, update in enumerate(event.updates, start=1):
                if place == len(event.updates):
                    state = replace(state, through=counted_in(state.through, event))
                state = self._go_on(state, self._query(state, update), said)
        elif isinstance(event, Answered) and event.ask in state.unanswered:
            query = evaluation.take(state.unanswered[event.ask], event)
            rest = {number: other for number, other in state.unanswered.items() if number != event.ask}
            state = self._go_on(replace(state, unanswered=rest), query, said)
        return state, tuple(said)

    def _query(self, state: EcaState, update: Update) -> RunningQuery:
        terms = evaluation.substitute(self.view, VIEW, update)
        for query in state.unanswered.values():
            for term in query.formed:
                terms += [_less(more) for more in evaluation.substitute(self.view, term, update)]
        return evaluation.run_query(terms)

    def _go_on(self, state: EcaState, query: RunningQuery, said: list[Said]) -> EcaState:
        query, ask = evaluation.next_ask(self.view, query, state.ask)
        if ask is not None:
            said.append(ask)
            return replace(state, ask=state.ask + 1, unanswered={**state.unanswered, ask.ask: query})
        collected = plus(state.collected, evaluation.answer(self.view, query))
        if state.unanswered and self.collect:
            return replace(state, collected=collected)
        rows = plus(state.rows, collected)
        said.append(Publish(rows, state.through if self.collect else None))
        return replace(state, rows=rows, collected=EMPTY)


def _less(term: SignedTerm) -> SignedTerm:
    return replace(term, sign=-term.sign)
