"""EXISTS and IN as conditions of WHERE: semi and anti joins.

Law: a row fulfils ``EXISTS (…)`` iff it finds a partner, ``x IN (SELECT y …)`` iff it finds one with x = y; where
x or y is NULL neither is true. ``NOT EXISTS`` is true iff there is no partner. ``NOT IN`` is true iff there is none and
nothing was NULL: it is an anti join only where neither side can be NULL.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from rollview.algebra.functions import is_aggregate, is_generator
from rollview.algebra.operator import Operator
from rollview.algebra.operators.block import Block
from rollview.algebra.operators.leaf import Leaf
from rollview.algebra.pieces import NotIncremental

_SEMI, _ANTI = "LEFT SEMI JOIN", "LEFT ANTI JOIN"


@dataclass(frozen=True, slots=True)
class SubqueryTest:
    """``compared``: expressions over the outer query, each with what the subquery gives for it."""

    words: str
    node: exp.Expr
    query: exp.Select
    compared: tuple[tuple[exp.Expr, exp.Expr], ...]

    @property
    def minds_null(self) -> bool:
        return bool(self.compared) and self.words == _ANTI


def find_membership(condition: exp.Expr) -> SubqueryTest | None:
    """The condition as a membership, if it is one; raises NotIncremental for a subquery that is none of rows alone."""
    bare = condition.this.unnest() if isinstance(condition, exp.Not) else condition
    words = _ANTI if isinstance(condition, exp.Not) else _SEMI
    if isinstance(bare, exp.Exists):
        return SubqueryTest(words, condition, _rows(bare.this), ())
    if isinstance(bare, exp.In) and bare.args.get("query") is not None:
        query = _rows(bare.args["query"])
        asked = bare.this.expressions if isinstance(bare.this, exp.Tuple) else [bare.this]
        given = [item.unalias() for item in query.expressions]
        if len(asked) != len(given):
            raise NotIncremental("IN", "its sides differ in their number of columns", condition)
        return SubqueryTest(words, condition, query, tuple(zip(asked, given, strict=True)))
    return None


def _rows(query: exp.Expr) -> exp.Select:
    """A subquery that has a row for each row of its FROM and WHERE, or one for several."""
    found = query.unnest()
    plain = isinstance(found, exp.Select) and not any(
        found.args.get(clause) for clause in ("with_", "group", "having", "limit", "offset", "fetch", "qualify")
    )
    if not plain or any(is_aggregate(item) or any(map(is_generator, item.walk())) for item in found.expressions):
        raise NotIncremental("subquery", "only a plain SELECT … FROM … WHERE has an incremental rule here", query)
    assert isinstance(found, exp.Select)
    return found


def is_never_null(rel: Operator, name: str) -> bool:
    """Whether keys and constraints prove it; when in doubt, no."""
    if isinstance(rel, Leaf):
        return name in (*rel.constraints.primary_key, *rel.constraints.not_null)
    if not isinstance(rel, Block):
        return False
    expression = rel.output(name)
    return isinstance(expression, exp.Column) and is_never_null(rel.source(expression.table).rel, expression.name)
