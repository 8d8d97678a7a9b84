"""What a statement that a connector has met does to a captured table.

Law: a statement about a captured table is followed only where its text is understood and the table is afterwards as it
says; any other that may change rows or columns is told as ``unclear``. What becomes of types is told by rows, which
show how values are written; a type that may change values makes another column.
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
_IF_NOT = re.compile(r"CREATE\s+TABLE\s+IF\s+NOT\s+EXISTS\b", re.I)
_INDEX = re.compile(
    r"(?:CREATE|DROP)\s+(?:OR\s+REPLACE\s+)?(?:(?:ON|OFF)LINE\s+)?(?:UNIQUE\s+|FULLTEXT\s+|SPATIAL\s+)?INDEX\b", re.I
)
_UNTOLD = DeclaredColumn(("", "", None), None)
"""Of a column nobody can tell what older rows have in it."""
_NOT_UNDERSTOOD = "a statement about it is not understood"


@dataclass(frozen=True, slots=True)
class TableStatement:
    """``renamed``, ``dropped``, ``added``: columns, all by their names before the statement but those that are new.
    ``types``: of all of them after it, as the server spells them. ``called``: the new name of the table; ``was_taken``:
    by another one before. ``emptied``: it has no rows any more;
    ``is_gone``: and is not there; ``is_new``: another one has its name, without rows if it was not ``moved`` there, and
    only if there was none with ``if_gone``. ``unclear``: why it cannot be followed."""

    remote: str
    time: datetime
    log: LogPlace | None
    types: Mapping[str, str] = field(default_factory=dict)
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
    unclear: str | None = None
    left: tuple[str, ...] = ()
    """Names that a table had before it, and perhaps none has after it."""
    mark: str = ""
    """The same of a record that a connector has written again; empty where nobody can tell."""

    def now(self, name: str) -> str | None:
        """What a column is called after it; None if it is gone."""
        if any(same(name, old) for old in self.dropped):
            return None
        return next((new for old, new in self.renamed if same(name, old)), name)


Types = Mapping[str, Mapping[str, str]]
"""By tables: their columns before a statement, as the server spells their types."""


def told(statement: Statement, remotes: Iterable[str], types: Types) -> TableStatement | None:
    """None if it does nothing to a captured table."""
    for remote in remotes:
        found = _about(statement, remote, types.get(remote))
        if found is not None:
            return replace(found, mark=_mark(statement), left=tuple(statement.left))
    return None


def types_in(statement: Statement, remotes: Iterable[str]) -> dict[str, Mapping[str, str]]:
    """Of the captured tables that a record describes."""
    after = ((remote, one) for remote in remotes for one in statement.tables if remote in one.names)
    return {remote: one.types for remote, one in after if one.types}


def _mark(statement: Statement) -> str:
    about = (statement.text, *(repr((one.kind, one.names, one.former)) for one in statement.tables))
    text = sha256("\n".join(about).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return "" if statement.log is None else f"{':'.join(map(str, statement.log))} {text}"


def _about(statement: Statement, remote: str, types: Mapping[str, str] | None) -> TableStatement | None:
    after = next((one for one in statement.tables if remote in one.names or remote in one.former), None)
    database, _, name = remote.rpartition(".")
    database = database or statement.database
    text = statement.text.replace("``", "`").lower()
    if after is None and name.lower() not in text and database.lower() not in text:
        return None
    plain = TableStatement(remote, statement.time, statement.log, {} if after is None else after.types)
    try:
        if _empties(statement, database, name):
            return replace(plain, emptied=True)
        if after is not None and remote in after.names:
            return _described(statement, plain, after, database, name, types)
        if after is not None:
            return _called(plain, after, name, after.names[-1] if after.names else "")
        return _undescribed(statement, plain, database, name)
    except UnclearError as error:
        return replace(plain, unclear=str(error))


def _described(
    statement: Statement,
    plain: TableStatement,
    after: TableAfter,
    database: str,
    name: str,
    types: Mapping[str, str] | None,
) -> TableStatement | None:
    """Of a table that the record shows as it is after the statement."""
    if after.former and plain.remote not in after.former:
        return replace(plain, is_new=True, moved=True)
    if after.kind == "CREATE" and _IF_NOT.match(readings(statement.text)[0].lstrip()):
        return replace(plain, emptied=True, is_new=True, if_gone=True)
    # A column whose type nobody remembers may have had any.
    before = types or dict.fromkeys(after.types, "?")
    try:
        done = altered(statement.text, statement.database, database, {name: before})
    except ReplacedError:
        gone, new = after.kind == "DROP", after.kind == "CREATE"
        return replace(plain, emptied=gone or new, is_gone=gone, is_new=not gone, moved=not (gone or new))
    if done is None and all(_INDEX.match(one.lstrip()) for one in readings(statement.text)):
        return None
    if done is None or not _is_as_told(done, after.types):
        raise UnclearError(_NOT_UNDERSTOOD)
    changed = dict(done.renamed) if types is None and "CHANGE" in statement.text.upper() else {}
    renamed = tuple(pair for pair in done.renamed if pair[0] not in changed)
    parts = replace(plain, renamed=renamed, dropped=(*done.gone, *changed))
    kept = {now.lower() for one in before if (now := parts.now(one)) is not None and one not in changed.values()}
    untold = {one: _UNTOLD for one in after.types if one.lower() not in kept}
    return replace(parts, added={**untold, **dict(done.added)})


def _undescribed(statement: Statement, plain: TableStatement, database: str, name: str) -> TableStatement | None:
    """Of a table that is not in the record: ALTER TABLE … RENAME has nothing but the new name."""
    try:
        done = altered(statement.text, statement.database, database, {name: {}})
    except RenamedError as error:
        here = [one for one in statement.tables if one.kind == "ALTER"]
        if len(here) != 1 or len(statement.tables) != 1:
            raise
        return _called(plain, here[0], name, error.new)
    if done is not None and done != Altered(name):
        raise UnclearError(_NOT_UNDERSTOOD)
    others = {other.lower() for one in statement.tables for other in one.names}
    if done is None and plain.remote.lower() not in others:
        # A server may take no notice of how names are written.
        text, schema, database, name = (one.lower() for one in (statement.text, statement.database, database, name))
        if altered(text, schema, database, {name: {}}) not in (None, Altered(name)):
            raise UnclearError(_NOT_UNDERSTOOD)
    return None


def _called(plain: TableStatement, after: TableAfter, name: str, new: str) -> TableStatement:
    called = plain.remote.removesuffix(name) + new
    if called not in after.names or not new:
        raise UnclearError("it is in another database now")
    return replace(plain, types=after.types, called=called)


def _is_as_told(done: Altered, types: Mapping[str, str]) -> bool:
    """Whether the table has afterwards the columns that it must have then."""
    there = {name.lower() for name in types}
    come = {name.lower() for name in (*dict(done.added), *dict(done.renamed).values())}
    left = {name.lower() for name in dict(done.renamed)}
    return bool(there) and come <= there and not (left - come) & there


def _empties(statement: Statement, database: str, name: str) -> bool:
    texts = [text.strip() for text in readings(statement.text)]
    is_named = re.compile(rf"TRUNCATE\b.*(?<![\w$]){re.escape(name)}(?![\w$])", re.I | re.S)
    if not any(map(is_named.match, texts)):
        return False
    found = [_EMPTIES.fullmatch(text) for text in texts]
    tables = {(_plain(one[1]) or statement.database, _plain(one[2])) for one in found if one is not None}
    if None not in found and len(tables) == 1:
        ((owner, table),) = tables
        if (owner, table) == (database, name) or not (same(owner, database) and same(table or "", name)):
            return (owner, table) == (database, name)
    raise UnclearError(_NOT_UNDERSTOOD)


def _plain(word: str | None) -> str | None:
    return None if word is None else word.strip("`")
