"""A view that holds a part of the rows that are asked for, and the rest from the tables.

Law: where p compares a column with constants, a row has p, or has it not: p is false or NULL. So the rows that a query
is made of are those with p, which the view answers, and those without, which the tables do; nothing is in both. A query
that is grouped groups both together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from rollview.algebra.expressions import any_of, column
from rollview.algebra.operators.leaf import Leaf
from rollview.matching.flat import Flat, NotStored
from rollview.matching.implied import range_of

_NEGATED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.EQ: exp.NEQ,
    exp.LT: exp.GTE,
    exp.LTE: exp.GT,
    exp.GT: exp.LTE,
    exp.GTE: exp.LT,
}
_TURNED: dict[type[exp.Expr], type[exp.Expr]] = {exp.GT: exp.LT, exp.GTE: exp.LTE}


@dataclass(frozen=True, slots=True)
class SplitQuery:
    """``held``: the part of the rows that the view has; ``rest``: the others. ``above``: what is made of both together;
    None where they are what is asked for."""

    held: Flat
    rest: Flat
    above: Flat | None


def split(query: Flat, parts: tuple[exp.Expr, ...], leaf_of: Mapping[str, Leaf]) -> SplitQuery | None:
    """None where a condition may fail, or is not of the query's own columns."""
    rest = lacking_any(parts, leaf_of)
    if rest is None:
        return None
    rows, above = (query, None) if query.groups is None else _rows_below(query)
    return SplitQuery(
        replace(rows, where=(*rows.where, *(part.copy() for part in parts))),
        replace(rows, where=(*rows.where, rest)),
        above,
    )


def lacking_any(parts: Sequence[exp.Expr], leaf_of: Mapping[str, Leaf]) -> exp.Expr | None:
    """Whether a row has not all of the conditions; None where one of them may fail."""
    lacking = [_lacking(part, leaf_of) for part in parts]
    without = [one for one in lacking if one is not None]
    return exp.Paren(this=any_of(without)) if without and len(without) == len(parts) else None


def _lacking(part: exp.Expr, leaf_of: Mapping[str, Leaf]) -> exp.Expr | None:
    """Whether a row has not the condition, which compares a column with constants and so never fails."""
    own = {one.table for one in part.find_all(exp.Column)}
    negated, turned = _NEGATED.get(type(part)), _TURNED.get(type(part))
    compared = part if turned is None else turned(this=part.expression, expression=part.this)
    if negated is None or len(own) != 1 or not own <= leaf_of.keys() or range_of(compared, dict(leaf_of)) is None:
        return None
    (of,) = part.find_all(exp.Column)
    false = negated(this=part.this.copy(), expression=part.expression.copy())
    return exp.Paren(this=exp.Or(this=false, expression=exp.Is(this=of.copy(), expression=exp.Null())))


def _rows_below(query: Flat) -> tuple[Flat, Flat]:
    """What is grouped, with the columns that it is grouped by and aggregated over, and the groups above it."""
    groups = query.groups
    assert groups is not None
    seen = (*groups.keys, *groups.calls, *groups.having, *query.outputs.values())
    columns = dict.fromkeys(one for expression in seen for one in expression.find_all(exp.Column))
    names = {one: f"c{place}" for place, one in enumerate(columns)}

    def over(expression: exp.Expr) -> exp.Expr:
        return expression.copy().transform(one)

    def one(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        if node not in names:
            raise NotStored(node)
        return column(None, names[node])

    below = Flat(query.places, query.where, {name: one.copy() for one, name in names.items()} or {"c": exp.true()})
    outputs = {name: over(output) for name, output in query.outputs.items()}
    return below, Flat((), (), outputs, groups.rewritten(over))
