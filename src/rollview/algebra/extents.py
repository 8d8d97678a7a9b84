"""How the rows of a query change when others stand for what it reads.

Law: a monotone query gets no fewer rows from more, and no more from fewer. So a table that is a part of the one that it
stands for gives a part of the rows; where a query is not monotone, nothing is known but what is equal stays equal.
(Lee, Nica and Rundensteiner; the extent parameter of view synchronization.)
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from rollview.core.states import Extent

_NOT_MONOTONE = (exp.AggFunc, exp.Group, exp.Window, exp.Limit, exp.Offset, exp.Fetch, exp.Except, exp.Intersect)
_CALLS = ("any_value", "first", "last", "collect_list", "collect_set", "array_agg")


def is_monotone(query: exp.Expr, ignoring: exp.Expr | None = None) -> bool:
    """Whether more rows below never take a row away. ``ignoring``: a join that is not asked."""
    return not any(_may_lose(node) for node in query.walk() if node is not ignoring)


def _may_lose(node: exp.Expr) -> bool:
    if isinstance(node, _NOT_MONOTONE):
        return True
    if isinstance(node, exp.Join):
        return bool(node.side) or node.kind in ("SEMI", "ANTI")
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower() in _CALLS
    if isinstance(node, exp.Exists | exp.Any | exp.All):
        return True
    return isinstance(node, exp.Subquery) and not isinstance(node.parent, exp.From | exp.Join | exp.SetOperation)


def carried(extent: Extent, *, monotone: bool) -> Extent:
    """Of a query, where one of the relations that it reads has this extent."""
    return extent if monotone or extent is Extent.EQUAL else Extent.ANY


def together(extents: Iterable[Extent]) -> Extent:
    """Of several changes that are made at once."""
    found = {extent for extent in extents if extent is not Extent.EQUAL}
    return found.pop() if len(found) == 1 else Extent.ANY if found else Extent.EQUAL
