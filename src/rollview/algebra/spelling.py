"""Expressions as a view's author would write them, for ``explain``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from sqlglot import exp

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

Origin = Callable[[exp.Column], exp.Expr]
"""What a column stands for."""


def followed(expression: exp.Expr, origin: Origin) -> exp.Expr:
    """The expression with each of its columns replaced by what it stands for."""
    return expression.copy().transform(lambda node: origin(node) if isinstance(node, exp.Column) else node)


def spelled(expression: exp.Expr, origin: Origin) -> str:
    found = followed(expression, origin)
    for part in found.find_all(exp.Identifier):
        part.set("quoted", not _PLAIN.fullmatch(part.name))
    return found.sql("spark")


def spelled_pairs(pairs: Iterable[tuple[str, str]], left: Origin, right: Origin) -> str:
    """The columns that a join compares."""
    return ", ".join(f"{spelled_column(ours, left)} = {spelled_column(theirs, right)}" for ours, theirs in pairs)


def spelled_column(name: str, origin: Origin) -> str:
    return spelled(exp.Column(this=exp.to_identifier(name)), origin)
