"""DISTINCT below other operators. Law: a row is there once iff its count is positive; the key is the whole row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from rollview.algebra.expressions import AT, UNTIL, big, column, named, select, table
from rollview.algebra.rules import keyed
from rollview.algebra.tree import Distinct
from rollview.core.names import COUNT

if TYPE_CHECKING:
    from rollview.algebra.script import Script


def delta(script: Script, rel: Distinct) -> exp.Query:
    def evaluate(inputs: Sequence[str], moments: str) -> exp.Query:
        return select(*[column(None, name) for name in (*rel.columns, AT, UNTIL)]).distinct().from_(table(inputs[0]))

    return keyed.delta(script, rel, [(rel.input, rel.columns)], evaluate)


def old(script: Script, rel: Distinct) -> exp.Query:
    rows = select(*[column(None, name) for name in rel.columns]).distinct()
    distinct = rows.from_(table(keyed.old_rows(script, rel.input)))
    columns = [column(None, name) for name in rel.columns]
    return select(*columns, named(big(1), COUNT)).from_(distinct.subquery("d"))
