"""A view that is not grouped stands for the part of the query that it sees to.

Law: V = π(σ(R1 × … × Rk)) keeps how often each row is there, so σ'(V × …) is the query where σ' is what is left of its
conditions and all it needs of R1 … Rk can be computed from V's columns.
"""

from __future__ import annotations

from rollview.algebra.expressions import column
from rollview.matching.back import Held, with_fetched
from rollview.matching.express import StoredValues
from rollview.matching.flat import Flat, Place
from rollview.matching.match import Overlap


def from_rows(overlap: Overlap, alias: str) -> Flat:
    """The query over the view, called ``alias``, and whatever it reads beside it. Raises ``NotStored``."""
    outputs = overlap.flat.outputs.items()
    held = [(expression, column(alias, overlap.view.columns[name])) for name, expression in outputs]
    return with_fetched(overlap, lambda free: _over(overlap, alias, held, free), held)


def _over(overlap: Overlap, alias: str, held: Held, free: frozenset[str]) -> Flat:
    query = overlap.query
    below, above = (StoredValues.of(held, normal, free) for normal in (overlap.own, overlap.final))
    groups = None if query.groups is None else query.groups.rewritten(above.write)
    return Flat(
        (Place(alias, overlap.view.leaf), *overlap.others),
        tuple(map(below.write, overlap.rest)),
        {name: above.write(output) for name, output in query.outputs.items()},
        groups,
    )
