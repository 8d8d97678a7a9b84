"""The pieces of a query that operators are built from. Their inputs are built already, and expressions name columns of
those.

``build`` reads a query and hands each piece to the operator with its words.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from rollview.algebra.operator import Input, Operator, Output
from rollview.core.schema import Constraints, Schema


class NotIncremental(Exception):
    """No incremental form (yet); carries the operator, the reason and the node."""

    def __init__(self, operator: str, reason: str, node: exp.Expr) -> None:
        super().__init__(reason)
        self.operator = operator
        self.reason = reason
        self.node = node


@dataclass(frozen=True, slots=True)
class TablePiece:
    """A stored relation in FROM."""

    name: str
    schema: Schema
    constraints: Constraints


@dataclass(frozen=True, slots=True)
class SelectPiece:
    """SELECT … FROM … WHERE with inner joins: expressions name columns ``alias.column``."""

    sources: tuple[Input, ...]
    where: tuple[exp.Expr, ...]
    outputs: tuple[Output, ...]


@dataclass(frozen=True, slots=True)
class JoinPiece:
    """A join that is not an inner one. ``on`` names columns ``l.column`` and ``r.column``.

    ``keys``: the pairs of columns that its equalities compare. ``hidden``: columns that are there only to be compared.
    No name is on both sides.
    """

    words: str
    node: exp.Expr
    left: Operator
    right: Operator
    on: tuple[exp.Expr, ...]
    keys: tuple[tuple[str, str], ...]
    hidden: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GroupPiece:
    """GROUP BY: columns of the input, and calls over columns of the input."""

    input: Operator
    keys: tuple[str, ...]
    aggregates: tuple[Output, ...]


@dataclass(frozen=True, slots=True)
class DistinctPiece:
    """SELECT DISTINCT, or a set operation without ALL."""

    input: Operator


@dataclass(frozen=True, slots=True)
class SetPiece:
    """UNION ALL and its like; columns by position."""

    words: str
    node: exp.SetOperation
    sides: tuple[Operator, ...]
