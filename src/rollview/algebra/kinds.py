"""What a column's values may be, as far as its definition tells; when in doubt, floating.

Law: numbers of FLOAT and DOUBLE are not as other numbers: they have two zeroes, and sums that depend on the order
of adding. Text that meets a number becomes one of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from rollview.algebra.functions import function_name
from rollview.algebra.tree import Aggregate, Block, Leaf, OuterJoin, Rel, Union

FLOATING, TEXT, EXACT, BIG = "floating", "text", "exact", "big"
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Mod, exp.IntDiv, exp.Neg)
_ONE_OF = (exp.Paren, exp.Case, exp.If)
_NEVER = (exp.Boolean, exp.Null, exp.Predicate, exp.Connector, exp.Not)

Kinds = frozenset[str]
"""What a value may be. Text that meets a number becomes a number, and that may be a floating one. What is big may be
beyond the whole numbers that a DOUBLE tells apart."""


def may_float(rel: Rel, name: str) -> bool:
    """Whether the column may hold a floating number that is not normalised; when in doubt, yes."""
    return FLOATING in kinds_of(rel, name)


def kinds_of(rel: Rel, name: str) -> Kinds:
    match rel:
        case Leaf():
            return kinds_of_type(rel.types.get(name, ""))
        case Block():
            sources = {source.alias: source.rel for source in rel.sources}
            return _of_expression(next(output.expression for output in rel.outputs if output.name == name), sources)
        case Union():
            at = rel.columns.index(name)
            return _met(kinds_of(side, side.columns[at]) for side in rel.inputs)
        case OuterJoin():
            return kinds_of(rel.left if name in rel.left.columns else rel.right, name)
        case Aggregate() if name not in rel.keys:
            return _of_call(rel, name)
    return kinds_of(rel.input, name) - {FLOATING}


def kinds_of_type(type_: str) -> Kinds:
    if "float" in type_ or "double" in type_:
        return frozenset({FLOATING})
    if type_ == "boolean":
        return frozenset()
    if type_ == "bigint":
        return frozenset({EXACT, BIG})
    return frozenset({TEXT if type_.startswith(("string", "char", "varchar")) else EXACT})


def _met(kinds: Iterable[Kinds]) -> Kinds:
    """Values of which Spark takes one, after giving all of them one type."""
    found = frozenset[str]().union(*kinds)
    return found | {FLOATING} if {TEXT, EXACT} <= found else found


def _of_call(rel: Aggregate, name: str) -> Kinds:
    call = next(output.expression for output in rel.aggregates if output.name == name)
    call = call.this if isinstance(call, exp.Filter) else call
    if isinstance(call, exp.Count):
        return frozenset({EXACT})
    if not isinstance(call, exp.Min | exp.Max | exp.Sum) or not isinstance(call.this, exp.Column):
        return frozenset({FLOATING})
    found = kinds_of(rel.input, call.this.name)
    return _added(found) if isinstance(call, exp.Sum) else found


def _added(kinds: Kinds) -> Kinds:
    return kinds | {FLOATING} if TEXT in kinds else kinds


def _of_expression(expression: exp.Expr, sources: dict[str, Rel]) -> Kinds:
    if isinstance(expression, exp.Column):
        return kinds_of(sources[expression.table], expression.name)
    if isinstance(expression, exp.Literal):
        number = FLOATING if "e" in expression.this.lower() else EXACT
        return frozenset({TEXT if expression.is_string else number})
    if isinstance(expression, exp.Cast):
        return _of_cast(expression.to)
    if isinstance(expression, _NEVER):
        return frozenset()
    parts = (_of_expression(child, sources) for child in expression.iter_expressions())
    if isinstance(expression, _ARITHMETIC):
        return _added(_met(parts))
    one_of = isinstance(expression, _ONE_OF) or function_name(expression) == "coalesce"
    return _met(parts) if one_of else frozenset({FLOATING})


def _of_cast(to: exp.DataType) -> Kinds:
    if to.is_type(*exp.DataType.TEXT_TYPES):
        return frozenset({TEXT})
    if to.is_type(exp.DType.BIGINT):
        return frozenset({EXACT, BIG})
    return frozenset({EXACT if to.is_type(*exp.DataType.INTEGER_TYPES, exp.DType.DECIMAL) else FLOATING})
