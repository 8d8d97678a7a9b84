"""Aggregates that can be combined: the value of a bag follows from the values of its parts.

Law: agg(A + B) = combine(agg(A), agg(B)). Parts hold rows with a number of copies, so a part's value is written over
rows and their ``_count``. MIN, MAX and their like do not mind copies; counts and sums multiply by them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from rollview.algebra.expressions import all_of, big, cast, column, not_null
from rollview.core.names import COUNT

_ANY_COPIES = (exp.Min, exp.Max, exp.LogicalAnd, exp.LogicalOr, exp.BitwiseAndAgg, exp.BitwiseOrAgg)
_SMALL_INTEGERS = ("tinyint", "smallint", "int")
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_MOST_DIGITS = 17
"""A decimal of so many digits, times a number of copies, is summed up twice within the 38 digits that Spark has."""

TypeOf = Callable[[str], str | None]
"""The stored type of a column, where it is known."""


@dataclass(frozen=True, slots=True)
class Combined:
    """``part``: the value of a part. ``whole``: that of the whole, over the column that holds those of the parts."""

    part: exp.Expr
    whole: Callable[[exp.Column], exp.Expr]


def combined(call: exp.Expr, type_of: TypeOf) -> Combined | None:
    """None for a call that cannot be combined, or of which that is not known."""
    condition = call.expression.this if isinstance(call, exp.Filter) else None
    bare = call.this if isinstance(call, exp.Filter) else call
    if isinstance(bare, _ANY_COPIES):
        kind = type(bare)
        return Combined(call.copy(), lambda parts: kind(this=parts))
    if isinstance(bare.this, exp.Distinct):
        return None
    if isinstance(bare, exp.Count):
        return _count(bare, condition, type_of)
    return _sum(bare, condition, type_of) if isinstance(bare, exp.Sum) else None


def _count(call: exp.Count, condition: exp.Expr | None, type_of: TypeOf) -> Combined | None:
    operands = [] if isinstance(call.this, exp.Star) else [call.this, *call.expressions]
    if not all(isinstance(operand, exp.Column) and _is_grouped(type_of(operand.name)) for operand in operands):
        return None
    conditions = [*([] if condition is None else [condition]), *map(not_null, operands)]
    part = _filtered(exp.Sum(this=column(None, COUNT)), conditions)
    return Combined(part, lambda parts: cast(exp.Coalesce(this=exp.Sum(this=parts), expressions=[big(0)]), "bigint"))


def _sum(call: exp.Sum, condition: exp.Expr | None, type_of: TypeOf) -> Combined | None:
    type_ = type_of(call.this.name) if isinstance(call.this, exp.Column) else None
    decimal = _DECIMAL.fullmatch(type_ or "")
    conditions = [] if condition is None else [condition]
    if type_ in _SMALL_INTEGERS:
        factor, result = cast(column(None, COUNT), "bigint"), "bigint"
    elif decimal is not None and int(decimal[1]) <= _MOST_DIGITS:
        factor, result = cast(column(None, COUNT), "decimal(10,0)"), f"decimal({int(decimal[1]) + 10},{decimal[2]})"
    else:
        return None
    part = exp.Sum(this=exp.Mul(this=call.this.copy(), expression=factor))
    return Combined(_filtered(part, conditions), lambda parts: cast(exp.Sum(this=parts), result))


def _is_grouped(type_: str | None) -> bool:
    """Whether rows with such a column can be told apart by a window."""
    return type_ is not None and "map<" not in type_


def _filtered(call: exp.Expr, conditions: list[exp.Expr]) -> exp.Expr:
    return exp.Filter(this=call, expression=exp.Where(this=all_of(conditions))) if conditions else call
