"""The average of decimals with many digits, from their exact sum and their number.

Law: total / n, rounded half away from zero to four digits more than the values have, as Spark's AVG rounds it. A plain
``/`` of so long a sum leaves too few digits behind the point. So the whole part and the digits that follow it are
divided apart, each without a rest, and what is left over decides on the last digit: total = q n + r, 10^k r = w n + y.
"""

from __future__ import annotations

from sqlglot import exp

from rollview.algebra.expressions import case, cast, number

_MORE_DIGITS = 4
"""Of an average behind the point than of its values: Spark's rule."""
_COUNT = "decimal(19,0)"
_MOST_DIGITS, _MOST_BEHIND, _MOST_BEFORE = 33, 6, 32
"""Of values: with these every step below is exact in the 38 digits that Spark has."""


def divides(precision: int, scale: int) -> bool:
    return precision <= _MOST_DIGITS and scale <= _MOST_BEHIND and precision - scale <= _MOST_BEFORE


def divided(total: exp.Expr, present: exp.Expr, precision: int, scale: int, result: str) -> exp.Expr:
    """``total``: of values with so many digits; ``present``: how many they are, at least one."""
    assert divides(precision, scale)
    behind = scale + _MORE_DIGITS
    count = cast(present, _COUNT)
    whole, rest = _quotient(cast(total, f"decimal({min(38, precision + 10)},{scale})"), count)
    factor = cast(exp.Literal.string(str(10**behind)), f"decimal({behind + 1},0)")
    digits, left = _quotient(exp.Mul(this=rest, expression=factor), count)
    twice = exp.Mul(this=left, expression=cast(number(2), "decimal(1,0)"))
    up = exp.GTE(this=twice, expression=count.copy())
    down = exp.LTE(this=twice.copy(), expression=exp.Neg(this=count.copy()))
    last = cast(case((up, number(1)), (down, number(-1)), otherwise=number(0)), "decimal(1,0)")
    rounded = exp.Paren(this=exp.Add(this=cast(digits, f"decimal({behind + 1},0)"), expression=last))
    unit = cast(exp.Literal.string(f"{10**-behind:.{behind}f}"), f"decimal({behind + 1},{behind})")
    behind_the_point = exp.Mul(this=rounded, expression=unit)
    return cast(
        exp.Paren(this=exp.Add(this=cast(whole, f"decimal({precision - scale},0)"), expression=behind_the_point)),
        result,
    )


def _quotient(value: exp.Expr, count: exp.Expr) -> tuple[exp.Expr, exp.Expr]:
    """The whole number of times that a count is in a value, and the rest, which has the value's sign."""
    rest = exp.Paren(this=exp.Mod(this=exp.Paren(this=value), expression=count.copy()))
    without = exp.Paren(this=exp.Sub(this=exp.Paren(this=value.copy()), expression=rest.copy()))
    return exp.Paren(this=exp.Div(this=without, expression=count.copy())), rest
