"""Joins of a view that keys prove to lose no row and to repeat none: the view holds the rows of the query without them.

Law: C ⋈ P by a foreign key of C finds one row of P for each row of C whose foreign key is not NULL. So the rows of the
join, of which no column of P is asked for, are those of C where the foreign key is not NULL.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlglot import exp

from rollview.algebra.expressions import column, identifiers, not_null
from rollview.core.names import same
from rollview.core.schema import ForeignKey
from rollview.matching.flat import Flat, Place
from rollview.matching.normal import parts_of

_ONE_SPELLING = ("tinyint", "smallint", "int", "bigint", "string", "date")


def without_parents(view: Flat, spare: frozenset[str]) -> Flat | None:
    """The view without the places ``spare``; None if one of them may lose or repeat rows."""
    if not spare & {place.alias for place in view.places}:
        return view
    for parent in view.places:
        if parent.alias in spare:
            smaller = next(_smaller(view, parent), None)
            if smaller is not None:
                return without_parents(smaller, spare)
    return None


def _smaller(view: Flat, parent: Place) -> Iterator[Flat]:
    parts = parts_of(view.where)
    about = [part for part in parts if parent.alias in identifiers(part)]
    for child in view.places:
        for key in child.leaf.constraints.foreign_keys:
            meant = child is not parent and same(key.table, parent.leaf.relation)
            if meant and _is_the_join(about, parent, child, key):
                there = [not_null(column(child.alias, _stored(child, name))) for name in key.columns]
                kept = tuple(part for part in parts if part not in about)
                places = tuple(place for place in view.places if place is not parent)
                yield replace(view, places=places, where=(*kept, *there))


def _is_the_join(about: list[exp.Expr], parent: Place, child: Place, key: ForeignKey) -> bool:
    """Whether all that the view asks of the parent is that it is the one the foreign key means."""
    pairs = [
        (_stored(child, ours), _stored(parent, theirs))
        for ours, theirs in zip(key.columns, key.referenced, strict=True)
    ]
    if any(not _one_spelling(child, ours, parent, theirs) for ours, theirs in pairs):
        return False
    wanted = [{column(child.alias, ours), column(parent.alias, theirs)} for ours, theirs in pairs]
    found = [{part.this, part.expression} for part in about if isinstance(part, exp.EQ)]
    return len(found) == len(about) and all(one in wanted for one in found) and all(one in found for one in wanted)


def _one_spelling(child: Place, ours: str, parent: Place, theirs: str) -> bool:
    types = {child.leaf.types.get(ours), parent.leaf.types.get(theirs)}
    return len(types) == 1 and types.issubset(_ONE_SPELLING)


def _stored(place: Place, name: str) -> str:
    """The column as its table spells it."""
    return next((one for one in place.leaf.types if same(one, name)), name)
