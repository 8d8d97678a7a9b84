"""Whether the chosen tables are still those that were recorded.

Law: the log tells each row's layout, but not that a column was replaced by another of its name and type, nor that all
rows were computed anew. The catalog does: a column's number is never used again, and whoever rewrites a table describes
its column and gives the table another file. Asked after the log was read, it knows of every change before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollview.core.names import same
from rollview.errors import LostPosition, SchemaChanged
from rollview.sources.postgres.announced import is_same
from rollview.sources.postgres.layout import PgTable
from rollview.sources.protocol import SourceTable

Facts = Mapping[str, Any]


def facts(table: PgTable) -> dict[str, Any]:
    """What is remembered of a table."""
    columns = {c.name: [c.type_oid, c.modifier, c.number, c.version] for c in table.columns}
    return {"oid": table.oid, "file": table.file, "columns": columns}


def check_columns(source: str, known: SourceTable, recorded: Facts, table: PgTable) -> None:
    """Refuse what was read if one of our columns may not be what it was."""
    now = facts(table)
    if now["oid"] != recorded["oid"]:
        return
    rewritten = now["file"] != recorded["file"]
    gone = tuple(
        column.name
        for column in known.schema
        if _is_other(column, recorded["columns"][column.name], now["columns"].get(column.name), rewritten)
    )
    unsure = _unsure(known, table)
    if gone or unsure:
        what = f"columns that are gone or were replaced: {', '.join(gone)}" if gone else "its key or NOT NULL is gone"
        raise SchemaChanged(source, known.name, what, gone=gone, unsure=unsure)


def check_logged(source: str, remote: str, recorded: Facts, table: PgTable | None) -> None:
    """Refuse to wait for changes that will never come."""
    if table is None:
        raise SchemaChanged(source, remote, "it is gone")
    if table.oid != recorded["oid"]:
        raise LostPosition(source, f"table '{remote}' was made anew")
    if table.persistence != "p":
        raise LostPosition(source, f"table '{remote}' is not logged any more")


def _is_other(column: Any, recorded: Any, now: Any, rewritten: bool) -> bool:
    if now is None or now[2] != recorded[2] or not is_same(column, recorded, (now[0], now[1])):
        return True
    return bool(rewritten and now[3] != recorded[3])


def _unsure(known: SourceTable, table: PgTable) -> tuple[str, ...]:
    promised = known.constraints
    key = promised.primary_key if promised.primary_key != table.key else ()
    nullable = {column.name for column in table.columns if not column.not_null}
    return (*key, *(name for name in promised.not_null if any(same(name, other) for other in nullable)))
