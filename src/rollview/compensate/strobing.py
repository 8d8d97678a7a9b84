"""What Strobe, T-Strobe and G-Strobe share: Zhuge et al., *The Strobe Algorithms*, section 5.

Law: a delete asks nothing; it joins ``pending`` of every unanswered query, and a key-delete joins the action list. An
insert asks V⟨U⟩; its answer, without what is pending, joins the action list. The list is applied at once and without
duplicates, when no query is unanswered. Keys of deleted rows are enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from typing import cast

from rollview.compensate import evaluation
from rollview.compensate.evaluation import VIEW, RunningQuery
from rollview.compensate.maintainer import Answered, Publish, Said, Through
from rollview.consistency.bags import Bag, bag, once, plus
from rollview.consistency.history import Update
from rollview.consistency.join_view import JoinView


@dataclass(frozen=True, slots=True)
class PendingQuery:
    """A query, and the deletes that came since it was formed."""

    query: RunningQuery
    pending: tuple[Update, ...] = ()


@dataclass(frozen=True, slots=True)
class StrobeState:
    """``unanswered`` is the paper's UQS, ``actions`` its AL: key-deletes, and answers to insert."""

    rows: Bag
    through: Through
    ask: int
    unanswered: Mapping[int, PendingQuery]
    actions: tuple[Update | Bag, ...] = ()


def delete(state: StrobeState, update: Update) -> StrobeState:
    unanswered = {number: replace(one, pending=(*one.pending, update)) for number, one in state.unanswered.items()}
    return replace(state, unanswered=unanswered, actions=(*state.actions, update))


def insert(view: JoinView, state: StrobeState, updates: Iterable[Update], said: list[Said]) -> StrobeState:
    """One query for all of them."""
    terms = [term for one in updates for term in evaluation.inserted(view, VIEW, one.table, bag([one.row]))]
    return _go_on(view, state, PendingQuery(evaluation.run_query(terms)), said) if terms else state


def answered(view: JoinView, state: StrobeState, event: Answered, said: list[Said]) -> StrobeState:
    if event.ask not in state.unanswered:
        return state
    running = state.unanswered[event.ask]
    rest = {number: other for number, other in state.unanswered.items() if number != event.ask}
    running = replace(running, query=evaluation.take(running.query, event))
    return _go_on(view, replace(state, unanswered=rest), running, said)


def publish(view: JoinView, state: StrobeState, said: list[Said], *, through: Through | None) -> StrobeState:
    """Apply the action list as one transaction."""
    rows = state.rows
    for is_delete, some in groupby(state.actions, lambda action: isinstance(action, Update)):
        if is_delete:
            rows = view.key_deletes(rows, [(one.table, one.row) for one in cast("Iterator[Update]", some)])
        else:
            rows = once(plus(rows, *cast("Iterator[Bag]", some)))
    said.append(Publish(rows, through))
    return replace(state, rows=rows, actions=())


def _go_on(view: JoinView, state: StrobeState, running: PendingQuery, said: list[Said]) -> StrobeState:
    query, ask = evaluation.next_ask(view, running.query, state.ask, _current_rows(view, state))
    if ask is not None:
        said.append(ask)
        unanswered = {**state.unanswered, ask.ask: replace(running, query=query)}
        return replace(state, ask=state.ask + 1, unanswered=unanswered)
    found = once(evaluation.answer(view, query))
    found = view.key_deletes(found, [(update.table, update.row) for update in running.pending])
    return replace(state, actions=(*state.actions, found))


def _current_rows(view: JoinView, state: StrobeState) -> Bag:
    """Published rows that no delete since has taken away."""
    gone = [(action.table, action.row) for action in state.actions if isinstance(action, Update)]
    return view.key_deletes(state.rows, gone)
