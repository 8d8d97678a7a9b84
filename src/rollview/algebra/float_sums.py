"""Aggregates whose last digits depend on the order in which Spark adds.

Law: what is computed again must be what it was, to the last bit, or the row that goes is not the row that is there. A
sum of DOUBLE in another order is another sum, so a group that has one is not aggregated again unless its sums are kept.
AVG adds up whole numbers as DOUBLE too, exactly while they are not too big.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from rollview.algebra.functions import function_name
from rollview.algebra.kinds import BIG, FLOATING, TEXT, kinds_of_type
from rollview.algebra.operator import Operator, walk
from rollview.algebra.operators.aggregate import Aggregate

_AVERAGES = ("avg", "mean", "try_avg")
_SUMS = ("sum", "try_sum", *_AVERAGES)
_ALWAYS = ("std", "stddev", "variance", "var_", "corr", "covar_", "kurtosis", "skewness", "regr_", "vector_")


def order_dependent_sum(rel: Operator, top: Aggregate | None, types: Mapping[str, str], *, kept: bool) -> str | None:
    """Why the view cannot be kept by aggregating groups again. ``types``: those of the columns that ``top`` reads;
    ``kept``: whether its sums are stored."""
    for node in walk(rel):
        if isinstance(node, Aggregate) and not (node is top and kept):
            for output in node.aggregates:
                name = _depends(node, output.expression, types if node is top else None)
                if name is not None:
                    return f"{name}: its last digits depend on the order of adding, and its sums are not stored here"
    return None


def _depends(node: Aggregate, call: exp.Expr, types: Mapping[str, str] | None) -> str | None:
    call = call.this if isinstance(call, exp.Filter) else call
    name = function_name(call) or ""
    if name.startswith(_ALWAYS) and name != "regr_count":
        return name.upper()
    depends = name in _SUMS and (_floating(node, call, types) or (name in _AVERAGES and _big(node, call)))
    return name.upper() if depends else None


def _floating(node: Aggregate, call: exp.Expr, types: Mapping[str, str] | None) -> bool:
    read = [column.name for column in call.find_all(exp.Column)]
    kinds = (node.input.kinds_of(name) if types is None else kinds_of_type(types[name]) for name in read)
    return any(kind & {FLOATING, TEXT} for kind in kinds)


def _big(node: Aggregate, call: exp.Expr) -> bool:
    return any(BIG in node.input.kinds_of(column.name) for column in call.find_all(exp.Column))
