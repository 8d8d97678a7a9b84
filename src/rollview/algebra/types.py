"""The types of columns, as far as the stored relations tell them, and when a comparison takes each value for itself.

Law: ``=`` casts sides of different types to a third, and that may take different values for one: 1 equals '1' and '01'.
So what holds of a key holds of what it is compared with only where both have one type, or both are integers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from sqlglot import exp

from rollview.algebra.operator import Input

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_TEXTS = ("char(", "varchar(")


def compared_one_to_one(sources: Iterable[Input], left: exp.Column, right: exp.Column) -> bool:
    """Whether ``left = right`` over the inputs holds for equal values only; when in doubt, no."""
    rels = {source.alias: source.rel for source in sources}
    ours, theirs = (rels[side.table].type_of(side.name) for side in (left, right))
    return ours is not None and (ours == theirs or (ours in _INTEGERS and theirs in _INTEGERS))


def compared_as(type_: str | None) -> str | None:
    """Text of limited length is compared as text."""
    return "string" if type_ is not None and type_.startswith(_TEXTS) else type_


def type_of_expression(expression: exp.Expr, type_of: Callable[[exp.Column], str | None]) -> str | None:
    """What Spark makes of an expression over columns of these types, where that is plain; else None."""
    if isinstance(expression, exp.Column):
        return type_of(expression)
    if isinstance(expression, exp.Paren | exp.Neg):
        return type_of_expression(expression.this, type_of)
    if isinstance(expression, exp.Predicate | exp.Connector | exp.Not | exp.Boolean):
        return "boolean"
    if isinstance(expression, exp.Literal):
        return "string" if expression.is_string else _type_of_number(expression.this)
    if isinstance(expression, exp.Cast):
        return compared_as(expression.to.sql("spark").lower().replace(" ", ""))
    if isinstance(expression, exp.Add | exp.Sub | exp.Mul):
        sides = [type_of_expression(side, type_of) for side in (expression.this, expression.expression)]
        known = [side for side in sides if side in _INTEGERS]
        return max(known, key=_INTEGERS.index) if len(known) == len(sides) else None
    return None


def type_of_call(call: exp.Expr, type_of: Callable[[str], str | None]) -> str | None:
    """The type of an aggregate over a column, where that is plain; else None."""
    call = call.this if isinstance(call, exp.Filter) else call
    if isinstance(call, exp.Count):
        return "bigint"
    if not isinstance(call, exp.Min | exp.Max | exp.Sum) or not isinstance(call.this, exp.Column):
        return None
    type_ = type_of(call.this.name)
    if not isinstance(call, exp.Sum):
        return type_
    decimal = _DECIMAL.fullmatch(type_ or "")
    if decimal is not None:
        return f"decimal({min(38, int(decimal[1]) + 10)},{decimal[2]})"
    return "bigint" if type_ in _INTEGERS else None


def _type_of_number(text: str) -> str | None:
    return "int" if text.isdigit() and int(text) < 2**31 else None
