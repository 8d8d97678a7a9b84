"""A query over tables, rewritten over the views that were chosen for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from rollview.algebra.expressions import all_of, named, select, table
from rollview.matching.flat import Flat, NotStored
from rollview.matching.grouped import from_groups
from rollview.matching.match import Answering, NoMatch, Overlap, overlaps
from rollview.matching.rows import from_rows

GROUPS_SUFFIX = "@groups"
"""What is read of a view that keeps groups: those, and not the rows that it shows of them."""


@dataclass(frozen=True, slots=True)
class RewrittenQuery:
    """A query that reads stored views; ``how``: for each of them in words."""

    flat: Flat
    how: dict[str, str]

    @property
    def reads(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(place.leaf.relation for place in self.flat.places))

    @property
    def query(self) -> exp.Select:
        return written(self.flat)


def rewritings(query: Flat, view: Answering, number: int = 0) -> Iterator[RewrittenQuery]:
    """Every way in which the view answers a part of the query; raises ``NoMatch`` with the reason if there is none."""
    alias, refused = f"v{number}", None
    for overlap in overlaps(query, view):
        try:
            flat = from_rows(overlap, alias) if view.flat.groups is None else from_groups(overlap, alias)
            yield RewrittenQuery(flat, {view.name: _how(overlap, flat)})
            return
        except (NotStored, NoMatch) as refusal:
            refused = refused or NoMatch(str(refusal))
    if refused is not None:
        raise refused


def _how(overlap: Overlap, flat: Flat) -> str:
    said = []
    if overlap.view.flat.groups is not None and flat.groups is not None:
        said.append("grouped further")
    if overlap.rest:
        said.append("filtered")
    if len(flat.places) > 1:
        said.append("joined with what it lacks")
    return ", ".join(said) or "as it is"


def rewrite(query: Flat, views: Sequence[Answering]) -> tuple[RewrittenQuery, dict[str, str]]:
    """The query over the first of the views that answers it, then others for what is left; and why others do not."""
    made, reasons = RewrittenQuery(query, {}), dict[str, str]()
    for number, view in enumerate(views):
        try:
            found = next(rewritings(made.flat, view, number), None)
        except NoMatch as refusal:
            reasons[view.name] = str(refusal)
            continue
        if found is not None:
            made = RewrittenQuery(found.flat, {**made.how, **found.how})
    return made, reasons


def written(flat: Flat) -> exp.Select:
    """As a query over the names of its leaves."""
    query = select(*(named(output, name) for name, output in flat.outputs.items()))
    first, *others = flat.places
    query = query.from_(table(first.leaf.relation, first.alias))
    for place in others:
        query = query.join(table(place.leaf.relation, place.alias), join_type="cross", copy=False)
    if flat.where:
        query = query.where(all_of(flat.where), copy=False)
    groups = flat.groups
    if groups is not None and groups.keys:
        query = query.group_by(*(key.copy() for key in groups.keys), copy=False)
    if groups is not None and groups.having:
        query = query.having(all_of(groups.having), copy=False)
    return query
