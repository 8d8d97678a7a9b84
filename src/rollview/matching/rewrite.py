"""A query over tables, rewritten over the views that were chosen for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from rollview.algebra.expressions import all_of, column, identifier, named, select, table
from rollview.algebra.resolve import ROWS_SUFFIX
from rollview.matching.flat import Flat, NotStored
from rollview.matching.grouped import from_groups
from rollview.matching.match import Answering, LeavesOut, NoMatch, Overlap, overlaps
from rollview.matching.remainder import split
from rollview.matching.rows import from_rows

GROUPS_SUFFIX = "@groups"
"""What is read of a view that keeps groups: those, and not the rows that it shows of them."""
_TOGETHER = "_rv_together"


@dataclass(frozen=True, slots=True)
class RewrittenQuery:
    """A query that reads stored views; ``how``: for each of them in words. ``rest``: rows that come from tables beside
    those of ``flat``; ``above``: what is made of both."""

    flat: Flat
    how: dict[str, str]
    rest: Flat | None = None
    above: Flat | None = None

    @property
    def reads(self) -> tuple[str, ...]:
        places = (*self.flat.places, *(self.rest.places if self.rest is not None else ()))
        return tuple(dict.fromkeys(place.leaf.relation for place in places))

    @property
    def query(self) -> exp.Select:
        return written(self.flat) if self.rest is None else _together(self.flat, self.rest, self.above)


def rewritings(query: Flat, view: Answering, number: int = 0, *, remainder: bool = True) -> Iterator[RewrittenQuery]:
    """Every way in which the view answers a part of the query; raises ``NoMatch`` with the reason if there is none.
    ``remainder``: rows that it lacks may come from tables."""
    try:
        yield from _plain(query, view, f"v{number}")
    except LeavesOut as refusal:
        found = _with_remainder(query, view, refusal) if remainder else None
        if found is None:
            raise
        yield found


def _plain(query: Flat, view: Answering, alias: str) -> Iterator[RewrittenQuery]:
    refused = None
    for overlap in overlaps(query, view):
        try:
            flat = from_rows(overlap, alias) if view.flat.groups is None else from_groups(overlap, alias)
            yield RewrittenQuery(flat, {view.name: _how(overlap, flat)})
            return
        except (NotStored, NoMatch) as refusal:
            refused = refused or NoMatch(str(refusal))
    if refused is not None:
        raise refused


def _with_remainder(query: Flat, view: Answering, refusal: LeavesOut) -> RewrittenQuery | None:
    """The rows that the view holds, and the others from the tables."""
    parts = split(query, refusal.parts, refusal.leaf_of) if view.flat.groups is None else None
    if parts is None:
        return None
    try:
        held = next(_plain(parts.held, view, "v0"), None)
    except NoMatch:
        return None
    how = {view.name: "the other rows from tables"}
    return None if held is None else RewrittenQuery(held.flat, how, parts.rest, parts.above)


def _how(overlap: Overlap, flat: Flat) -> str:
    said = []
    if overlap.view.flat.groups is not None and flat.groups is not None:
        said.append("grouped further")
    if overlap.rest:
        said.append("filtered")
    if len(flat.places) > 1:
        said.append("joined with what it lacks")
    return ", ".join(said) or "as it is"


def rewrite(
    query: Flat, views: Sequence[Answering], *, remainder: bool = True
) -> tuple[RewrittenQuery, dict[str, str]]:
    """The query over the first of the views that answers it, then others for what is left; and why others do not."""
    made, reasons = RewrittenQuery(query, {}), dict[str, str]()
    for number, view in enumerate(views):
        try:
            found = next(rewritings(made.flat, view, number, remainder=remainder and not made.how), None)
        except NoMatch as refusal:
            reasons[view.name] = str(refusal)
            continue
        if found is not None and found.rest is not None:
            return found, reasons
        if found is not None:
            made = RewrittenQuery(found.flat, {**made.how, **found.how})
    return made, reasons


def written(flat: Flat) -> exp.Select:
    """As a query over the names of its leaves."""
    first, *others = flat.places
    query = _selected(flat).from_(table(first.leaf.relation, first.alias))
    for place in others:
        query = query.join(table(place.leaf.relation, place.alias), join_type="cross", copy=False)
    if flat.where:
        query = query.where(all_of(flat.where), copy=False)
    return _grouped(query, flat)


def over_rows(query: exp.Select) -> exp.Select:
    """The same over ``name@rows`` of what it reads."""
    for one in query.find_all(exp.Table):
        one.set("this", identifier(one.name + ROWS_SUFFIX))
    return query


def _together(held: Flat, rest: Flat, above: Flat | None) -> exp.Select:
    both = exp.Union(this=written(held), expression=written(rest), distinct=False)
    query = select(*(column(None, name) for name in held.outputs)) if above is None else _selected(above)
    query = query.from_(exp.Subquery(this=both, alias=exp.TableAlias(this=identifier(_TOGETHER))))
    return query if above is None else _grouped(query, above)


def _selected(flat: Flat) -> exp.Select:
    return select(*(named(output, name) for name, output in flat.outputs.items()))


def _grouped(query: exp.Select, flat: Flat) -> exp.Select:
    groups = flat.groups
    if groups is not None and groups.keys:
        query = query.group_by(*map(_as_value, groups.keys), copy=False)
    if groups is not None and groups.having:
        query = query.having(all_of(groups.having), copy=False)
    return query


def _as_value(key: exp.Expr) -> exp.Expr:
    """A number that stands alone in GROUP BY would be the place of a column."""
    bare = key.unnest()
    number = bare.this if isinstance(bare, exp.Neg) else bare
    return exp.Coalesce(this=key.copy(), expressions=[]) if isinstance(number, exp.Literal) else key.copy()
