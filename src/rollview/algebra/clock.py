"""Words that Spark reads as the time at which it runs: ``DATE 'today'``, ``ts < 'now'``.

Law: recomputing a view on the same rows must give the same rows. Such a word is a text like any other until it becomes
a date or a timestamp, by a cast or beside one; where that is so, or may be, it is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlglot import exp
from sqlglot.optimizer.scope import traverse_scope

from rollview.algebra.functions import function_name
from rollview.algebra.resolve import Resolved
from rollview.algebra.text import place_of
from rollview.errors import NotDeterministic

_WORD = re.compile(r"\s*(now|today|tomorrow|yesterday)(\s.*)?", re.IGNORECASE | re.DOTALL)
_OF_TIME = re.compile("date|time|day|week|month|quarter|year|hour|minute|second|trunc")
_TIMES = ("date", "timestamp")

Types = Mapping[int, str]
"""Of the columns that come straight from a stored relation, by identity."""


def check_words(resolved: Resolved) -> None:
    types = _types(resolved)
    for literal in resolved.query.find_all(exp.Literal):
        if _WORD.fullmatch(literal.name) and _becomes_time(literal, types):
            line, column = place_of(literal if "line" in literal.meta else literal.parent or literal)
            raise NotDeterministic(
                f"A view cannot use '{literal.name}' as a time: its value is the time at which it runs.",
                line=line,
                column=column,
                hint="Compare with a date of your own, or CAST(… AS STRING) where text is meant.",
                function=literal.name,
            )


def _types(resolved: Resolved) -> Types:
    schemas = {relation.name.lower(): relation.schema for relation in resolved.reads}
    found: dict[int, str] = {}
    for scope in traverse_scope(resolved.query):
        for reference in scope.columns:
            source = scope.sources.get(reference.table)
            schema = schemas.get(source.name.lower()) if isinstance(source, exp.Table) else None
            declared = schema.find(reference.name) if schema is not None else None
            if declared is not None:
                found[id(reference)] = declared.type
    return found


def _becomes_time(literal: exp.Expr, types: Types) -> bool:
    node = literal
    while isinstance(node.parent, exp.Paren):
        node = node.parent
    parent = node.parent
    if isinstance(parent, exp.Cast):
        return _is_time(parent.to.sql("spark"))
    beside = [] if parent is None else [other for other in parent.iter_expressions() if other is not node]
    if isinstance(parent, exp.Predicate):
        return any(_may_be_time(other, types) for other in beside)
    named = function_name(parent) if parent is not None else None
    return named is not None and (bool(_OF_TIME.search(named)) or any(_is_column_of_time(o, types) for o in beside))


def _may_be_time(expression: exp.Expr, types: Types) -> bool:
    return any(
        _is_column_of_time(node, types)
        or (isinstance(node, exp.Column) and id(node) not in types)
        or (isinstance(node, exp.Cast) and _is_time(node.to.sql("spark")))
        or _OF_TIME.search(function_name(node) or "") is not None
        for node in expression.walk()
    )


def _is_column_of_time(node: exp.Expr, types: Types) -> bool:
    return _is_time(types.get(id(node), ""))


def _is_time(type_: str) -> bool:
    return type_.lower().startswith(_TIMES)
