"""The statements that make SQLite keep a table's changes.

Law: after every statement the log has gained, with ``count`` -1, each row that went and, with +1, each that came.
REPLACE takes rows away without telling a DELETE trigger: so before an INSERT or UPDATE the rows that it could replace
are put aside, and after it those of them that are gone are logged. An INSERT that is ignored, or becomes an update,
never reaches the second step. Values are kept in columns without a type, so they stay as they are.

Every entry has a random mark, and a log begins with an entry that changes nothing. So the number and the mark of one
entry tell one log at one moment from every other: from one that was made anew, whose numbers begin again, and from one
that went on otherwise after a backup was restored.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass

from rollview.core.names import double_quoted
from rollview.sources.sqlite.layout import SqliteLayout, Unique

TIMES = ("bi", "ai", "bu", "au", "ad")

_QUOTED = r'"((?:[^"]|"")*)"'
_PAIR = rf"t\.{_QUOTED} = NEW\.{_QUOTED} COLLATE {_QUOTED}"
_TERM = re.compile(rf"\({_PAIR}(?: AND {_PAIR})*\)")


@dataclass(frozen=True, slots=True)
class Names:
    """What is put into the database for the table at this place of the settings, by one attempt."""

    tag: str
    place: int

    @property
    def log(self) -> str:
        return f"_rollview_{self.tag}_log_{self.place}"

    @property
    def aside(self) -> str:
        return f"_rollview_{self.tag}_old_{self.place}"

    @property
    def triggers(self) -> tuple[str, ...]:
        return tuple(f"_rollview_{self.tag}_{time}_{self.place}" for time in TIMES)

    @property
    def all(self) -> tuple[str, ...]:
        return (self.log, self.aside, *self.triggers)


def slot_name(slot: int) -> str:
    return f"c{slot}"


def create_log(names: Names, slots: str = slot_name(0)) -> tuple[str, ...]:
    """The log alone. Without a table it has one slot, and no rows."""
    columns = "seq INTEGER PRIMARY KEY AUTOINCREMENT, mark DEFAULT (lower(hex(randomblob(4)))), count"
    return (
        f"CREATE TABLE {double_quoted(names.log)} ({columns}, {slots})",
        f"INSERT INTO {double_quoted(names.log)} (count) VALUES (0)",
    )


def create(names: Names, layout: SqliteLayout) -> tuple[str, ...]:
    return (
        *create_log(names, _slots(layout)),
        f"CREATE TABLE {double_quoted(names.aside)} (number, {_slots(layout)})",
        *create_triggers(names, layout),
    )


def drop_triggers(names: Names) -> tuple[str, ...]:
    return tuple(f"DROP TRIGGER IF EXISTS {double_quoted(name)}" for name in names.triggers)


def left(connection: sqlite3.Connection, tag: str) -> dict[str, str]:
    """All that attempts of the source have left, by name: a TRIGGER or a TABLE."""
    query = "SELECT name, upper(type) FROM sqlite_schema WHERE type IN ('trigger', 'table') AND substr(name, 1, ?) = ?"
    begin = f"_rollview_{tag}_"
    return dict(connection.execute(query, (len(begin), begin)))


def drop(found: Mapping[str, str]) -> tuple[str, ...]:
    """A table after the triggers that write to it."""
    by_kind = sorted(found.items(), key=lambda one: one[1], reverse=True)
    return tuple(f"DROP {kind} IF EXISTS {double_quoted(name)}" for name, kind in by_kind)


def create_triggers(names: Names, layout: SqliteLayout) -> tuple[str, ...]:
    """The triggers alone, writing to the slots that the layout tells."""
    aside, table = double_quoted(names.aside), double_quoted(layout.name)
    forget = f"DELETE FROM {aside};"
    targets = f"{aside} (number, {_slots(layout)})"
    put_aside = f"{forget} INSERT INTO {targets} SELECT {_number(layout)}, {_own(layout)} FROM {table} AS t WHERE "
    conflicts = _conflicts(layout)
    replaced = (
        f"INSERT INTO {double_quoted(names.log)} (count, {_slots(layout)}) SELECT -1, {_slots(layout)} FROM {aside}"
    )
    gone = f"{replaced} WHERE {_is_gone(layout)}; {forget}"
    bodies = {
        ("bi", "BEFORE INSERT"): f"{put_aside}{conflicts};",
        ("ai", "AFTER INSERT"): f"{gone} {_logged(names, layout, +1, 'NEW')}",
        ("bu", "BEFORE UPDATE"): f"{put_aside}NOT ({_is_old(layout)}) AND ({conflicts});",
        ("au", "AFTER UPDATE"): f"{gone} {_logged(names, layout, -1, 'OLD')} {_logged(names, layout, +1, 'NEW')}",
        ("ad", "AFTER DELETE"): f"{_recover(names, layout)} {_logged(names, layout, -1, 'OLD')}",
    }
    return tuple(
        f"CREATE TRIGGER {double_quoted(name)} {time} ON {table} BEGIN {body} END"
        for name, ((_, time), body) in zip(names.triggers, bodies.items(), strict=True)
    )


def _slots(layout: SqliteLayout) -> str:
    return ", ".join(map(slot_name, layout.slots))


def _own(layout: SqliteLayout) -> str:
    return ", ".join(f"t.{double_quoted(name)}" for name in layout.names)


def _number(layout: SqliteLayout) -> str:
    return f"t.{layout.rowid}" if layout.rowid else "NULL"


def _logged(names: Names, layout: SqliteLayout, count: int, image: str) -> str:
    values = ", ".join(f"{image}.{double_quoted(name)}" for name in layout.names)
    return f"INSERT INTO {double_quoted(names.log)} (count, {_slots(layout)}) VALUES ({count}, {values});"


def _conflicts(layout: SqliteLayout) -> str:
    """Rows that share what must be unique with the new one. A number not given yet reads as -1; see ``_is_gone``."""
    terms = [f"({_shared(unique)})" for unique in layout.unique]
    if layout.rowid:
        terms.append(f"t.{layout.rowid} = NEW.{layout.rowid}")
    return " OR ".join(terms)


def _shared(unique: Unique) -> str:
    pairs = zip(unique.columns, unique.collations, strict=True)
    return " AND ".join(
        f"t.{double_quoted(name)} = NEW.{double_quoted(name)} COLLATE {double_quoted(coll)}" for name, coll in pairs
    )


def known_unique(connection: sqlite3.Connection, names: Names) -> tuple[str, frozenset[Unique]] | None:
    """The table that is kept, and what was unique in it when its triggers were made, in present names: SQLite rewrites
    the triggers when a column is called otherwise. None if they are not there."""
    query = "SELECT tbl_name, sql FROM sqlite_schema WHERE type = 'trigger' AND name = ?"
    found = connection.execute(query, (names.triggers[0],)).fetchone()
    if found is None:
        return None
    pairs = (re.findall(_PAIR, term[0]) for term in _TERM.finditer(found[1]))
    return found[0], frozenset(Unique(*_unquoted([(own, coll) for own, _, coll in term])) for term in pairs)


def _unquoted(pairs: list[tuple[str, str]]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    columns, collations = zip(*pairs, strict=True)
    return tuple(one.replace('""', '"') for one in columns), tuple(one.replace('""', '"') for one in collations)


def _is_old(layout: SqliteLayout) -> str:
    if layout.rowid:
        return f"t.{layout.rowid} = OLD.{layout.rowid}"
    return " AND ".join(f"t.{double_quoted(name)} IS OLD.{double_quoted(name)}" for name in layout.key)


def _is_gone(layout: SqliteLayout) -> str:
    """With a key instead of a number, whatever conflicted with a row that is now there must be gone."""
    if not layout.rowid:
        return "1"
    there = f"SELECT 1 FROM {double_quoted(layout.name)} AS t WHERE t.{layout.rowid} = number"
    return f"number = NEW.{layout.rowid} OR NOT EXISTS ({there})"


def _recover(names: Names, layout: SqliteLayout) -> str:
    """With recursive_triggers a replaced row does reach the DELETE trigger, and must not be told twice."""
    slots = {name: slot_name(slot) for slot, name in zip(layout.slots, layout.names, strict=True)}
    is_it = (
        f"number = OLD.{layout.rowid}"
        if layout.rowid
        else " AND ".join(f"{slots[name]} IS OLD.{double_quoted(name)}" for name in layout.key)
    )
    return f"DELETE FROM {double_quoted(names.aside)} WHERE {is_it};"
