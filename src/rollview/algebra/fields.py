"""Names that are values: what a struct calls its fields, ``to_json`` and its like write into rows.

Law: resolving folds the names of tables and columns, which Spark takes for the same in any spelling; the name of a
field keeps its author's spelling. Where a field would be named after a column whose spelling is gone, the query is
refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Set

from sqlglot import exp

from rollview.algebra.expressions import named
from rollview.algebra.functions import function_name
from rollview.algebra.text import place_of
from rollview.errors import Unsupported


def named_for_good(tree: exp.Query) -> exp.Query:
    """``struct(k)`` names its field after the column; the column may get another name, the field keeps it."""
    named_fields = tree.copy()
    for call in named_fields.find_all(exp.Anonymous):
        if function_name(call) == "struct":
            fields = [named(item, item.name) if isinstance(item, exp.Column) else item for item in call.expressions]
            call.set("expressions", fields)
            for field in fields:
                _keep_spelling(field.args.get("alias"))
    for field in named_fields.find_all(exp.ColumnDef):
        _keep_spelling(field.this)
    return named_fields


def _keep_spelling(name: exp.Expr | None) -> None:
    if name is not None:
        name.meta["case_sensitive"] = True


def refuse_folded(tree: exp.Query) -> None:
    """What is named after a subquery's columns would be named after what those are folded to."""
    columns = {item.alias_or_name for query in tree.find_all(exp.Select) if query is not tree for item in query.selects}
    columns.update(name.name for alias in tree.find_all(exp.TableAlias) for name in alias.columns)
    for node in tree.walk():
        folded = next((name for name in _told_by(node, columns) if name != name.lower()), None)
        if folded is not None:
            line, column = place_of(node)
            said = f"A value would be named after the column '{folded}', whose spelling is not kept."
            hint = "Call it by a name in lower case, or write named_struct('name', value, …)."
            raise Unsupported(said, line=line, column=column, hint=hint)


def _told_by(node: exp.Expr, columns: Set[str]) -> Iterable[str]:
    """Names of columns that become values."""
    if isinstance(node, exp.Pivot) and node.unpivot:
        return [name.name for field in node.fields for name in field.find_all(exp.Identifier)]
    is_star = isinstance(node, exp.Star) and isinstance(node.find_ancestor(exp.Func, exp.Select), exp.Func)
    tells = (is_star and not isinstance(node.parent, exp.Count)) or function_name(node) == "arrays_zip"
    return columns if tells else ()
