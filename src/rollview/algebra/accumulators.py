"""Linear aggregates as sums: what is added up for each, and how its value is read off the sums.

Law: an accumulator of a bag is the sum over its rows, so that of a difference is the difference. Sums are kept in
types in which adding is exact: whole numbers in BIGINT or DECIMAL(38,0), decimals in DECIMAL(38,s). A DOUBLE x is
kept as a decimal part (9 digits after the point, exact), a rest below that, and counts of NaN and ±∞, so that 1e16 in
and out leaves nothing behind and a NaN that leaves takes its NaN with it. What is beyond 1e18 is summed apart and
forgotten when the last of it leaves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from rollview.algebra.combining import average
from rollview.algebra.expressions import (
    all_of,
    any_of,
    big,
    call,
    case,
    cast,
    column,
    not_null,
    number,
)
from rollview.algebra.functions import function_name
from rollview.algebra.operator import Output
from rollview.algebra.operators.aggregate import Aggregate
from rollview.core.names import COUNT

ROWS = "_rv_rows"
_INTEGERS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
_FLOATS = ("float", "double")
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_HUGE = "1e18"


@dataclass(frozen=True, slots=True)
class Accumulator:
    """One hidden column: its type, and what a row adds to it when inserted."""

    name: str
    type: str
    term: exp.Expr

    @property
    def increment(self) -> exp.Expr:
        """The sum over signed rows."""
        signed = case(
            (exp.LT(this=column(None, COUNT), expression=number(0)), exp.Neg(this=exp.Paren(this=self.term.copy()))),
            otherwise=self.term.copy(),
        )
        return cast(exp.Coalesce(this=exp.Sum(this=signed), expressions=[cast(number(0), self.type)]), self.type)


@dataclass(slots=True)
class AccumulatorSet:
    """The accumulators a set of aggregates needs; equal ones are kept once."""

    types: Mapping[str, str]
    kept: list[Accumulator] = field(default_factory=list)

    def add(self, prefix: str, type_: str, term: exp.Expr) -> exp.Column:
        found = next((a for a in self.kept if a.term == term and a.type == type_), None)
        if found is None:
            found = Accumulator(f"_rv_{prefix}{len(self.kept) + 1}", type_, term)
            self.kept.append(found)
        return column(None, found.name)


Rule = Callable[[exp.Expr, exp.Column, str, str, AccumulatorSet], exp.Expr]
"""Value, count of its rows, its type, the result's type."""


class NotLinear(Exception):
    """The aggregate cannot be kept by adding up; says why."""


def linear_value(output: Output, result: str, ledger: AccumulatorSet) -> exp.Expr:
    """The aggregate's value over accumulators, cast to Spark's own type for it."""
    aggregate, condition = output.expression, None
    if isinstance(aggregate, exp.Filter):
        aggregate, condition = aggregate.this, aggregate.expression.this
    if isinstance(aggregate.this, exp.Distinct):
        raise NotLinear("DISTINCT inside an aggregate is not linear")
    if isinstance(aggregate, exp.Count):
        return cast(_count(aggregate, condition, ledger), result)
    rule = _RULES.get(type(aggregate))
    if rule is None:
        raise NotLinear(f"{_spelled(aggregate)} is not linear")
    operand = aggregate.this
    if not isinstance(operand, exp.Column):
        raise NotLinear(f"{_spelled(aggregate)} takes more than one value")
    type_ = ledger.types[operand.name]
    present = ledger.add("n", "bigint", _one_if(all_of([*_given(condition), not_null(operand)])))
    value = case((all_of([*_given(condition), not_null(operand)]), operand))
    return rule(value, present, type_, result, ledger)


def _spelled(aggregate: exp.Expr) -> str:
    return str(function_name(aggregate)).upper()


def _given(condition: exp.Expr | None) -> list[exp.Expr]:
    return [] if condition is None else [condition]


def _one_if(condition: exp.Expr) -> exp.Expr:
    return case((condition, big(1)), otherwise=big(0))


def _count(aggregate: exp.Count, condition: exp.Expr | None, ledger: AccumulatorSet) -> exp.Expr:
    operands = [] if isinstance(aggregate.this, exp.Star) else [aggregate.this, *aggregate.expressions]
    conditions = [*_given(condition), *[not_null(operand) for operand in operands]]
    return ledger.add("n", "bigint", _one_if(all_of(conditions))) if conditions else column(None, ROWS)


def _sum(value: exp.Expr, present: exp.Column, type_: str, result: str, ledger: AccumulatorSet) -> exp.Expr:
    return case((_positive(present), cast(_total(value, type_, ledger), result)))


def _average(value: exp.Expr, present: exp.Column, type_: str, result: str, ledger: AccumulatorSet) -> exp.Expr:
    total = _total(value, type_, ledger)
    quotient = average(total, present, type_, result)
    if quotient is None:
        raise NotLinear(f"AVG of {type_} needs more digits than an exact sum leaves")
    return case((_positive(present), quotient))


def _moments(value: exp.Expr, present: exp.Column, type_: str, ledger: AccumulatorSet) -> exp.Expr:
    """Σ(x − mean)² as DOUBLE.

    With q near the mean and r = Σx − nq it is Σx² − q(Σx + r) − r²/n; all but the last step is exact.
    """
    if type_ in _INTEGERS and type_ != "bigint":
        scale = 0
    else:
        decimal = _DECIMAL.fullmatch(type_)
        if decimal is None:
            raise NotLinear(f"variance of {type_} would lose digits as a difference of sums")
        precision, scale = int(decimal.group(1)), int(decimal.group(2))
        if scale > 3 or precision > 15:
            raise NotLinear(f"variance of {type_} needs more digits than an exact sum leaves")
    kept = f"decimal(38,{scale})"
    is_decimal = type_ not in _INTEGERS
    total = _decimal_total(value, scale, ledger) if is_decimal else ledger.add("s", kept, cast(value, kept))
    square = cast(value, f"decimal(19,{scale})")
    squares = ledger.add(
        "q",
        f"decimal(38,{2 * scale})",
        cast(exp.Mul(this=square, expression=square.copy()), f"decimal(38,{2 * scale})"),
    )
    near = exp.Paren(
        this=cast(exp.Div(this=cast(total, "double"), expression=cast(present, "double")), f"decimal(18,{scale})")
    )
    times = cast(exp.Mul(this=near.copy(), expression=cast(present, "decimal(18,0)")), kept)
    rest = exp.Paren(this=cast(exp.Sub(this=total.copy(), expression=times), kept))
    shifted = cast(exp.Add(this=total.copy(), expression=rest.copy()), f"decimal(37,{scale})")
    around = exp.Sub(
        this=squares, expression=cast(exp.Mul(this=near.copy(), expression=shifted), f"decimal(38,{2 * scale})")
    )
    rest_squared = exp.Div(
        this=exp.Paren(this=exp.Mul(this=cast(rest, "double"), expression=cast(rest, "double"))),
        expression=cast(present, "double"),
    )
    return exp.Sub(this=cast(exp.Paren(this=around), "double"), expression=rest_squared)


def _variance(*, sample: bool, root: bool) -> Rule:
    def rule(value: exp.Expr, present: exp.Column, type_: str, result: str, ledger: AccumulatorSet) -> exp.Expr:
        spread = exp.Paren(this=_moments(value, present, type_, ledger))
        below = exp.Sub(this=present.copy(), expression=number(1)) if sample else present.copy()
        quotient: exp.Expr = exp.Div(this=spread, expression=cast(exp.Paren(this=below), "double"))
        quotient = call("greatest", cast(number(0), "double"), quotient)
        enough = exp.GT(this=present.copy(), expression=number(1 if sample else 0))
        return case((enough, cast(call("sqrt", quotient) if root else quotient, result)))

    return rule


def _total(value: exp.Expr, type_: str, ledger: AccumulatorSet) -> exp.Expr:
    if type_ in _INTEGERS:
        kept = "decimal(38,0)" if type_ == "bigint" else "bigint"
        return ledger.add("s", kept, cast(value, kept))
    decimal = _DECIMAL.fullmatch(type_)
    if decimal is not None:
        return _decimal_total(value, int(decimal.group(2)), ledger)
    if type_ in _FLOATS:
        return _float_total(cast(value, "double"), ledger)
    raise NotLinear(f"a sum of {type_} is not kept by adding up")


def _decimal_total(value: exp.Expr, scale: int, ledger: AccumulatorSet) -> exp.Expr:
    """Spark adds up decimals with ten digits more than they have: the sum is made wider, and not each of its rows."""
    return ledger.add("s", f"decimal(38,{scale})", value)


def _float_total(value: exp.Expr, ledger: AccumulatorSet) -> exp.Expr:
    infinity = cast(exp.Literal.string("Infinity"), "double")
    nan = cast(exp.Literal.string("NaN"), "double")
    is_nan = exp.EQ(this=value.copy(), expression=nan.copy())
    is_up = exp.EQ(this=value.copy(), expression=infinity.copy())
    is_down = exp.EQ(this=value.copy(), expression=exp.Neg(this=infinity.copy()))
    limit = cast(exp.Literal.number(_HUGE), "double")
    is_usual = exp.LT(this=exp.Abs(this=value.copy()), expression=limit)
    is_huge = all_of(
        [
            exp.GTE(this=exp.Abs(this=value.copy()), expression=limit.copy()),
            exp.Not(this=exp.Paren(this=any_of([is_nan, is_up, is_down]))),
        ]
    )
    zero = cast(number(0), "double")
    head = cast(case((is_usual.copy(), value.copy()), otherwise=zero.copy()), "decimal(38,9)")
    rest = case((is_usual.copy(), exp.Sub(this=value.copy(), expression=cast(head, "double"))), otherwise=zero.copy())
    nans, ups, downs, huge_rows = (
        ledger.add("n", "bigint", _one_if(condition)) for condition in (is_nan, is_up, is_down, is_huge)
    )
    heads = ledger.add("s", "decimal(38,9)", head)
    rests = ledger.add("r", "double", rest)
    huge = ledger.add("h", "double", case((is_huge.copy(), value.copy()), otherwise=zero.copy()))
    finite = exp.Add(
        this=exp.Add(this=cast(heads, "double"), expression=rests),
        expression=case((_positive(huge_rows), huge), otherwise=zero.copy()),
    )
    return case(
        (any_of([_positive(nans), exp.Paren(this=all_of([_positive(ups), _positive(downs)]))]), nan),
        (_positive(ups), infinity),
        (_positive(downs), exp.Neg(this=infinity.copy())),
        otherwise=finite,
    )


def _positive(count: exp.Expr) -> exp.Expr:
    return exp.GT(this=count.copy(), expression=number(0))


_RULES: dict[type[exp.Expr], Rule] = {
    exp.Sum: _sum,
    exp.Avg: _average,
    exp.Variance: _variance(sample=True, root=False),
    exp.VariancePop: _variance(sample=False, root=False),
    exp.Stddev: _variance(sample=True, root=True),
    exp.StddevSamp: _variance(sample=True, root=True),
    exp.StddevPop: _variance(sample=False, root=True),
}


@dataclass(frozen=True, slots=True)
class Accumulated:
    """The accumulators of an aggregate and, per output, its value over them."""

    accumulators: tuple[Accumulator, ...]
    values: Mapping[str, exp.Expr]


def value_over(kept: Accumulated, types: Mapping[str, str], call: exp.Expr) -> exp.Expr | None:
    """The value of another call over columns of the same input, where what is kept already tells it."""
    result = _result_type(call, types)
    ledger = AccumulatorSet(types, list(kept.accumulators))
    try:
        value = None if result is None else linear_value(Output("", call), result, ledger)
    except NotLinear:
        return None
    return value if len(ledger.kept) == len(kept.accumulators) else None


def _result_type(call: exp.Expr, types: Mapping[str, str]) -> str | None:
    """Spark's type of a call, for those that can follow from the accumulators of others."""
    plain = call.this if isinstance(call, exp.Filter) else call
    if isinstance(plain, exp.Count):
        return "bigint"
    if not isinstance(plain.this, exp.Column) or type(plain) not in _RULES:
        return None
    type_ = types[plain.this.name]
    decimal = _DECIMAL.fullmatch(type_)
    if isinstance(plain, exp.Sum) and decimal is None:
        return "bigint" if type_ in _INTEGERS else "double"
    if decimal is None or not isinstance(plain, exp.Sum | exp.Avg):
        return "double"
    precision, scale = int(decimal.group(1)), int(decimal.group(2))
    if isinstance(plain, exp.Sum):
        return f"decimal({min(38, precision + 10)},{scale})"
    return f"decimal({precision + 4},{scale + 4})"


def accumulate(rel: Aggregate, types: Mapping[str, str], results: Mapping[str, str]) -> Accumulated:
    """Raises NotLinear when one of the aggregates cannot be kept by adding up."""
    ledger = AccumulatorSet(types)
    values = {output.name: linear_value(output, results[output.name], ledger) for output in rel.aggregates}
    return Accumulated(tuple(ledger.kept), values)
