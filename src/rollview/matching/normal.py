"""Expressions of one meaning get one spelling, so that they can be found by it.

Law: what has one normal form has one value in every row that the conditions leave. The converse does not hold: two
expressions may mean the same and be kept apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlglot import exp

from rollview.algebra.expressions import column, conjuncts
from rollview.matching.flat import Flat

_TURNED: dict[type[exp.Expr], type[exp.Expr]] = {exp.GT: exp.LT, exp.GTE: exp.LTE}
_EITHER_WAY = (exp.EQ, exp.NEQ, exp.NullSafeEQ)
_TAKEN_FOR_THEMSELVES = ("tinyint", "smallint", "int", "bigint", "string", "date", "boolean")


class Normal:
    """Normal forms over a query's columns. Columns that its conditions make equal are one."""

    def __init__(self, query: Flat) -> None:
        self._first: dict[exp.Expr, exp.Expr] = {}
        for condition in query.where:
            for part in conjuncts(condition):
                self._join(query, part)

    def _join(self, query: Flat, part: exp.Expr) -> None:
        left, right = part.args.get("this"), part.args.get("expression")
        if not isinstance(part, exp.EQ) or not isinstance(left, exp.Column) or not isinstance(right, exp.Column):
            return
        types = {query.leaf(one.table).types.get(one.name) for one in (left, right)}
        # Equal numbers of other types may be spelled differently: 1.0 and 1.00, 0.0 and -0.0.
        if len(types) == 1 and types.issubset(_TAKEN_FOR_THEMSELVES):
            one, other = sorted((self.of(left), self.of(right)), key=_spelled)
            self._first = {key: one if found == other else found for key, found in self._first.items()} | {other: one}

    def of(self, expression: exp.Expr, renamed: Mapping[str, str] | None = None) -> exp.Expr:
        """``renamed``: the places of another query, by alias."""
        return self._of(expression, renamed or {})

    def _of(self, node: exp.Expr, renamed: Mapping[str, str]) -> exp.Expr:
        if isinstance(node, exp.Paren):
            return self._of(node.this, renamed)
        if isinstance(node, exp.Column):
            plain = column(renamed.get(node.table, node.table), node.name)
            return self._first.get(plain, plain)
        made = type(node)(**{name: self._part(value, renamed) for name, value in node.args.items()})
        turned = _TURNED.get(type(made))
        if turned is not None:
            return turned(this=made.expression, expression=made.this)
        if isinstance(made, _EITHER_WAY):
            left, right = sorted((made.this, made.expression), key=_spelled)
            return type(made)(this=left, expression=right)
        return made

    def _part(self, value: object, renamed: Mapping[str, str]) -> object:
        if isinstance(value, exp.Expr):
            return self._of(value, renamed)
        return [self._part(one, renamed) for one in value] if isinstance(value, list) else value


def parts_of(conditions: Iterable[exp.Expr]) -> list[exp.Expr]:
    """Single conditions; BETWEEN is two."""
    found: list[exp.Expr] = []
    for condition in conditions:
        for part in conjuncts(condition):
            if isinstance(part, exp.Between) and not part.args.get("symmetric"):
                low, high = part.args["low"], part.args["high"]
                found += [exp.GTE(this=part.this, expression=low), exp.LTE(this=part.this, expression=high)]
            else:
                found.append(part)
    return found


def _spelled(expression: exp.Expr) -> str:
    return repr(expression)
