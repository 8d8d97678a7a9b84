"""An ALTER TABLE statement taken apart.

Law: either every word of the statement is understood, or it is refused; nothing is silently left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from rollview.algebra.definition import checked_name, relation_name
from rollview.algebra.text import render
from rollview.errors import SqlError, Unsupported

_SUPPORTED = (
    "ADD COLUMN, DROP COLUMN, RENAME COLUMN, ALTER COLUMN … TYPE, SET or DROP DEFAULT, SET or DROP NOT NULL, "
    "ADD CONSTRAINT, DROP CONSTRAINT and RENAME TO are."
)
_CONSTRAINTS = (exp.PrimaryKey, exp.UniqueColumnConstraint, exp.ForeignKey)


@dataclass(frozen=True, slots=True)
class AddColumn:
    """``type`` in the author's spelling. ``default``: a constant, None: NULL."""

    name: str
    type: str
    default: exp.Expr | None
    required: bool


@dataclass(frozen=True, slots=True)
class DropColumn:
    name: str
    if_exists: bool


@dataclass(frozen=True, slots=True)
class RenameColumn:
    name: str
    new_name: str


@dataclass(frozen=True, slots=True)
class SetType:
    name: str
    type: str


@dataclass(frozen=True, slots=True)
class SetDefault:
    """``default``: None removes it."""

    name: str
    default: exp.Expr | None


@dataclass(frozen=True, slots=True)
class SetRequired:
    name: str
    required: bool


@dataclass(frozen=True, slots=True)
class AddRule:
    """``declared``: PRIMARY KEY, UNIQUE or FOREIGN KEY; ``name``: None where it was given none."""

    name: str | None
    declared: exp.Expr


@dataclass(frozen=True, slots=True)
class DropRule:
    name: str


@dataclass(frozen=True, slots=True)
class RenameTable:
    new_name: str


@dataclass(frozen=True, slots=True)
class DropTable:
    """Of a table that views read: it stays for the csns before."""


Alteration = (
    AddColumn
    | DropColumn
    | RenameColumn
    | SetType
    | SetDefault
    | SetRequired
    | AddRule
    | DropRule
    | RenameTable
    | DropTable
)


@dataclass(frozen=True, slots=True)
class DeclaredAlter:
    name: str
    alterations: tuple[Alteration, ...]
    if_exists: bool


def declare_alter(tree: exp.Alter) -> DeclaredAlter:
    for option in ("only", "options", "cluster", "not_valid", "check", "cascade", "partition"):
        if tree.args.get(option):
            raise Unsupported(f"ALTER TABLE with {option.upper()} is not supported.", hint=_SUPPORTED)
    actions = tree.args.get("actions") or []
    found = tuple(one for action in actions for one in _alterations(action))
    if not found:
        raise _unsupported(tree)
    return DeclaredAlter(relation_name(tree.this, "table"), found, bool(tree.args.get("exists")))


def _alterations(action: exp.Expr) -> Iterator[Alteration]:
    match action:
        case exp.ColumnDef():
            yield from _add_column(action)
        case exp.Schema():
            for item in action.expressions:
                yield from _alterations(item)
        case exp.Drop() if action.args.get("kind") in ("COLUMN", "COLUMNS"):
            yield from _drop_columns(action)
        case exp.Drop() if action.args.get("kind") == "CONSTRAINT" and len(action.args["tables"]) == 1:
            _only(action, "kind", "tables")
            yield DropRule(action.args["tables"][0].name)
        case exp.RenameColumn():
            _only(action, "this", "to")
            yield RenameColumn(action.this.name, checked_name(action.args["to"].name, "column"))
        case exp.AlterColumn():
            yield _alter_column(action)
        case exp.AddConstraint():
            for item in action.expressions:
                yield from _rules(item)
        case exp.AlterRename():
            yield RenameTable(relation_name(action.this, "table"))
        case _:
            raise _unsupported(action)


def _add_column(item: exp.ColumnDef) -> Iterator[Alteration]:
    if item.args.get("position") is not None:
        raise Unsupported(
            f"Column '{item.name}': a column is added behind the others.", hint="Leave FIRST or AFTER out."
        )
    if item.args.get("kind") is None:
        raise SqlError(f"Column '{item.name}' has no type.")
    default, required = None, False
    for constraint in item.args.get("constraints") or ():
        match constraint.args["kind"]:
            case exp.DefaultColumnConstraint() as given:
                default = given.this
            case exp.NotNullColumnConstraint() as given:
                required = not given.args.get("allow_null")
            case other:
                hint = "A column may be NOT NULL and have a DEFAULT; keys are added by ADD CONSTRAINT."
                raise Unsupported(f"Column '{item.name}': '{other.sql('spark')}' is not supported.", hint=hint)
    name = checked_name(item.name, "column")
    yield AddColumn(name, str(item.args["kind"].sql("spark")), default, required)


def _drop_columns(action: exp.Drop) -> Iterator[DropColumn]:
    _only(action, "exists", "tables", "kind")
    for one in action.args["tables"]:
        named = one.expressions if isinstance(one, exp.Schema) else [one]
        for column in named:
            yield DropColumn(column.name, bool(action.args.get("exists")))


def _alter_column(action: exp.AlterColumn) -> Alteration:
    name = action.this.name
    if action.args.get("dtype") is not None:
        _only(action, "this", "dtype")
        return SetType(name, str(action.args["dtype"].sql("spark")))
    if action.args.get("default") is not None:
        _only(action, "this", "default")
        return SetDefault(name, action.args["default"])
    if action.args.get("allow_null") is not None:
        _only(action, "this", "allow_null", "drop")
        return SetRequired(name, not action.args["allow_null"])
    _only(action, "this", "drop")
    if not action.args.get("drop"):
        raise _unsupported(action)
    return SetDefault(name, None)


def _rules(item: exp.Expr) -> Iterator[AddRule]:
    if isinstance(item, exp.Constraint):
        for inner in item.expressions:
            yield from (AddRule(item.name, rule.declared) for rule in _rules(inner))
    elif isinstance(item, _CONSTRAINTS):
        yield AddRule(None, item)
    else:
        raise Unsupported(f"'{item.sql('spark')}' is not supported in ALTER TABLE.", hint=_SUPPORTED)


def _only(action: exp.Expr, *known: str) -> None:
    for name, value in action.args.items():
        if value and name not in known:
            raise _unsupported(action)


def _unsupported(action: exp.Expr) -> Unsupported:
    return Unsupported(f"'{render(action)}' is not supported.", hint=_SUPPORTED)
