"""What a statement that a connector has met does to a captured table.

Law: a statement proves what its text says only where the text is understood and the table is afterwards as it says. Any
other proves nothing. What becomes of types is told by rows, which show how values are written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256

from rollview.core.names import same
from rollview.sources.binlog.ddl import Altered, RenamedError, ReplacedError, UnclearError, altered, readings
from rollview.sources.binlog.declared import DeclaredColumn
from rollview.sources.debezium.records import LogPlace, Statement, TableAfter

_EMPTIES = re.compile(
    r"TRUNCATE\s+(?:TABLE\s+)?(?:(`[^`]+`|[\w$]+)\s*\.\s*)?(`[^`]+`|[\w$]+)\s*;?\s*(?:--[^\n]*)?", re.I
)
_IF_NOT = re.compile(r"\bIF\s+NOT\s+EXISTS\b", re.I)


@dataclass(frozen=True, slots=True)
class TableStatement:
    """``renamed``, ``dropped``, ``added``: columns, all by their names before the statement but those that are new.
    ``columns``: all of them after it. ``called``: the new name of the table; ``was_taken``: by another one before.
    ``emptied``: it has no rows any more;
    ``is_gone``: and is not there; ``is_new``: another one has its name, without rows if it was not ``moved`` there, and
    only if there was none with ``if_gone``."""

    remote: str
    time: datetime
    log: LogPlace | None
    columns: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    dropped: tuple[str, ...] = ()
    added: Mapping[str, DeclaredColumn] = field(default_factory=dict)
    called: str | None = None
    was_taken: bool = False
    emptied: bool = False
    is_gone: bool = False
    is_new: bool = False
    moved: bool = False
    if_gone: bool = False
    mark: str = ""
    """The same of a record that a connector has written again; empty where nobody can tell."""

    def now(self, name: str) -> str | None:
        """What a column is called after it; None if it is gone."""
        if any(same(name, old) for old in self.dropped):
            return None
        return next((new for old, new in self.renamed if same(name, old)), name)

    def before(self, name: str) -> str | None:
        """What a column was called before it; None if it is new."""
        if any(same(name, new) for new in self.added):
            return None
        return next((old for old, new in self.renamed if same(name, new)), name)


def told(statement: Statement, remotes: Iterable[str]) -> TableStatement | None:
    """None if it proves nothing of a captured table."""
    for remote in remotes if statement.is_met else ():
        database, _, name = remote.rpartition(".")
        after = _after(statement, remote) or _left_by(statement, database or statement.database, name)
        if after is not None or (not statement.tables and database in ("", statement.database)):
            found = _told(statement, remote, database or statement.database, name, after)
            if found is not None:
                return replace(found, mark=_mark(statement))
    return None


def _mark(statement: Statement) -> str:
    text = sha256(statement.text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return "" if statement.log is None else f"{':'.join(map(str, statement.log))} {text}"


def _after(statement: Statement, remote: str) -> TableAfter | None:
    return next((one for one in statement.tables if remote in one.names or remote in one.former), None)


def _left_by(statement: Statement, database: str, name: str) -> TableAfter | None:
    """ALTER TABLE … RENAME: its record has nothing but the new name."""
    here = [one for one in statement.tables if one.kind == "ALTER" and not one.former]
    try:
        altered(statement.text, statement.database, database, {name: {}})
    except UnclearError:
        return here[0] if len(here) == len(statement.tables) == 1 else None
    return None


def _told(
    statement: Statement, remote: str, database: str, name: str, after: TableAfter | None
) -> TableStatement | None:
    about = (remote, statement.time, statement.log)
    if _empties(statement, database, name):
        return TableStatement(*about, emptied=True)
    if after is None:
        return None
    is_here = remote in after.names
    if is_here and after.kind == "CREATE" and _IF_NOT.search(statement.text):
        return TableStatement(*about, emptied=True, is_new=True, if_gone=True)
    if is_here and after.former and remote not in after.former:
        return TableStatement(*about, is_new=True, moved=True)
    try:
        done = altered(statement.text, statement.database, database, {name: {}})
    except RenamedError as error:
        called = remote.removesuffix(name) + error.new
        return TableStatement(*about, after.columns, called=called) if called in after.names else None
    except ReplacedError:
        gone, new = after.kind == "DROP" and is_here, after.kind == "CREATE" and is_here
        return TableStatement(*about, emptied=gone or new, is_gone=gone, is_new=not gone, moved=not (gone or new))
    except UnclearError:
        return None if is_here else TableStatement(*about, is_new=True, moved=True)
    if done is None or not _is_as_told(done, after.columns):
        return None
    return TableStatement(*about, after.columns, done.renamed, done.gone, dict(done.added))


def _is_as_told(done: Altered, columns: tuple[str, ...]) -> bool:
    """Whether the table has afterwards the columns that it must have then."""
    there = {name.lower() for name in columns}
    come = {name.lower() for name in (*dict(done.added), *dict(done.renamed).values())}
    left = {name.lower() for name in (*done.gone, *dict(done.renamed))}
    return bool(columns) and come <= there and not (left - come) & there


def _empties(statement: Statement, database: str, name: str) -> bool:
    texts = readings(statement.text)
    found = _EMPTIES.fullmatch(texts[0].strip()) if len(texts) == 1 else None
    if found is None:
        return False
    owner, table = (None if one is None else one.strip("`") for one in found.groups())
    return table == name and (owner or statement.database) == database
