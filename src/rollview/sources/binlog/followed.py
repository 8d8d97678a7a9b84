"""What a statement in the log means for a captured table.

Law: the log has rows by the names of their columns, so after a statement that is understood each value is still in its
column. A column of which nobody can tell what older rows have in it is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rollview.core.names import same
from rollview.core.schema import Column
from rollview.sources.binlog.ddl import Altered
from rollview.sources.protocol import LayoutChange, Opening, words_of


def layout_change(opening: Opening, altered: Altered) -> LayoutChange | None:
    """None if nothing of what is captured is another."""
    table, known = altered.table, opening.known[altered.table]
    follows = opening.settings.table(table).follows_names
    renamed = {c.name: new for c in known.schema for old, new in altered.renamed if same(c.name, old) and follows}
    lost = (*altered.gone, *(() if follows else (old for old, _ in altered.renamed)))
    gone = tuple(c.name for c in known.schema if _among(c.name, lost))
    retyped = {c.name: told for c in known.schema for name, told in altered.retyped if same(c.name, name)}
    widened = tuple((c.name, type_) for c in known.schema if (type_ := _wider(c, retyped)) is not None)
    promised = dict.fromkeys((*known.constraints.primary_key, *known.constraints.not_null))
    unsure = tuple(name for name in promised if _among(name, altered.unsure))
    left = {renamed.get(c.name, c.name) for c in known.schema if c.name not in gone}
    takes = opening.settings.table(table).takes_new
    added = tuple(
        (Column(name, told.type, fill=told.fill), told.recorded)
        for name, told in altered.added
        if takes and told.type is not None and told.is_constant and not _among(name, left)
    )
    if not (gone or unsure or renamed or widened or added):
        return None
    columns = dict(opening.memory["columns"][table])
    columns |= {name: list(told.recorded) for name, told in retyped.items()}
    columns = _called({name: about for name, about in columns.items() if name not in gone}, renamed)
    columns |= {column.name: list(recorded) for column, recorded in added}
    memory = {**opening.memory, "columns": {**opening.memory["columns"], table: columns}}
    new = tuple(column for column, _ in added)
    reason = words_of(gone, renamed, dict(widened), new) or "its key or NOT NULL is gone"
    parts: dict[str, Any] = {"gone": gone, "unsure": unsure, "renamed": tuple(renamed.items()), "widened": widened}
    return LayoutChange(opening.name, table, reason, **parts, added=new, memory=memory)


def renamed_table(opening: Opening, table: str, new: str) -> LayoutChange:
    """The log has its rows under the new name from there on."""
    columns = {new if name == table else name: about for name, about in opening.memory["columns"].items()}
    memory = {**opening.memory, "columns": columns}
    return LayoutChange(opening.name, table, words_of((), {}, {}, (), new), called=new, memory=memory)


def _called(columns: Mapping[str, Any], renamed: Mapping[str, str]) -> dict[str, Any]:
    """Without what is remembered of columns that are not captured and whose name another one has now."""
    taken = [new for new in renamed.values() if new not in renamed]
    return {renamed.get(name, name): about for name, about in columns.items() if name not in taken}


def _among(name: str, names: Iterable[str]) -> bool:
    return any(same(name, other) for other in names)


def _wider(column: Column, retyped: Mapping[str, Any]) -> str | None:
    told = retyped.get(column.name)
    return None if told is None or told.type == column.type else str(told.type)
