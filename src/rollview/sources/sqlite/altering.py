"""What is written into a captured database when a table's columns change.

Law: triggers write every column of their table. A column that a table has gained gets a slot of its own, in which
entries before it have the column's default; where rows have another value by then, the log gains the difference. So
after the transaction that does this the log tells the table in its present columns. A statement that triggers would
block is run while they are away, in one transaction with a cut in every log.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rollview.core.names import double_quoted
from rollview.errors import UsageError
from rollview.sources.settings import TableSettings
from rollview.sources.sqlite.layout import SqliteLayout, read_layout
from rollview.sources.sqlite.log import write_cut
from rollview.sources.sqlite.traced import TracedTable, slot_constant, trace, with_slots
from rollview.sources.sqlite.triggers import Names, create_triggers, drop_triggers, slot_name
from rollview.sources.sqlite.values import spark_type

_ALTER = re.compile(r"\s*ALTER\s+TABLE\b", re.I)


@dataclass(frozen=True, slots=True)
class _Made:
    """A layout whose columns all have slots, and what entries that are older than a new one have in it."""

    layout: SqliteLayout
    constants: Mapping[str, Any]


def lacks_slots(connection: sqlite3.Connection, names: Names) -> bool:
    """Whether the table has columns that its log does not tell."""
    table = trace(connection, names)
    layout = None if table is None else read_layout(connection, table.name)
    return table is not None and layout is not None and None in with_slots(layout, table)


def give_slots(connection: sqlite3.Connection, names: Names, settings: TableSettings) -> None:
    """Columns that the table has gained are logged from here on. Within a transaction that writes."""
    table = trace(connection, names)
    layout = None if table is None else read_layout(connection, table.name)
    if table is None or layout is None:
        return
    _log_difference(connection, names, _make_slots(connection, names, settings, layout, with_slots(layout, table)))


def run_ddl(
    connection: sqlite3.Connection, logs: Sequence[Names], tables: Sequence[TableSettings], statement: str
) -> None:
    """One ALTER TABLE. Within a transaction that writes."""
    if _ALTER.match(statement) is None:
        raise UsageError("Only an ALTER TABLE is run here.", hint="Run other statements in the database itself.")
    before = [_standing(connection, names) for names in logs]
    for names in logs:
        _run(connection, drop_triggers(names))
    try:
        connection.execute(statement)
    except sqlite3.Error as error:
        raise UsageError(f"The database refuses the statement: {error}.") from error
    made = []
    for names, settings, (table, layout, root) in zip(logs, tables, before, strict=True):
        now = read_layout(connection, _named(connection, root))
        assert now is not None
        made.append(_make_slots(connection, names, settings, now, _kept_slots(table, layout, now)))
    write_cut(connection, logs, [found for names in logs if (found := trace(connection, names)) is not None])
    for names, one in zip(logs, made, strict=True):
        _log_difference(connection, names, one)


def _standing(connection: sqlite3.Connection, names: Names) -> tuple[TracedTable, SqliteLayout, int]:
    table = trace(connection, names)
    layout = None if table is None else read_layout(connection, table.name)
    if table is None or layout is None:
        raise UsageError("A captured table is gone.", hint="See what capture says of it: rollview capture.")
    query = "SELECT rootpage FROM sqlite_schema WHERE type = 'table' AND name = ?"
    return table, layout, connection.execute(query, (layout.name,)).fetchone()[0]


def _named(connection: sqlite3.Connection, root: int) -> str:
    found = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage = ?", (root,))
    return str(found.fetchone()[0])


def _kept_slots(table: TracedTable, before: SqliteLayout, now: SqliteLayout) -> tuple[int | None, ...]:
    """One statement drops columns, adds one or calls one otherwise; only then as many are there as before."""
    slots = dict(zip(before.names, with_slots(before, table), strict=True))
    if len(before.names) == len(now.names):
        return tuple(slots.values())
    return tuple(slots.get(name) for name in now.names)


def _make_slots(
    connection: sqlite3.Connection,
    names: Names,
    settings: TableSettings,
    layout: SqliteLayout,
    slots: Sequence[int | None],
) -> _Made:
    """Triggers that write all columns: into their slots, or into new ones."""
    query = "SELECT max(CAST(substr(name, 2) AS INTEGER)) FROM pragma_table_info(?) WHERE name GLOB 'c[0-9]*'"
    free = int(connection.execute(query, (names.log,)).fetchone()[0]) + 1
    new = {
        name: free + place
        for place, name in enumerate(n for n, s in zip(layout.names, slots, strict=True) if s is None)
    }
    constants = {name: _default(connection, layout, name, settings) for name in new}
    _run(connection, drop_triggers(names))
    for name, slot in new.items():
        column = f"{slot_name(slot)} DEFAULT {_literal(connection, constants[name])}"
        for table in (names.log, names.aside):
            connection.execute(f"ALTER TABLE {double_quoted(table)} ADD COLUMN {column}")
    placed = tuple(new[n] if s is None else s for n, s in zip(layout.names, slots, strict=True))
    layout = replace(layout, slots=placed)
    _run(connection, create_triggers(names, layout))
    return _Made(layout, constants)


def _log_difference(connection: sqlite3.Connection, names: Names, made: _Made) -> None:
    """Rows that have something else than its constant in a new column."""
    layout, constants = made.layout, made.constants
    if not constants:
        return
    log, table = double_quoted(names.log), double_quoted(layout.name)
    targets = ", ".join(map(slot_name, layout.slots))
    own = ", ".join(map(double_quoted, layout.names))
    with_constants = ", ".join(
        f":k{n}" if name in constants else double_quoted(name) for n, name in enumerate(layout.names)
    )
    values = {f"k{n}": constants[name] for n, name in enumerate(layout.names) if name in constants}
    other = " OR ".join(
        f"{double_quoted(name)} IS NOT :k{n} COLLATE BINARY OR typeof({double_quoted(name)}) <> typeof(:k{n})"
        for n, name in enumerate(layout.names)
        if name in constants
    )
    for count, columns in ((-1, with_constants), (+1, own)):
        query = f"INSERT INTO {log} (count, {targets}) SELECT {count}, {columns} FROM {table} WHERE {other}"
        connection.execute(query, values)


def _default(connection: sqlite3.Connection, layout: SqliteLayout, name: str, settings: TableSettings) -> Any:
    """What rows have in the column that are older than it, where that can be told."""
    query = "SELECT type, dflt_value FROM pragma_table_xinfo(?) WHERE name = ?"
    declared, default = connection.execute(query, (layout.name, name)).fetchone()
    if default is None:
        return None
    # Its value in a column of that type, without touching a table here.
    other = sqlite3.connect(":memory:")
    try:
        other.execute(f"CREATE TABLE one (c {declared} DEFAULT {default})")
        other.execute("INSERT INTO one DEFAULT VALUES")
        value = other.execute("SELECT c FROM one").fetchone()[0]
    except sqlite3.Error:
        return None
    finally:
        other.close()
    return slot_constant(value, settings.types.get(name) or spark_type(declared))


def _literal(connection: sqlite3.Connection, value: Any) -> str:
    return str(connection.execute("SELECT quote(?)", (value,)).fetchone()[0])


def _run(connection: sqlite3.Connection, statements: Sequence[str]) -> None:
    for statement in statements:
        connection.execute(statement)
