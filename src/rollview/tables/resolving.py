"""Constraints with every foreign key's target found and checked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sqlglot import exp

from rollview.catalog import Snapshot
from rollview.core.names import same
from rollview.core.schema import Column, Constraints, ForeignKey, Schema
from rollview.errors import SqlError, Unsupported
from rollview.tables.declaration import DeclaredTable, foreign_key
from rollview.types.arrow import arrow_type, is_atomic


def resolved(snapshot: Snapshot, declared: DeclaredTable, schema: Schema) -> Constraints:
    given = declared.constraints
    for name in {name for key in (*given.keys, *(fk.columns for fk in given.foreign_keys)) for name in key}:
        column = schema.find(name)
        if column is not None and not is_atomic(arrow_type(column.type, column.name)):
            raise Unsupported(f"Column '{name}' of type {column.type.upper()} cannot be part of a key.")
    keys = tuple(_resolved_key(snapshot, declared, schema, key) for key in given.foreign_keys)
    return replace(given, foreign_keys=keys)


def _resolved_key(snapshot: Snapshot, declared: DeclaredTable, schema: Schema, key: ForeignKey) -> ForeignKey:
    name, there, constraints = declared.name, schema, declared.constraints
    if not same(key.table, declared.name):
        target = snapshot.get(key.table)
        if target.source is not None:
            raise Unsupported(
                f"A foreign key of '{declared.name}' refers to '{target.name}', which is captured from source "
                f"'{target.source}' and may lose rows at any time.",
                hint="Leave the foreign key out.",
            )
        name, there, constraints = target.name, target.schema, target.constraints.checked
    wanted = key.referenced or constraints.primary_key
    spelled = tuple(column.name for column in map(there.find, wanted) if column is not None)
    if not wanted or set(spelled) not in [set(own) for own in constraints.keys] or len(spelled) != len(key.columns):
        raise SqlError(
            f"A foreign key of '{declared.name}' refers to {_tuple(wanted)} of '{name}', which is not a key there.",
            hint="Refer to the columns of its PRIMARY KEY or of a UNIQUE constraint.",
        )
    for own, other in zip(key.columns, spelled, strict=True):
        _check_same_type(_column(schema, own), _column(there, other), name)
    return ForeignKey(key.columns, name, spelled)


def _column(schema: Schema, name: str) -> Column:
    return next(column for column in schema if same(column.name, name))


def _check_same_type(own: Column, other: Column, table: str) -> None:
    if arrow_type(own.type, own.name) != arrow_type(other.type, other.name):
        raise SqlError(
            f"Column '{own.name}' is {own.type.upper()}, but '{other.name}' of '{table}' is {other.type.upper()}.",
            hint="A foreign key has the types of the key that it refers to.",
        )


def _tuple(names: Iterable[str]) -> str:
    return f"({', '.join(names)})"


def resolved_key(
    snapshot: Snapshot, declared: DeclaredTable, schema: Schema, item: exp.ForeignKey, columns: tuple[str, ...]
) -> ForeignKey:
    """The same for one that is declared by itself."""
    return _resolved_key(snapshot, declared, schema, foreign_key(item, columns))
