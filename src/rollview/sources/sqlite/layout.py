"""What SQLite says of a table: its columns, its key, and which rows an INSERT or UPDATE could replace."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Any

from rollview.core.names import double_quoted
from rollview.core.schema import Column, Constraints, Schema
from rollview.errors import Unsupported
from rollview.sources.protocol import Finding, SourceTable, projected
from rollview.sources.settings import TableSettings
from rollview.sources.sqlite.values import spark_type

_ROWID = ("rowid", "_rowid_", "oid")
_NOT_ONE_TO_ONE = ("timestamp_ntz", "timestamp")
"""Types in which two texts mean one value, so that a key of texts says nothing."""


@dataclass(frozen=True, slots=True)
class Unique:
    """Columns that no two rows share, each with its collation."""

    columns: tuple[str, ...]
    collations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SqliteLayout:
    """``rowid`` is a name by which the row's number can be asked for; None in a table WITHOUT ROWID. ``slots``: where
    the columns stand in the table's log."""

    name: str
    columns: tuple[tuple[str, str, bool], ...]
    key: tuple[str, ...]
    has_sure_key: bool
    rowid: str | None
    unique: tuple[Unique, ...]
    unseen: tuple[str, ...]
    slots: tuple[int, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _, _ in self.columns)


def read_layout(connection: sqlite3.Connection, table: str) -> SqliteLayout | None:
    """None if there is no such table."""
    listed = connection.execute("SELECT type, wr FROM pragma_table_list(?) WHERE schema = 'main'", (table,)).fetchone()
    if listed is None or listed[0] != "table":
        return None
    columns = connection.execute('SELECT name, type, "notnull", pk FROM pragma_table_xinfo(?)', (table,)).fetchall()
    indexes = connection.execute(
        'SELECT name, origin, partial FROM pragma_index_list(?) WHERE "unique"', (table,)
    ).fetchall()
    found = {name: _unique(connection, name) for name, _, _ in indexes}
    key = tuple(name for name, _, _, pk in sorted(columns, key=lambda c: c[3]) if pk)
    without_rowid = bool(listed[1])
    aliased = bool(key) and not without_rowid and all(origin != "pk" for _, origin, _ in indexes)
    sure = bool(key) and (without_rowid or aliased or all(c[2] for c in columns if c[3]))
    shadowed = {name.lower() for name, *_ in columns}
    return SqliteLayout(
        table,
        tuple((name, type_, bool(not_null)) for name, type_, not_null, _ in columns),
        key,
        sure,
        None if without_rowid else next((word for word in _ROWID if word not in shadowed), "rowid"),
        tuple(unique for name, _, partial in indexes if not partial and (unique := found[name]) is not None),
        tuple(name for name, _, partial in indexes if partial or found[name] is None),
        tuple(range(len(columns))),
    )


def _unique(connection: sqlite3.Connection, index: str) -> Unique | None:
    """None where the index is over an expression."""
    rows = connection.execute("SELECT cid, name, coll FROM pragma_index_xinfo(?) WHERE key", (index,)).fetchall()
    if any(cid < 0 for cid, _, _ in rows):
        return None
    return Unique(tuple(name for _, name, _ in rows), tuple(collation for _, _, collation in rows))


def findings(layout: SqliteLayout, settings: TableSettings) -> list[Finding]:
    found = []
    for name, declared, _ in layout.columns:
        if settings.takes(name) and _type(settings, name, declared) is None:
            told = f"is declared as '{declared}'" if declared else "has no declared type"
            what = f"column '{name}' of table '{layout.name}' {told}, which says nothing of its values"
            found.append(Finding(f"{what}; say its type in the source's settings"))
    for index in layout.unseen:
        what = (
            f"table '{layout.name}' has the partial or computed UNIQUE index '{index}', which REPLACE could use unseen"
        )
        found.append(Finding(what, f"DROP INDEX {double_quoted(index)};"))
    return found


def described(layout: SqliteLayout, settings: TableSettings) -> SourceTable:
    columns = []
    for name, declared, _ in (column for column in layout.columns if settings.takes(column[0])):
        type_ = _type(settings, name, declared)
        if type_ is None and settings.is_open:
            continue
        if type_ is None:
            raise Unsupported(f"Column '{name}' of table '{layout.name}' has no type that says what it holds.")
        columns.append(Column(name, type_))
    schema = Schema(tuple(columns))
    required = tuple(name for name, _, not_null in layout.columns if not_null)
    key = layout.key if layout.has_sure_key and not _blurred(schema, layout.key) else ()
    constraints = Constraints(key, (), tuple(dict.fromkeys([*required, *key])))
    return projected(SourceTable(layout.name, schema, constraints), settings)


def _blurred(schema: Schema, key: tuple[str, ...]) -> bool:
    return any(column.type in _NOT_ONE_TO_ONE for column in schema if column.name in key)


def _type(settings: TableSettings, column: str, declared: Any) -> str | None:
    return settings.types.get(column) or spark_type(declared)
