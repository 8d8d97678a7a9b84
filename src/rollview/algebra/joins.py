"""Joins whose columns meet by name, where sqlglot reads them otherwise than Spark does: refused.

Law: FROM means what Spark means by it. In ``a FULL JOIN b USING (k) JOIN c USING (k)`` the second join compares the key
of the first join's result, and after ``USING`` a column has the type of the side that it comes from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from rollview.algebra.by_name import is_by_name
from rollview.algebra.text import place_of
from rollview.core.schema import Schema
from rollview.errors import Unsupported


def check(query: exp.Query, schemas: Sequence[Schema]) -> None:
    for join in query.find_all(exp.Join):
        if join.this.args.get("joins"):
            raise _refusal(join, "whose ON stands behind another join", "Write the inner join in parentheses.")
    for select in query.find_all(exp.Select):
        _check_from(select.args.get("joins") or [])
        for join in select.args.get("joins") or []:
            _check_types(join, schemas)


def _check_from(joins: Sequence[exp.Join]) -> None:
    padded = False
    for join in joins:
        if padded and is_by_name(join):
            raise _refusal(join, "after a RIGHT or FULL join by name", "Write ON, or the first join as a subquery.")
        padded = padded or (is_by_name(join) and join.side in ("RIGHT", "FULL"))


def _check_types(join: exp.Join, schemas: Sequence[Schema]) -> None:
    for name in _names(join, schemas):
        types = {column.type for schema in schemas if (column := schema.find(name)) is not None}
        if len(types) > 1:
            listed = " and ".join(sorted(types))
            raise _refusal(join, f"over columns '{name}' of different types ({listed})", "Write ON.")


def _names(join: exp.Join, schemas: Sequence[Schema]) -> Iterator[str]:
    """The columns that may meet by name."""
    if join.method == "NATURAL":
        yield from {name.lower() for schema in schemas for name in schema.names}
    yield from (name.name for name in join.args.get("using") or ())


def _refusal(join: exp.Join, where: str, hint: str) -> Unsupported:
    line, column = place_of(join)
    words = f"{join.method} {join.side} JOIN" if join.method else f"{join.side} JOIN"
    using = " USING" if join.args.get("using") else ""
    return Unsupported(
        f"A view cannot use {' '.join(words.split())}{using} {where}.", line=line, column=column, hint=hint
    )
