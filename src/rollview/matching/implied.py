"""Whether the conditions of a query leave out every row that a view's condition leaves out.

Law: yes is said only where it is proven; a comparison is true of a row only if it is neither false nor NULL there.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal

from sqlglot import exp

from rollview.algebra.operators.leaf import Leaf
from rollview.core.names import same

_NUMBERS = ("tinyint", "smallint", "int", "bigint")
_PLAIN_NUMBER = re.compile(r"\d{1,30}(\.\d{1,7})?")
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_MOST_DIGITS = 38
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE)

Value = Decimal | str


@dataclass(frozen=True, slots=True)
class Range:
    """A column's values between two bounds, as one condition tells them; ``among``: only these."""

    low: tuple[Value, bool] | None = None
    high: tuple[Value, bool] | None = None
    among: frozenset[Value] | None = None

    def holds(self, value: Value) -> bool:
        above = self.low is None or _less(self.low[0], value) or (self.low[1] and self.low[0] == value)
        below = self.high is None or _less(value, self.high[0]) or (self.high[1] and self.high[0] == value)
        return above and below and (self.among is None or value in self.among)

    def within(self, other: Range) -> bool:
        """Whether every value here is one there."""
        if self.among is not None:
            return all(other.holds(value) for value in self.among)
        if other.among is not None:
            return False
        return _no_lower(self.low, other.low) and _no_lower(_turned(self.high), _turned(other.high))


class _Turned:
    """A bound seen from the other side."""

    def __init__(self, value: Value) -> None:
        self.value = value


def _turned(bound: tuple[Value, bool] | None) -> tuple[_Turned, bool] | None:
    return None if bound is None else (_Turned(bound[0]), bound[1])


def _less(one: Value | _Turned, other: Value | _Turned) -> bool:
    if isinstance(one, _Turned) and isinstance(other, _Turned):
        return _less(other.value, one.value)
    if isinstance(one, Decimal) and isinstance(other, Decimal):
        return one < other
    return isinstance(one, str) and isinstance(other, str) and one < other


def _equal(one: Value | _Turned, other: Value | _Turned) -> bool:
    if isinstance(one, _Turned) and isinstance(other, _Turned):
        return one.value == other.value
    return one == other


def _no_lower(mine: tuple[Value | _Turned, bool] | None, theirs: tuple[Value | _Turned, bool] | None) -> bool:
    if theirs is None:
        return True
    if mine is None:
        return False
    return _less(theirs[0], mine[0]) or (_equal(mine[0], theirs[0]) and (theirs[1] or not mine[1]))


def implied(wanted: exp.Expr, given: Collection[exp.Expr], leaf_of: dict[str, Leaf]) -> bool:
    """All in normal form, over the same places."""
    if wanted in given:
        return True
    is_trivial = isinstance(wanted, exp.EQ) and wanted.this == wanted.expression
    bare = wanted.this if is_trivial else _not_null(wanted)
    if bare is not None:
        return _there(bare, given, leaf_of)
    found = range_of(wanted, leaf_of)
    if found is None:
        return False
    what, limits = found
    return any(mine[0] == what and mine[1].within(limits) for mine in _ranges(given, leaf_of))


def _there(what: exp.Expr, given: Iterable[exp.Expr], leaf_of: dict[str, Leaf]) -> bool:
    """Whether a column is never NULL where the conditions hold."""
    if not isinstance(what, exp.Column):
        return False
    constraints = leaf_of[what.table].constraints
    if any(same(name, what.name) for name in (*constraints.not_null, *constraints.primary_key)):
        return True
    return any(
        _not_null(part) == what
        or (isinstance(part, _COMPARISONS) and what in (part.this, part.expression))
        or (isinstance(part, exp.In) and part.this == what and not part.args.get("query"))
        for part in given
    )


def _not_null(part: exp.Expr) -> exp.Expr | None:
    """The x of ``x IS NOT NULL``."""
    inner = part.this if isinstance(part, exp.Not) else None
    if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null):
        found: exp.Expr = inner.this
        return found
    return None


def _ranges(given: Iterable[exp.Expr], leaf_of: dict[str, Leaf]) -> Iterator[tuple[exp.Column, Range]]:
    return (found for part in given if (found := range_of(part, leaf_of)) is not None)


def range_of(part: exp.Expr, leaf_of: dict[str, Leaf]) -> tuple[exp.Column, Range] | None:
    """What a comparison with constants, in normal form, leaves of a column; None of any other condition."""
    if isinstance(part, exp.In) and isinstance(part.this, exp.Column) and not part.args.get("query"):
        values = [_value(one, part.this, leaf_of) for one in part.expressions]
        told = [value for value in values if value is not None]
        return (part.this, Range(among=frozenset(told))) if told and len(told) == len(values) else None
    if not isinstance(part, exp.EQ | exp.LT | exp.LTE):
        return None
    left, right = part.this, part.expression
    if isinstance(left, exp.Column):
        value = _value(right, left, leaf_of)
        return None if value is None else (left, _below(part, value))
    if isinstance(right, exp.Column):
        value = _value(left, right, leaf_of)
        return None if value is None else (right, _above(part, value))
    return None


def _below(part: exp.Expr, value: Value) -> Range:
    if isinstance(part, exp.EQ):
        return Range(among=frozenset({value}))
    return Range(high=(value, isinstance(part, exp.LTE)))


def _above(part: exp.Expr, value: Value) -> Range:
    if isinstance(part, exp.EQ):
        return Range(among=frozenset({value}))
    return Range(low=(value, isinstance(part, exp.LTE)))


def _value(node: exp.Expr, beside: exp.Column, leaf_of: dict[str, Leaf]) -> Value | None:
    """A constant that is compared as it is spelled, beside a column of that type."""
    type_ = leaf_of[beside.table].types.get(beside.name, "")
    negative = isinstance(node, exp.Neg)
    literal = node.this if negative or (type_ == "date" and _is_date(node)) else node
    if not isinstance(literal, exp.Literal):
        return None
    if literal.is_string:
        text = str(literal.this)
        plain = type_ == "string" or (type_ == "date" and _DATE.fullmatch(text) is not None)
        return text if plain and not negative else None
    if type_ not in _NUMBERS and not type_.startswith("decimal("):
        return None
    if not _PLAIN_NUMBER.fullmatch(str(literal.this)):
        return None
    if not _is_compared_exactly(type_, str(literal.this)):
        return None
    number = Decimal(str(literal.this))
    # Unlike ``-``, this rounds nothing.
    return number.copy_negate() if negative else number


def _is_compared_exactly(type_: str, literal: str) -> bool:
    """Where both together need more than 38 digits, Spark rounds one of them before it compares: 0.5 is 1."""
    found = _DECIMAL.fullmatch(type_)
    if found is None:
        return True
    precision, scale = map(int, found.groups())
    whole, _, part = literal.partition(".")
    return max(precision - scale, len(whole)) + max(scale, len(part)) <= _MOST_DIGITS


def _is_date(node: exp.Expr) -> bool:
    """``DATE '2026-01-31'``."""
    return isinstance(node, exp.Cast) and node.to.is_type(exp.DType.DATE)
