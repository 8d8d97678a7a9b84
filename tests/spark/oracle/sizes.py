"""How large a propagation query is once its subqueries stand where they are named, which is how Spark checks it."""

from __future__ import annotations

import sqlglot
from sqlglot import exp


def inlined_tables(sql: str) -> int:
    query = sqlglot.parse_one(sql, dialect="spark")
    with_ = query.args.get("with_")
    sizes: dict[str, int] = {}
    for cte in with_.expressions if with_ is not None else ():
        sizes[cte.alias] = sum(sizes.get(table.name, 1) for table in cte.this.find_all(exp.Table))
    if with_ is not None:
        with_.pop()
    return sum(sizes.get(table.name, 1) for table in query.find_all(exp.Table))
