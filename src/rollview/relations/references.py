"""The tables a statement names, and the DataFrames that stand for them.

Law: every table reference that no CTE hides is a relation of the warehouse, found by its one-part name; nothing of the
user's text can reach a file, another catalog or a temporary view of the session, unless that was allowed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from sqlglot import exp

from rollview.algebra.expressions import identifier
from rollview.algebra.functions import builtin
from rollview.algebra.text import place_of
from rollview.algebra.unsafe import PATH
from rollview.algebra.words import in_words
from rollview.core.names import same
from rollview.engine.binding import new_place, prepare_placed
from rollview.errors import Unsafe, Unsupported

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PATH = re.compile(r"[/\\\\.:*]")


def run(spark: SparkSession, tree: exp.Expr, read: Callable[[str], DataFrame], *, outside: bool = False) -> DataFrame:
    """The query's rows, in its author's words; ``read`` gives the rows of a relation by name.

    ``outside``: see ``free_tables``.
    """
    bound = tree.copy()
    inputs: dict[str, DataFrame] = {}
    places: dict[str, str] = {}
    free = [(table, table.name.lower()) for table in free_tables(bound, outside=outside)]
    stem = new_place()
    for table, name in free:
        if name not in places:
            places[name] = f"{stem}_{len(places)}"
            inputs[places[name]] = read(table.name)
    spoken = in_words(bound, [(table, places[name]) for table, name in free])
    for table, name in free:
        if table.args.get("alias") is None:
            table.set("alias", exp.TableAlias(this=identifier(table.name)))
        table.set("this", identifier(places[name]))
    return prepare_placed(spoken, {place: place for place in inputs}).run(spark, inputs)


def free_tables(tree: exp.Expr, *, outside: bool = False) -> Iterator[exp.Table]:
    """References that mean relations; refuses those that mean something outside, or with ``outside`` leaves them to
    Spark."""
    for table in tree.find_all(exp.Table):
        if isinstance(table.this, exp.Identifier) and not table.db and not table.catalog:
            _refuse_time_travel(table)
            if not _is_hidden(table):
                yield table
        elif not outside and not _is_table_function(table):
            line, column = place_of(table)
            if isinstance(table.this, exp.Identifier) and _PATH.search(table.name):
                raise Unsafe(table.sql("spark"), PATH, line, column)
            raise Unsupported(
                f"'{table.sql('spark')}' is not a table or view of this warehouse.",
                line=line,
                column=column,
                hint="Tables and views are read by their plain names; other data comes in as a DataFrame.",
            )


def _is_hidden(table: exp.Table) -> bool:
    """Whether a CTE in whose reach the reference stands has this name."""
    node: exp.Expr = table
    while (parent := node.parent) is not None:
        if isinstance(parent, exp.With):
            place = parent.expressions.index(node)
            before = parent.expressions if parent.recursive else parent.expressions[:place]
            if any(same(cte.alias, table.name) for cte in before):
                return True
            # What the With belongs to was passed with it.
            node = parent.parent or parent
            continue
        ctes = parent.args.get("with_")
        if ctes is not None and ctes is not node and any(same(cte.alias, table.name) for cte in ctes.expressions):
            return True
        node = parent
    return False


def _is_table_function(table: exp.Table) -> bool:
    call = table.this
    if not isinstance(call, exp.Func) or table.db or table.catalog:
        return False
    return not isinstance(call, exp.Anonymous) or call.name.lower() in builtin() | {"range"}


def _refuse_time_travel(table: exp.Table) -> None:
    if table.args.get("version") or table.args.get("when"):
        line, column = place_of(table)
        raise Unsupported("A transaction reads one csn; time travel has no place in it.", line=line, column=column)
