"""Columns that a view lacks are fetched from their table, by the table's key.

Law: a row of V tells which row of R it was made of where it holds R's primary key, so joining R back by it finds that
row and no other; R is read at the csn at which V is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlglot import exp

from rollview.algebra.expressions import column
from rollview.core.names import same
from rollview.matching.flat import Flat, NotStored, Place
from rollview.matching.match import Overlap

_ONE_SPELLING = ("tinyint", "smallint", "int", "bigint", "string", "date")


Held = Sequence[tuple[exp.Expr, exp.Column]]
"""Expressions over tables, and the columns of the view that hold their values."""


def with_fetched(overlap: Overlap, write: Callable[[frozenset[str]], Flat], held: Held) -> Flat:
    """What ``write`` makes of the query, given the places read beside the view; tables are fetched as needed."""
    fetched: list[str] = []
    while True:
        free = frozenset((*(place.alias for place in overlap.others), *fetched))
        try:
            made = write(free)
        except NotStored as missing:
            alias = missing.column.table
            if alias in fetched or alias not in overlap.covered or _join(overlap, alias, held) is None:
                raise
            fetched.append(alias)
            continue
        return _with_places(made, overlap, fetched, held)


def _with_places(made: Flat, overlap: Overlap, fetched: list[str], held: Held) -> Flat:
    places = [Place(alias, overlap.query.leaf(alias)) for alias in fetched]
    joins = [condition for alias in fetched for condition in _join(overlap, alias, held) or ()]
    return replace(made, places=(*made.places, *places), where=(*made.where, *joins))


def _join(overlap: Overlap, alias: str, held: Held) -> list[exp.Expr] | None:
    leaf = overlap.query.leaf(alias)
    known = {overlap.own.of(expression): place for expression, place in held}
    found: list[exp.Expr] = []
    for part in leaf.constraints.primary_key:
        name = next((one for one in leaf.types if same(one, part)), part)
        place = known.get(overlap.own.of(column(alias, name)))
        if place is None or leaf.types.get(name) not in _ONE_SPELLING:
            return None
        found.append(exp.EQ(this=column(alias, name), expression=place.copy()))
    return found or None
