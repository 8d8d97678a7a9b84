"""Declarations, in Spark's spelling.

``CREATE [OR REPLACE] MATERIALIZED VIEW name [(columns)] [COMMENT …] [TBLPROPERTIES (…)] AS query``
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from rollview.algebra.text import parse_one, place_of, render
from rollview.algebra.words import in_place
from rollview.core.names import fault_in_name
from rollview.errors import InvalidName, SqlError, Unsupported

PROPERTIES = (
    "refresh_mode",
    "schedule",
    "propagate",
    "group",
    "retention",
    "detail",
    "ties",
    "policy",
    "maintenance",
    "algorithm",
    "publish_within",
    "consistency",
    "max_rows",
    "on_schema_change",
    "dispensable",
    "extent",
)
_OURS = "rollview."
_OPTIONS = (exp.MaterializedProperty, exp.SchemaCommentProperty, exp.Property)


@dataclass(frozen=True, slots=True)
class Declared:
    """A view as its author wrote it."""

    name: str
    columns: tuple[str, ...]
    comment: str | None
    properties: Mapping[str, str]
    query: str
    replace: bool


def declare(text: str | exp.Expr) -> Declared:
    """The declaration; the query keeps its author's words and its place in the text."""
    tree = parse_one(text) if isinstance(text, str) else text
    if not is_view_declaration(tree):
        raise SqlError("Expected CREATE MATERIALIZED VIEW name AS SELECT …")
    name, columns = _name_and_columns(tree)
    _check_options(tree, name)
    query = tree.expression
    if not isinstance(query, exp.Query):
        raise SqlError(f"View '{name}' has no query.", hint="Write AS SELECT … after the name.")
    written = in_place(query) or render(query, pretty=True)
    return Declared(name, columns, _comment(tree), _properties(tree), written, bool(tree.args.get("replace")))


def is_view_declaration(tree: exp.Expr) -> bool:
    return isinstance(tree, exp.Create) and tree.kind == "VIEW" and tree.find(exp.MaterializedProperty) is not None


def relation_name(reference: exp.Expr, what: str) -> str:
    """The one-part name of a table or view; anything that could point elsewhere is refused."""
    table = reference.this if isinstance(reference, exp.Schema) else reference
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier) or table.db or table.catalog:
        line, column = place_of(reference)
        raise Unsupported(f"'{reference.sql('spark')}' is not a plain {what} name.", line=line, column=column)
    return checked_name(table.name, what)


def checked_name(name: str, what: str) -> str:
    fault = fault_in_name(name)
    if fault is not None:
        raise InvalidName(what, name, fault)
    return name


@dataclass(frozen=True, slots=True)
class AlteredView:
    """``ALTER MATERIALIZED VIEW name SET TBLPROPERTIES (…)``."""

    name: str
    properties: Mapping[str, str]


def is_view_change(tree: exp.Expr) -> bool:
    return isinstance(tree, exp.Alter) and tree.args.get("kind") == "MATERIALIZED VIEW"


def altered(tree: exp.Expr) -> AlteredView:
    name, actions = relation_name(tree.this, "view"), tree.args.get("actions") or []
    given = [item for action in actions if isinstance(action, exp.AlterSet) for item in _set_by(action)]
    if len(actions) != 1 or not given or tree.args.get("exists"):
        raise Unsupported(
            f"ALTER MATERIALIZED VIEW '{name}': only SET TBLPROPERTIES is supported.",
            hint="To change its query, write CREATE OR REPLACE MATERIALIZED VIEW.",
        )
    return AlteredView(name, {item.this.name: item.args["value"].name for item in given})


def _set_by(action: exp.AlterSet) -> list[exp.Property]:
    """None if it sets something else too."""
    named = [item for listed in action.find_all(exp.Properties) for item in listed.expressions]
    return named if all(type(item) is exp.Property for item in named) else []


def _name_and_columns(tree: exp.Expr) -> tuple[str, tuple[str, ...]]:
    target = tree.this
    name = relation_name(target, "view")
    if not isinstance(target, exp.Schema):
        return name, ()
    columns = []
    for item in target.expressions:
        if item.args.get("kind") is not None:
            line, column = place_of(item)
            raise SqlError(f"Column '{item.name}' of view '{name}' cannot declare a type.", line=line, column=column)
        columns.append(checked_name(item.name, "column"))
    return name, tuple(columns)


def _check_options(tree: exp.Expr, name: str) -> None:
    """What would otherwise be passed over in silence."""
    if tree.args.get("exists"):
        raise Unsupported(
            f"CREATE MATERIALIZED VIEW '{name}': IF NOT EXISTS is not supported.", hint="Write OR REPLACE."
        )
    properties = tree.args.get("properties")
    for item in properties.expressions if properties is not None else ():
        if type(item) not in _OPTIONS:
            raise Unsupported(
                f"CREATE MATERIALIZED VIEW '{name}': the option '{render(item)}' is not supported.",
                hint="rollview decides how a view is stored.",
            )
    refuse_unknown(name, _properties(tree))


def refuse_unknown(name: str, properties: Iterable[str]) -> None:
    """Refuse a property that looks like ours and is not."""
    for key in properties:
        if key.startswith(_OURS) and key.removeprefix(_OURS) not in PROPERTIES:
            known = ", ".join(f"'{_OURS}{own}'" for own in PROPERTIES)
            raise Unsupported(f"View '{name}': there is no property '{key}'.", hint=f"There are {known}.")


def _comment(tree: exp.Expr) -> str | None:
    properties = tree.args.get("properties")
    found = properties.find(exp.SchemaCommentProperty) if properties is not None else None
    return found.name if found is not None else None


def _properties(tree: exp.Expr) -> dict[str, str]:
    properties = tree.args.get("properties")
    listed = properties.expressions if properties is not None else []
    return {item.this.name: item.args["value"].name for item in listed if type(item) is exp.Property}
