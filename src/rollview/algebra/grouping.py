"""A SELECT with GROUP BY, HAVING or aggregates, taken apart.

Law: it is π(σ_having(γ(π(…)))). Keys and the arguments of calls are computed below, so that γ sees only columns; what
is done with them is computed above.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from rollview.algebra.expressions import column, conjuncts
from rollview.algebra.functions import is_aggregate, is_aggregate_call
from rollview.algebra.operator import Output
from rollview.algebra.pieces import NotIncremental

_GROUPS = "g"


@dataclass(frozen=True, slots=True)
class Grouped:
    """``below``: what γ reads. ``keys`` and ``calls``: its own. ``having`` and ``outputs``: over it, as ``alias``."""

    below: tuple[Output, ...]
    keys: tuple[str, ...]
    calls: tuple[Output, ...]
    having: tuple[exp.Expr, ...]
    outputs: tuple[Output, ...]
    alias: str = _GROUPS


def group_keys(
    group: exp.Group | None, outputs: Sequence[Output], translate: Callable[[exp.Expr], exp.Expr]
) -> list[exp.Expr]:
    """The expressions that GROUP BY names, each once."""
    if group is None:
        return []
    if group.find(exp.GroupingSets, exp.Cube, exp.Rollup):
        raise NotIncremental("GROUPING SETS", "grouping sets, cube and rollup have no incremental rule yet", group)
    if group.args.get("all"):
        keys = [output.expression for output in outputs if not is_aggregate(output.expression)]
    else:
        keys = [translate(key) for key in group.expressions]
    distinct: list[exp.Expr] = []
    for key in keys:
        if is_aggregate(key):
            raise NotIncremental("GROUP BY", "a grouping key holds an aggregate", key)
        if key not in distinct:
            distinct.append(key)
    return distinct


def grouped(keys: Sequence[exp.Expr], outputs: Sequence[Output], having: exp.Expr | None) -> Grouped:
    apart = _Apart(keys)
    finals = tuple(Output(output.name, apart.above(output.expression)) for output in outputs)
    conditions = tuple(conjuncts(apart.above(having))) if having is not None else ()
    if not keys and not apart.calls:
        # the one group of a query that only has HAVING is told by its one row
        apart.calls.append(Output("v1", exp.Count(this=exp.Star())))
    names = tuple(key.name for key in apart.keys)
    below = (*apart.keys, *apart.arguments) or (Output("row", exp.true()),)
    return Grouped(below, names, tuple(apart.calls), conditions, finals)


class _Apart:
    """What is found below γ and in it, while what stands above it is rewritten."""

    def __init__(self, keys: Sequence[exp.Expr]) -> None:
        self.keys = [Output(f"k{i}", key) for i, key in enumerate(keys, 1)]
        self.arguments: list[Output] = []
        self.calls: list[Output] = []

    def above(self, expression: exp.Expr) -> exp.Expr:
        """An expression over the groups."""
        key = next((key for key in self.keys if key.expression == expression), None)
        if key is not None and expression.find(exp.Column) is not None:
            return column(_GROUPS, key.name)
        if isinstance(expression, exp.Filter) or is_aggregate_call(expression):
            return column(_GROUPS, _once(self.calls, "v", _lift_arguments(expression, self._argument)))
        if isinstance(expression, exp.Column):
            raise NotIncremental(
                "GROUP BY", f"column '{expression.name}' is neither grouped nor aggregated", expression
            )
        copy = expression.copy()
        for child in list(copy.iter_expressions()):
            child.replace(self.above(child))
        return copy

    def _argument(self, expression: exp.Expr) -> exp.Column:
        return column(None, _once(self.arguments, "a", expression))


def _once(outputs: list[Output], letter: str, expression: exp.Expr) -> str:
    """The name of the expression among the outputs, to which it is added if it is new."""
    found = next((output for output in outputs if output.expression == expression), None)
    if found is None:
        found = Output(f"{letter}{len(outputs) + 1}", expression)
        outputs.append(found)
    return found.name


def _lift_arguments(call: exp.Expr, argument: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    copy = call.copy()
    inner = copy.this if isinstance(copy, exp.Filter) else copy
    if isinstance(copy, exp.Filter):
        condition = copy.expression.this
        condition.replace(argument(condition.copy()))
    if isinstance(inner, exp.WithinGroup):
        raise NotIncremental("WITHIN GROUP", "ordered-set aggregates have no incremental rule yet", call)
    for operand in _operands(inner):
        if not isinstance(operand, exp.Star):
            operand.replace(argument(operand.copy()))
    return copy


def _operands(call: exp.Expr) -> list[exp.Expr]:
    """The value arguments of an aggregate call; constants that steer it (an accuracy, a percentage) stay in place."""
    found: list[exp.Expr] = []
    for i, child in enumerate(call.iter_expressions()):
        if isinstance(child, exp.Distinct):
            found.extend(child.expressions)
        elif i > 0 and child.find(exp.Column) is None:
            continue
        else:
            found.append(child)
    return found
