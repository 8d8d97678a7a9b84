"""A CREATE TABLE statement taken apart: columns as they are spelled, and the constraints.

Law: either every word of the statement is understood, or it is refused; nothing is silently left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from rollview.algebra.definition import checked_name, relation_name
from rollview.algebra.text import place_of
from rollview.core.names import same
from rollview.core.schema import Constraints, ForeignKey
from rollview.errors import SqlError, Unsupported


@dataclass(frozen=True, slots=True)
class DeclaredTable:
    """``types`` in the author's spelling. A foreign key whose ``referenced`` is empty means the primary key."""

    name: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    constraints: Constraints
    query: exp.Query | None
    if_not_exists: bool


@dataclass(slots=True)
class _Found:
    columns: tuple[str, ...]
    primary_key: tuple[str, ...] = ()
    unique: list[tuple[str, ...]] = field(default_factory=list)
    not_null: list[str] = field(default_factory=list)
    foreign_keys: list[ForeignKey] = field(default_factory=list)

    def constraints(self) -> Constraints:
        required = dict.fromkeys([*self.not_null, *self.primary_key])
        unique = dict.fromkeys(key for key in self.unique if set(key) != set(self.primary_key))
        return Constraints(self.primary_key, tuple(unique), tuple(required), tuple(self.foreign_keys))


def declare_table(tree: exp.Create) -> DeclaredTable:
    name = relation_name(tree.this, "table")
    _refuse_options(tree, name)
    query, items = tree.expression, tree.this.expressions if isinstance(tree.this, exp.Schema) else []
    if query is not None and items:
        raise Unsupported("CREATE TABLE … AS takes its columns from the query.", **_at(tree))
    if query is not None and not isinstance(query, exp.Query):
        raise SqlError("CREATE TABLE … AS takes a query.", **_at(tree))
    if query is None and not items:
        raise SqlError(f"Table '{name}' has no columns.", hint="Write them after the name: (id BIGINT, …).")
    defined = [item for item in items if isinstance(item, exp.ColumnDef)]
    found = _Found(_columns(name, defined))
    types = tuple(_spelled_type(item) for item in defined)
    for item in items:
        _take(found, item)
    return DeclaredTable(name, found.columns, types, found.constraints(), query, bool(tree.args.get("exists")))


def _columns(table: str, defined: Sequence[exp.ColumnDef]) -> tuple[str, ...]:
    seen: list[str] = []
    for item in defined:
        if any(same(item.name, other) for other in seen):
            raise SqlError(f"Table '{table}' has two columns named '{item.name}'.", **_at(item))
        seen.append(checked_name(item.name, "column"))
    return tuple(seen)


def _spelled_type(item: exp.ColumnDef) -> str:
    if item.args.get("kind") is None:
        raise SqlError(f"Column '{item.name}' has no type.", **_at(item))
    return str(item.args["kind"].sql("spark"))


def _take(found: _Found, item: exp.Expr) -> None:
    match item:
        case exp.ColumnDef():
            for constraint in item.args.get("constraints") or ():
                _take_of_column(found, item, constraint.args["kind"])
        case exp.Constraint():
            for inner in item.expressions:
                _take(found, inner)
        case exp.PrimaryKey():
            _set_primary_key(found, _listed(found, item.expressions), item)
        case exp.UniqueColumnConstraint() if isinstance(item.this, exp.Schema):
            found.unique.append(_listed(found, item.this.expressions))
        case exp.ForeignKey():
            found.foreign_keys.append(foreign_key(item, _listed(found, item.expressions)))
        case _:
            raise Unsupported(f"'{item.sql('spark')}' is not supported in CREATE TABLE.", **_at(item))


def _take_of_column(found: _Found, column: exp.ColumnDef, kind: exp.Expr) -> None:
    match kind:
        case exp.NotNullColumnConstraint():
            if not kind.args.get("allow_null"):
                found.not_null.append(column.name)
        case exp.PrimaryKeyColumnConstraint():
            _set_primary_key(found, (column.name,), column)
        case exp.UniqueColumnConstraint():
            found.unique.append((column.name,))
        case exp.Reference():
            found.foreign_keys.append(_foreign_key((column.name,), kind))
        case _:
            raise Unsupported(
                f"Column '{column.name}': '{kind.sql('spark')}' is not supported.",
                hint="A column may be NOT NULL, PRIMARY KEY, UNIQUE, or REFERENCES another table.",
                **_at(column),
            )


def _set_primary_key(found: _Found, columns: tuple[str, ...], item: exp.Expr) -> None:
    if found.primary_key:
        raise SqlError("A table has one primary key.", **_at(item))
    found.primary_key = columns


def _listed(found: _Found, items: Sequence[exp.Expr]) -> tuple[str, ...]:
    """The named columns, as they were spelled where they were defined."""
    names = []
    for item in items:
        own = next((column for column in found.columns if same(column, item.name)), None)
        if own is None:
            raise SqlError(f"There is no column '{item.name}'.", **_at(item))
        if own in names:
            raise SqlError(f"Column '{own}' is twice in one constraint.", **_at(item))
        names.append(own)
    return tuple(names)


def foreign_key(item: exp.ForeignKey, columns: tuple[str, ...]) -> ForeignKey:
    """As it is written; its target may not be there."""
    _refuse_actions(item, item.args)
    return _foreign_key(columns, item.args["reference"])


def _foreign_key(columns: tuple[str, ...], reference: exp.Reference) -> ForeignKey:
    _refuse_actions(reference, reference.args)
    target = reference.this
    referenced = tuple(item.name for item in target.expressions) if isinstance(target, exp.Schema) else ()
    return ForeignKey(columns, relation_name(target, "table"), referenced)


def _refuse_actions(node: exp.Expr, args: dict[str, Any]) -> None:
    if args.get("options") or args.get("delete") or args.get("update"):
        raise Unsupported(
            "A foreign key with an action is not supported.", hint="Leave ON DELETE and ON UPDATE out.", **_at(node)
        )


def _refuse_options(tree: exp.Create, name: str) -> None:
    for word in ("replace", "unique", "clone", "begin", "shallow", "no_schema_binding", "indexes"):
        if tree.args.get(word):
            raise Unsupported(f"CREATE TABLE '{name}' with {word.upper()} is not supported.", **_at(tree))
    properties = tree.args.get("properties")
    for item in properties.expressions if properties is not None else ():
        raise Unsupported(
            f"CREATE TABLE '{name}': the option '{item.sql('spark')}' is not supported.",
            hint="rollview decides how a table is stored.",
            **_at(tree),
        )


def _at(node: exp.Expr) -> dict[str, Any]:
    line, column = place_of(node)
    return {"line": line, "column": column}
