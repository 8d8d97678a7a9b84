"""Net effect that keeps −0.0 and 0.0 apart.

Law: grouping takes −0.0 for 0.0, and gives 0.0 back. A row that is netted and then looked at again must come back as it
was, or an expression above that can tell the two apart (a cast to STRING, a division) would give another row than it
gave before. So a column that may hold a floating number is grouped by its spelling too, and given back as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from sqlglot import exp

from rollview.algebra.expressions import cast, column, named, number
from rollview.algebra.kinds import HasKinds, may_float
from rollview.algebra.operator import Operator
from rollview.core.names import COUNT, CSN


class Columns(HasKinds, Protocol):
    """Rows whose columns are known, and of which kinds they are."""

    @property
    def columns(self) -> tuple[str, ...]: ...


def identity(rel: Operator) -> list[exp.Expr]:
    """What tells the rows of ``rel`` apart."""
    columns = [column(None, name) for name in rel.columns]
    return [*columns, *[cast(c, "string") for c in columns if may_float(rel, c.name)]]


def net_by_csn(rel: Columns, rows: exp.Select) -> exp.Select:
    """The net effect of each csn. ``rows``: FROM."""
    query = net(rel, rows, None, [column(None, CSN)])
    return query.having(exp.NEQ(this=exp.Sum(this=column(None, COUNT)), expression=number(0)), copy=False)


def net(rel: Columns, rows: exp.Select, alias: str | None, extra: Sequence[exp.Column]) -> exp.Select:
    """Add up the counts of equal rows. ``rows``: FROM and its joins; ``extra`` columns are grouped by as well."""
    columns = [column(alias, name) for name in rel.columns]
    floating = {name for name in rel.columns if may_float(rel, name)}
    items = [named(exp.AnyValue(this=c.copy()), c.name) if c.name in floating else c for c in columns]
    spelled = [cast(c, "string") for c in columns if c.name in floating]
    total = named(exp.Sum(this=column(alias, COUNT)), COUNT)
    rows = rows.select(*items, total, *extra, copy=False)
    return rows.group_by(*columns, *spelled, *extra, copy=False)
