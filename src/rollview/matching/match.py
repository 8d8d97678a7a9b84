"""A query over tables, answered from a view: which of its rows, and what is left to do above them.

Law: a match is proven from the two texts and the declared keys alone, so it holds at every csn: the rewritten query
over the view's rows at csn t has the rows of the query over the tables at t. What is not proven is no match.

One rule a file: ``rows`` (a view that is not grouped), ``grouped`` (groups, as they are or grouped further),
``parents`` (joins of the view that lose and repeat nothing), ``back`` (columns the view lacks, fetched by key),
``remainder`` (rows the view lacks, computed from tables).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice

from sqlglot import exp

from rollview.algebra.operators.leaf import Leaf
from rollview.algebra.summary import Summary
from rollview.algebra.text import render
from rollview.matching.flat import Flat, Place
from rollview.matching.implied import implied
from rollview.matching.normal import Normal, parts_of
from rollview.matching.parents import without_parents

_MOST_WAYS = 24
"""Ways to lay a view over a query that are tried, where tables are joined with themselves."""


class NoMatch(Exception):
    """The view does not answer the query; says why."""


class LeavesOut(NoMatch):
    """The view holds only the rows of these conditions, over the query's places, and more are asked for."""

    def __init__(self, parts: tuple[exp.Expr, ...], leaf_of: Mapping[str, Leaf]) -> None:
        super().__init__(f"{_spelled(parts[0])} leaves out rows that are asked for")
        self.parts = parts
        self.leaf_of = leaf_of


@dataclass(frozen=True, slots=True)
class Answering:
    """A view that may answer queries: its definition, what is stored of it, and how its groups are kept."""

    name: str
    flat: Flat
    leaf: Leaf
    summary: Summary | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    """The stored name of each output of the definition."""


@dataclass(frozen=True, slots=True)
class Overlap:
    """A view laid over a query: its definition in the query's aliases, and what both have in common.

    ``rest``: conditions of the query that the view does not see to.
    """

    query: Flat
    view: Answering
    flat: Flat
    covered: frozenset[str]
    rest: tuple[exp.Expr, ...]
    own: Normal
    """Normal forms in every row of the view."""
    final: Normal
    """Normal forms in every row that the query leaves."""

    @property
    def others(self) -> tuple[Place, ...]:
        return tuple(place for place in self.query.places if place.alias not in self.covered)


def overlaps(query: Flat, view: Answering) -> Iterator[Overlap]:
    """Every way in which the view sees to a part of the query; raises ``NoMatch`` if there is none."""
    refused: NoMatch | None = None
    found = False
    for aliases in islice(_ways(query, view.flat), _MOST_WAYS):
        try:
            yield _overlap(query, view, aliases)
            found = True
        except NoMatch as refusal:
            refused = refused or refusal
    if not found:
        raise refused or NoMatch(_missing(query, view.flat))


def _missing(query: Flat, view: Flat) -> str:
    asked = {place.leaf.relation for place in query.places}
    lacking = sorted({place.leaf.relation for place in view.places} - asked)
    reads = "joins" if len(view.places) > 1 else "reads"
    return f"it {reads} {', '.join(lacking)}, the query does not" if lacking else "it joins a table more often"


def _ways(query: Flat, view: Flat) -> Iterator[dict[str, str]]:
    """Which place of the query each place of the view stands for; places that keys may prove to change nothing can
    stand for none."""
    ours = [place for place in view.places if any(_same(place, other) for other in query.places)]

    def laid(place: int, taken: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        if place == len(ours):
            yield taken
            return
        for other in query.places:
            if other.alias not in taken and _same(ours[place], other):
                yield from laid(place + 1, (*taken, other.alias))

    for chosen in laid(0, ()):
        yield {place.alias: alias for place, alias in zip(ours, chosen, strict=True)}


def _same(one: Place, other: Place) -> bool:
    return one.leaf.relation == other.leaf.relation


@dataclass(frozen=True, slots=True)
class _Same:
    """Equal only to itself: what was worked out of a query or view is found again as long as it is the same object."""

    flat: Flat

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.flat is self.flat

    def __hash__(self) -> int:
        return id(self.flat)


@dataclass(frozen=True, slots=True)
class _Conditions:
    """A query's conditions, in normal form, and its places."""

    final: Normal
    given: tuple[exp.Expr, ...]
    leaf_of: dict[str, Leaf]


@lru_cache(maxsize=64)
def _conditions(query: _Same) -> _Conditions:
    final = Normal(query.flat)
    leaf_of = {place.alias: place.leaf for place in query.flat.places}
    return _Conditions(final, tuple(final.of(part) for part in parts_of(query.flat.where)), leaf_of)


@dataclass(frozen=True, slots=True)
class _LaidView:
    """A view's definition in a query's aliases, without joins that change nothing."""

    flat: Flat
    own: Normal
    parts: tuple[exp.Expr, ...]
    seen_to: frozenset[exp.Expr]


@lru_cache(maxsize=4096)
def _laid(view: _Same, name: str, aliases: tuple[tuple[str, str], ...]) -> _LaidView | None:
    """None where the view joins what the query does not, and keys do not prove that this changes nothing."""
    known = dict(aliases)
    unmapped = {place.alias: f"{name}.{place.alias}" for place in view.flat.places if place.alias not in known}
    flat = without_parents(view.flat.renamed({**known, **unmapped}), frozenset(unmapped.values()))
    if flat is None:
        return None
    own, parts = Normal(flat), tuple(parts_of(flat.where))
    return _LaidView(flat, own, parts, frozenset(own.of(part) for part in parts))


def _overlap(query: Flat, view: Answering, aliases: Mapping[str, str]) -> Overlap:
    if not aliases:
        raise NoMatch(_missing(query, view.flat))
    laid = _laid(_Same(view.flat), view.name, tuple(sorted(aliases.items())))
    if laid is None:
        raise NoMatch(_missing(query, view.flat))
    asked = _conditions(_Same(query))
    lacking = tuple(part for part in laid.parts if not implied(asked.final.of(part), asked.given, asked.leaf_of))
    if lacking:
        raise LeavesOut(lacking, asked.leaf_of)
    own, leaf_of = laid.own, asked.leaf_of
    rest = tuple(part for part in parts_of(query.where) if not implied(own.of(part), laid.seen_to, leaf_of))
    return Overlap(query, view, laid.flat, frozenset(aliases.values()), rest, laid.own, asked.final)


@lru_cache(maxsize=4096)
def _spelled(part: exp.Expr) -> str:
    def plain(node: exp.Expr) -> exp.Expr:
        return exp.column(node.name) if isinstance(node, exp.Column) else node

    return render(part.copy().transform(plain))
