"""One source after another is asked: source_evaluate of Zhuge et al., *The Strobe Algorithms*, section 5.1.

Law: a query is a sum of signed terms; a term is what some tables have been joined to already. It goes on to a source
whose tables join with what is known, and ends where no table is left or no row. A row of the view that shows a key, and
all that it uses of the row with that key, is that row: nobody has to be asked for it (section 7).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import combinations

from rollview.compensate.maintainer import Answered, AskFor
from rollview.consistency.bags import EMPTY, Bag, plus, times
from rollview.consistency.history import Update
from rollview.consistency.join_view import NOTHING_YET, JoinView, Occurrence, Partial, join, keys_of


@dataclass(frozen=True, slots=True)
class SignedTerm:
    sign: int
    partial: Partial


VIEW = SignedTerm(1, NOTHING_YET)
"""The view itself: no table of it is known yet."""


@dataclass(frozen=True, slots=True)
class RunningQuery:
    """``formed`` are the terms as they were at first; ``terms`` as far as they have been answered. ``asked`` are the
    places of those that the ask under way carries."""

    formed: tuple[SignedTerm, ...]
    terms: tuple[SignedTerm, ...]
    asked: tuple[int, ...] = ()


def run_query(terms: Iterable[SignedTerm]) -> RunningQuery:
    formed = tuple(terms)
    return RunningQuery(formed, formed)


def substitute(view: JoinView, term: SignedTerm, update: Update) -> list[SignedTerm]:
    """term⟨U⟩: what the update adds to the term, told from the table as it is after it.

    A table that occurs once gives one term; one that occurs more often gives one for each set of its occurrences.
    """
    left = [one for one in view.of_table(update.table) if one.name not in term.partial.have]
    sets = (some for size in range(1, len(left) + 1) for some in combinations(left, size))
    return [_put(view, term, some, update) for some in sets]


def _put(view: JoinView, term: SignedTerm, some: tuple[Occurrence, ...], update: Update) -> SignedTerm:
    partial = term.partial
    for one in some:
        partial = join(partial, view.partial(one.name, {update.row: update.count}))
    return SignedTerm(-term.sign if len(some) % 2 == 0 else term.sign, partial)


def inserted(view: JoinView, term: SignedTerm, table: str, rows: Bag) -> list[SignedTerm]:
    """The term with these rows in place of the table; one for each occurrence, for those who drop duplicates."""
    left = [one for one in view.of_table(table) if one.name not in term.partial.have]
    return [SignedTerm(1, join(term.partial, view.partial(one.name, rows))) for one in left]


def next_ask(view: JoinView, query: RunningQuery, number: int, rows: Bag = EMPTY) -> tuple[RunningQuery, AskFor | None]:
    """The query with its next ask under way; no ask is left when it is answered. ``rows``: of the view, those of which
    nothing has been deleted since."""
    query = replace(query, terms=tuple(_found_in(view, term, rows) for term in query.terms))
    for source in view.sources:
        wanted = {place: _wanted(view, term, source) for place, term in enumerate(query.terms)}
        asked = tuple(place for place, some in wanted.items() if some)
        if asked:
            partials = tuple(query.terms[place].partial for place in asked)
            ask = AskFor(number, source, partials, tuple(wanted[place] for place in asked))
            return replace(query, asked=asked), ask
    return replace(query, asked=()), None


def _found_in(view: JoinView, term: SignedTerm, rows: Bag) -> SignedTerm:
    """The term joined with what the view shows by key."""
    while rows and term.partial.rows:
        left = (one for one in view.occurrences if one.name not in term.partial.have)
        found = next((told for one in left if (told := _by_key(view, term.partial, one, rows)) is not None), None)
        if found is None:
            break
        term = replace(term, partial=join(term.partial, found))
    return term


def _by_key(view: JoinView, partial: Partial, one: Occurrence, rows: Bag) -> Partial | None:
    """Of one table the rows that a partial joins with; None unless the view shows every one of them."""
    if not one.key or not set(one.key) <= set(partial.columns) or not set(one.columns) <= set(view.shown):
        return None
    at, key = [view.shown.index(name) for name in one.columns], [one.columns.index(name) for name in one.key]
    shown = (tuple(row[i] for i in at) for row in rows)
    by_key = {tuple(row[i] for i in key): row for row in shown}
    wanted = keys_of(partial, one.key).rows.keys()
    return view.partial(one.name, {by_key[k]: 1 for k in wanted}) if wanted <= by_key.keys() else None


def take(query: RunningQuery, event: Answered) -> RunningQuery:
    terms = list(query.terms)
    for place, partial in zip(query.asked, event.partials, strict=True):
        terms[place] = replace(terms[place], partial=partial)
    return replace(query, terms=tuple(terms), asked=())


def answer(view: JoinView, query: RunningQuery) -> Bag:
    """The signed sum of all terms, selected and projected."""
    whole = (term for term in query.terms if len(term.partial.have) == len(view.occurrences))
    return plus(*(times(view.finish(term.partial), term.sign) for term in whole))


def _wanted(view: JoinView, term: SignedTerm, source: str) -> tuple[str, ...]:
    """Occurrences at the source that join with what is known, and those that join with them in turn."""
    if not term.partial.rows:
        return ()
    known, found = set(term.partial.columns), list[str]()
    left = [one for one in view.occurrences if one.name not in term.partial.have]
    if not any(known & set(one.columns) for one in left):
        # Nothing that is left joins with it: the tables multiply.
        known = {column for one in left for column in one.columns}
    here = [one for one in left if one.source == source]
    while near := [one for one in here if one.name not in found and known & set(one.columns)]:
        found += [one.name for one in near]
        known |= {column for one in near for column in one.columns}
    return tuple(found)
