"""A view without GROUP BY replaces the tables of a query that the view joins.

Law: V = π(σ(R1 × … × Rk)) keeps how often each row is there, so σ'(V × …) is the query where σ' is what is left of its
conditions and all it needs of R1 … Rk can be computed from V's columns. V's rows equal those as GROUP BY compares them,
so what tells 0.0 from -0.0 is computed only from what V holds as it was.
"""

from __future__ import annotations

from rollview.algebra.expressions import column
from rollview.matching.back import Held, with_fetched
from rollview.matching.express import StoredValues, kept_as_it_was
from rollview.matching.flat import Flat, Place
from rollview.matching.match import Overlap


def from_rows(overlap: Overlap, alias: str) -> Flat:
    """The query over the view, called ``alias``, and whatever it reads beside it. Raises ``NotStored``."""
    outputs = overlap.flat.outputs.items()
    leaf_of = {place.alias: place.leaf for place in overlap.flat.places}
    stored = [(expression, column(alias, overlap.view.columns[name])) for name, expression in outputs]
    held = [one for one in stored if kept_as_it_was(one[0], leaf_of)]
    equal = [one for one in stored if one not in held]
    return with_fetched(overlap, lambda free: _over(overlap, alias, (held, equal), free), held)


def _over(overlap: Overlap, alias: str, stored: tuple[Held, Held], free: frozenset[str]) -> Flat:
    query, (held, equal) = overlap.query, stored
    below, above = (StoredValues.of(held, normal, free, equal) for normal in (overlap.own, overlap.final))
    groups = None if query.groups is None else query.groups.rewritten(above.write)
    return Flat(
        (Place(alias, overlap.view.leaf), *overlap.others),
        tuple(map(below.write, overlap.rest)),
        {name: above.write(output) for name, output in query.outputs.items()},
        groups,
    )
