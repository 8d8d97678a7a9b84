"""Aggregates that can be combined: the value of a bag follows from the values of its parts.

Law: agg(A + B) = combine(agg(A), agg(B)). Parts hold rows with a number of copies, so a part's value is written over
rows and their ``_count``. MIN, MAX and their like do not mind copies; counts and sums multiply by them. An average is a
sum and a count. What is DISTINCT is the same over rows of which each is there once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from rollview.algebra.expressions import all_of, big, case, cast, column, not_null, number
from rollview.algebra.functions import function_name
from rollview.algebra.long_division import divided, divides
from rollview.core.names import COUNT

_ANY_COPIES = {
    **{name: name for name in ("min", "max", "bool_and", "bool_or", "bit_and", "bit_or")},
    "every": "bool_and",
    "any": "bool_or",
    "some": "bool_or",
}
"""What copies do not change, and what it is called everywhere."""
_SMALL_INTEGERS = ("tinyint", "smallint", "int")
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_MOST_DIGITS = 27
"""A decimal of so many digits, times a number of copies, is exact within the 38 digits that Spark has."""
_MOST_DIGITS_OF_AVERAGE = 15
"""Of a decimal whose average is told by a sum: the quotient then has nine digits more than the result. With more digits
of its own it would have less, and a group of a million rows could be rounded twice."""

TypeOf = Callable[[str], str | None]
"""The type of a column, where it is known."""


@dataclass(frozen=True, slots=True)
class DistinctRows:
    """What a DISTINCT aggregate takes once: values of these columns, none of them NULL, where the condition holds."""

    operands: tuple[str, ...]
    condition: exp.Expr | None


@dataclass(frozen=True, slots=True)
class Combined:
    """``parts``: values of a part. ``whole``: that of the whole, over the columns that hold those of the parts."""

    parts: tuple[exp.Expr, ...]
    whole: Callable[[Sequence[exp.Column]], exp.Expr]


def distinct_rows(call: exp.Expr) -> DistinctRows | None:
    """None where DISTINCT is not written, or changes nothing."""
    bare, condition = _bare(call)
    if not isinstance(bare.this, exp.Distinct) or function_name(bare) in _ANY_COPIES:
        return None
    return DistinctRows(tuple(operand.name for operand in bare.this.expressions), condition)


def of_distinct(call: exp.Expr, columns: Sequence[exp.Column]) -> exp.Expr:
    """The call over rows that are there once: without DISTINCT and condition, over these columns instead."""
    bare, _ = _bare(call)
    return type(bare)(this=columns[0].copy())


def combined(call: exp.Expr, type_of: TypeOf, result: str | None = None, copies: str = COUNT) -> Combined | None:
    """None for a call that cannot be combined, or of which that is not known. ``result``: its type, where known."""
    bare, condition = _bare(call)
    conditions = [] if condition is None else [condition]
    name = function_name(bare) or ""
    if name in _ANY_COPIES:
        return _any_copies(_ANY_COPIES[name], _operand(bare), conditions)
    if isinstance(bare.this, exp.Distinct):
        return None
    if name == "count_if":
        return _count([*conditions, _operand(bare)], copies)
    if isinstance(bare, exp.Count):
        operands = [] if isinstance(bare.this, exp.Star) else [bare.this, *bare.expressions]
        known = all(_is_grouped(type_of(one.name)) for one in operands)
        return _count([*conditions, *map(not_null, operands)], copies) if known else None
    if not isinstance(bare, exp.Sum | exp.Avg) or not isinstance(bare.this, exp.Column):
        return None
    type_ = type_of(bare.this.name) or ""
    sum_ = _sum(bare.this, type_, conditions, copies)
    if isinstance(bare, exp.Sum) or sum_ is None:
        return sum_
    return _average(sum_, _count([*conditions, not_null(bare.this)], copies), type_, result)


def average(total: exp.Expr, present: exp.Expr, type_: str, result: str) -> exp.Expr | None:
    """As Spark divides; None where the quotient of an exact sum would be rounded otherwise."""
    decimal = _DECIMAL.fullmatch(type_)
    if decimal is None:
        return cast(exp.Div(this=cast(total, "double"), expression=cast(present, "double")), result)
    precision, scale = int(decimal[1]), int(decimal[2])
    if precision > _MOST_DIGITS_OF_AVERAGE:
        return divided(total, present, precision, scale, result) if divides(precision, scale) else None
    narrowed = cast(total, f"decimal({precision + 10},{scale})")
    return cast(exp.Div(this=narrowed, expression=cast(present, "decimal(20,0)")), result)


def _bare(call: exp.Expr) -> tuple[exp.Expr, exp.Expr | None]:
    return (call.this, call.expression.this) if isinstance(call, exp.Filter) else (call, None)


def _operand(bare: exp.Expr) -> exp.Expr:
    found: exp.Expr = bare.expressions[0] if isinstance(bare, exp.Anonymous) else bare.this
    return _operand(exp.Anonymous(expressions=found.expressions)) if isinstance(found, exp.Distinct) else found


def _any_copies(name: str, operand: exp.Expr, conditions: list[exp.Expr]) -> Combined:
    def called(value: exp.Expr) -> exp.Expr:
        return exp.Anonymous(this=name, expressions=[value.copy()])

    return Combined((_filtered(called(operand), conditions),), lambda parts: called(parts[0]))


def _count(conditions: list[exp.Expr], copies: str) -> Combined:
    def whole(parts: Sequence[exp.Column]) -> exp.Expr:
        return cast(exp.Coalesce(this=exp.Sum(this=parts[0].copy()), expressions=[big(0)]), "bigint")

    return Combined((_filtered(exp.Sum(this=column(None, copies)), conditions),), whole)


def _sum(operand: exp.Column, type_: str, conditions: list[exp.Expr], copies: str) -> Combined | None:
    """A total that does not fit its type fails, as it does where it is computed from nothing."""
    decimal = _DECIMAL.fullmatch(type_)
    value: exp.Expr = operand
    factor = cast(column(None, copies), "decimal(10,0)")
    if type_ in _SMALL_INTEGERS:
        factor, result = cast(column(None, copies), "bigint"), "bigint"
    elif type_ == "bigint":
        value, result = cast(operand, "decimal(20,0)"), "bigint"
    elif decimal is not None and int(decimal[1]) <= _MOST_DIGITS:
        result = f"decimal({int(decimal[1]) + 10},{decimal[2]})"
    else:
        return None
    part = exp.Sum(this=exp.Mul(this=value.copy(), expression=factor))
    return Combined((_filtered(part, conditions),), lambda parts: cast(exp.Sum(this=parts[0].copy()), result))


def _average(sum_: Combined, count: Combined, type_: str, result: str | None) -> Combined | None:
    told = "double" if result is None and type_ in _SMALL_INTEGERS else result
    # Spark adds whole numbers up as DOUBLE, and large ones are not exact in it
    if told is None or type_ == "bigint" or average(big(0), big(1), type_, told) is None:
        return None

    def whole(parts: Sequence[exp.Column]) -> exp.Expr:
        total, present = sum_.whole(parts[:1]), count.whole(parts[1:])
        quotient = average(total, present, type_, told)
        assert quotient is not None
        return case((exp.GT(this=present.copy(), expression=number(0)), quotient))

    return Combined((*sum_.parts, *count.parts), whole)


def _is_grouped(type_: str | None) -> bool:
    """Whether rows with such a column can be told apart by a window."""
    return type_ is not None and "map<" not in type_


def _filtered(call: exp.Expr, conditions: list[exp.Expr]) -> exp.Expr:
    return exp.Filter(this=call, expression=exp.Where(this=all_of(conditions))) if conditions else call
