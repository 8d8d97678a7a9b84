"""What a column's values may be, as far as its definition tells; when in doubt, floating.

Law: numbers of FLOAT and DOUBLE are not as other numbers: they have two zeroes, and sums that depend on the order
of adding. Text that meets a number becomes one of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from sqlglot import exp

from rollview.algebra.functions import function_name

FLOATING, TEXT, EXACT, BIG = "floating", "text", "exact", "big"
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Mod, exp.IntDiv, exp.Neg)
_ONE_OF = (exp.Paren, exp.Case, exp.If)
_NEVER = (exp.Boolean, exp.Null, exp.Predicate, exp.Connector, exp.Not)
_GIVING_TEXT = frozenset(
    (
        *("substr", "substring", "left", "right", "upper", "ucase", "lower", "lcase", "initcap"),
        *("trim", "ltrim", "rtrim", "lpad", "rpad"),
    )
)
_GIVING_WHOLE_NUMBERS = frozenset(
    (
        *("year", "quarter", "month", "day", "dayofmonth", "dayofweek", "dayofyear", "weekofyear", "hour", "minute"),
        *("length", "char_length"),
    )
)

Kinds = frozenset[str]
"""What a value may be. Text that meets a number becomes a number, and that may be a floating one. What is big may be
beyond the whole numbers that a DOUBLE tells apart."""


class HasKinds(Protocol):
    """A relation that knows the kinds of its columns."""

    def kinds_of(self, name: str) -> Kinds: ...


def may_float(rel: HasKinds, name: str) -> bool:
    """Whether the column may hold a floating number that is not normalised; when in doubt, yes."""
    return FLOATING in rel.kinds_of(name)


def kinds_of_type(type_: str) -> Kinds:
    if "float" in type_ or "double" in type_:
        return frozenset({FLOATING})
    if type_ == "boolean":
        return frozenset()
    if type_ == "bigint":
        return frozenset({EXACT, BIG})
    return frozenset({TEXT if type_.startswith(("string", "char", "varchar")) else EXACT})


def met(kinds: Iterable[Kinds]) -> Kinds:
    """Values of which Spark takes one, after giving all of them one type."""
    found = frozenset[str]().union(*kinds)
    return found | {FLOATING} if {TEXT, EXACT} <= found else found


def kinds_of_call(call: exp.Expr, rel: HasKinds) -> Kinds:
    """Of an aggregate call over columns of ``rel``."""
    call = call.this if isinstance(call, exp.Filter) else call
    if isinstance(call, exp.Count):
        return frozenset({EXACT})
    if not isinstance(call, exp.Min | exp.Max | exp.Sum) or not isinstance(call.this, exp.Column):
        return frozenset({FLOATING})
    found = rel.kinds_of(call.this.name)
    return _added(found) if isinstance(call, exp.Sum) else found


def _added(kinds: Kinds) -> Kinds:
    return kinds | {FLOATING} if TEXT in kinds else kinds


def kinds_of_expression(expression: exp.Expr, sources: Mapping[str, HasKinds]) -> Kinds:
    """Of an expression over columns ``alias.column``."""
    if isinstance(expression, exp.Column):
        return sources[expression.table].kinds_of(expression.name)
    if isinstance(expression, exp.Literal):
        number = FLOATING if "e" in expression.this.lower() else EXACT
        return frozenset({TEXT if expression.is_string else number})
    if isinstance(expression, exp.Cast):
        return _of_cast(expression.to)
    if isinstance(expression, _NEVER):
        return frozenset()
    called = function_name(expression)
    if called in _GIVING_TEXT or called in _GIVING_WHOLE_NUMBERS:
        return frozenset({TEXT if called in _GIVING_TEXT else EXACT})
    parts = (kinds_of_expression(child, sources) for child in expression.iter_expressions())
    if isinstance(expression, _ARITHMETIC):
        return _added(met(parts))
    one_of = isinstance(expression, _ONE_OF) or called == "coalesce"
    return met(parts) if one_of else frozenset({FLOATING})


def _of_cast(to: exp.DataType) -> Kinds:
    if to.is_type(*exp.DataType.TEXT_TYPES):
        return frozenset({TEXT})
    if to.is_type(exp.DType.BIGINT):
        return frozenset({EXACT, BIG})
    return frozenset({EXACT if to.is_type(*exp.DataType.INTEGER_TYPES, exp.DType.DECIMAL) else FLOATING})
