"""Net effect that keeps −0.0 and 0.0 apart.

Law: grouping takes −0.0 for 0.0, and gives 0.0 back. A row that is netted and then looked at again must come back as it
was, or an expression above that can tell the two apart (a cast to STRING, a division) would give another row than it
gave before. So a column that may hold a floating number is grouped by its spelling too, and given back as it was.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from rollview.algebra.expressions import cast, column, named
from rollview.algebra.functions import function_name
from rollview.algebra.tree import Aggregate, Block, Distinct, Leaf, OuterJoin, Rel, Union
from rollview.core.names import COUNT

_KEEPS_KIND = (exp.Add, exp.Sub, exp.Mul, exp.Mod, exp.IntDiv, exp.Neg, exp.Paren, exp.Case, exp.If)
FLOATS = ("float", "double")
_NEVER = (exp.Boolean, exp.Null, exp.Predicate, exp.Connector, exp.Not, exp.Count)


def net(rel: Rel, rows: exp.Select, alias: str | None, extra: Sequence[exp.Column]) -> exp.Select:
    """Add up the counts of equal rows. ``rows``: FROM and its joins; ``extra`` columns are grouped by as well."""
    columns = [column(alias, name) for name in rel.columns]
    floating = {name for name in rel.columns if may_float(rel, name)}
    items = [named(exp.AnyValue(this=c.copy()), c.name) if c.name in floating else c for c in columns]
    spelled = [cast(c, "string") for c in columns if c.name in floating]
    total = named(exp.Sum(this=column(alias, COUNT)), COUNT)
    rows = rows.select(*items, total, *extra, copy=False)
    return rows.group_by(*columns, *spelled, *extra, copy=False)


def may_float(rel: Rel, name: str) -> bool:
    """Whether the column may hold a floating number that is not normalised; when in doubt, yes."""
    if isinstance(rel, Leaf):
        return any(kind in rel.types.get(name, "") for kind in FLOATS)
    if isinstance(rel, Block):
        sources = {source.alias: source.rel for source in rel.sources}
        output = next(output for output in rel.outputs if output.name == name)
        return _expression_may(output.expression, sources)
    if isinstance(rel, Union):
        at = rel.columns.index(name)
        return any(may_float(side, side.columns[at]) for side in rel.inputs)
    if isinstance(rel, OuterJoin):
        return may_float(rel.left if name in rel.left.columns else rel.right, name)
    return False if isinstance(rel, Distinct) or name in rel.keys else _aggregate_may(rel, name)


def _aggregate_may(rel: Aggregate, name: str) -> bool:
    call = next(output.expression for output in rel.aggregates if output.name == name)
    call = call.this if isinstance(call, exp.Filter) else call
    if isinstance(call, exp.Min | exp.Max | exp.Sum) and isinstance(call.this, exp.Column):
        return may_float(rel.input, call.this.name)
    return not isinstance(call, exp.Count)


def _expression_may(expression: exp.Expr, sources: dict[str, Rel]) -> bool:
    if isinstance(expression, exp.Column):
        return may_float(sources[expression.table], expression.name)
    if isinstance(expression, exp.Literal):
        return not expression.is_string and "e" in expression.this.lower()
    if isinstance(expression, exp.Cast):
        return not expression.to.is_type(*exp.DataType.INTEGER_TYPES, exp.DType.DECIMAL, *exp.DataType.TEXT_TYPES)
    if isinstance(expression, _KEEPS_KIND) or function_name(expression) == "coalesce":
        return any(_expression_may(child, sources) for child in expression.iter_expressions())
    return not isinstance(expression, _NEVER)
