"""Which columns of the relations it reads a query names.

Law: a column that is not here can go, or never come, and the query still has its meaning: after resolution every
column is named, ``*`` and USING included.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from sqlglot import exp
from sqlglot.optimizer.scope import traverse_scope

from rollview.algebra.resolve import Resolved


def columns_used(resolved: Resolved) -> Mapping[str, frozenset[str]]:
    """Folded names of columns by folded name of relation; a column whose owner is not sure is everybody's."""
    used: dict[str, set[str]] = defaultdict(set)
    everywhere: set[str] = set()
    for scope in traverse_scope(resolved.query):
        for column in scope.columns:
            owner = scope.sources.get(column.table)
            if isinstance(owner, exp.Table):
                used[owner.name.lower()].add(column.name.lower())
            elif owner is None:
                everywhere.add(column.name.lower())
    names = (relation.name.lower() for relation in resolved.reads)
    return {name: frozenset(used[name] | everywhere) for name in names}
