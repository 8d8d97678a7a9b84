"""What a statement in the log does to the columns of a table.

Law: a column is left alone only where the statement is understood to leave it and its values alone. What is not
understood is told, never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace

from rollview.sources.binlog.charsets import names_unreadable
from rollview.sources.binlog.declared import WHOLE, DeclaredColumn, declared, keeps_values

_TOKEN = re.compile(
    r"""'(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*" | `(?:[^`]|``)*` | [\w$]+
        | (?P<left_out>/\*.*?\*/|--[^\n]*|\#[^\n]*|\s+) | .""",
    re.X | re.S,
)
_NAME = r"(`(?:[^`]|``)+`|[\w$]+)"
_NAME_ONLY = r"(?:`(?:[^`]|``)+`|[\w$]+)"
_TABLE = rf"(?:{_NAME}\s*\.\s*)?{_NAME}"
_REMARKS = r"(?:\s|/\*(?!M?!).*?\*/|--[^\n]*|\#[^\n]*)*"
_SETTINGS = r"""SET\s+STATEMENT\b(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|(?!\bFOR\b)[^'"])*\bFOR\b"""
_BEFORE = re.compile(rf"{_REMARKS}(?:{_SETTINGS}{_REMARKS})?", re.I | re.S)
_RUN = re.compile(r"/\*M?!\d*")
"""The beginning of a comment that servers of some versions run."""
_FIRST = re.compile(r"(?:\s|/\*.*?\*/)*(?:ALTER|DROP|RENAME|CREATE)\b", re.I | re.S)
_ALTER_ANY = re.compile(r"ALTER\s+(?:ONLINE\s+)?(?:IGNORE\s+)?TABLE\s+(?:IF\s+EXISTS\s+)?", re.I)
_ALTER_IGNORE = re.compile(r"ALTER\s+(?:ONLINE\s+)?IGNORE\b", re.I)
_ALTER = re.compile(rf"{_ALTER_ANY.pattern}{_TABLE}\s*", re.I)
_WHOLE = re.compile(r"(?:DROP|RENAME|CREATE\s+OR\s+REPLACE|CREATE)\s+TABLES?\s+(?!IF\s+NOT\b)(?:IF\s+EXISTS\s+)?", re.I)
_RENAMED_TABLE = re.compile(rf"{_TABLE}\s+(?:WAIT\s+\d+\s+|NOWAIT\s+)?TO\s+{_TABLE}$", re.I)
_RENAME_TO = re.compile(rf"RENAME\s+(?:(?:TO|AS|=)\s+)?(?!COLUMN\b|INDEX\b|KEY\b|TO\b|AS\b){_TABLE}$", re.I)
_DATABASE = re.compile(rf"DROP\s+(?:DATABASE|SCHEMA)\s+(?:IF\s+EXISTS\s+)?{_NAME}", re.I)
_EXCHANGE = re.compile(rf"\bEXCHANGE\s+PARTITION\s+{_NAME_ONLY}\s+WITH\s+TABLE\s+{_TABLE}", re.I)
_CASCADES = re.compile(r"\bON\s+(?:DELETE|UPDATE)\s+(?:CASCADE|SET\s+(?:NULL|DEFAULT))\b", re.I)
_PART = r"INDEX|KEY|UNIQUE|PRIMARY|CONSTRAINT|FOREIGN|FULLTEXT|SPATIAL|CHECK"
_IF = r"(?:COLUMN\s+)?(?:IF\s+(?:NOT\s+)?EXISTS\s+)?(?!COLUMN\b|IF\b)"
_DROP_KEY = re.compile(r"DROP\s+PRIMARY\s+KEY\b", re.I)
_NO_COLUMN = re.compile(
    rf"(?:ADD\s+(?:{_PART})|DROP\s+(?:{_PART})|RENAME\s+(?:INDEX|KEY)|ALTER\s+(?:INDEX|KEY)|ENGINE|COMMENT|AUTO_INCREMENT"
    r"|ADD\s+PARTITION|(?:COALESCE|REORGANIZE|REBUILD|ANALYZE|CHECK|OPTIMIZE)\s+PARTITION|PARTITION\s+BY"
    r"|REMOVE\s+PARTITIONING|ALGORITHM|LOCK|ENABLE\s+KEYS|DISABLE\s+KEYS|ORDER\s+BY|ROW_FORMAT|KEY_BLOCK_SIZE|STATS_\w+|FORCE"
    r"|WAIT|NOWAIT|(?:DEFAULT\s+)?(?:CHARACTER\s+SET|CHARSET|COLLATE))\b",
    re.I,
)
_RENAME = re.compile(rf"RENAME\s+(?=COLUMN\b){_IF}{_NAME}\s+TO\s+{_NAME}$", re.I)
_CHANGE = re.compile(rf"CHANGE\s+{_IF}{_NAME}\s+{_NAME}\s+(.+)$", re.I | re.S)
_MODIFY = re.compile(rf"MODIFY\s+{_IF}{_NAME}\s+(.+)$", re.I | re.S)
_ADD_LIST = re.compile(r"ADD\s+(?:COLUMN\s+)?(?:IF\s+NOT\s+EXISTS\s+)?\((.+)\)$", re.I | re.S)
_ADD = re.compile(rf"ADD\s+{_IF}{_NAME}\s+(.+)$", re.I | re.S)
_IF_NOT = re.compile(r"ADD\s+(?:COLUMN\s+)?IF\b", re.I)
_DROP = re.compile(rf"DROP\s+{_IF}{_NAME}$", re.I)
_DEFAULT = re.compile(rf"ALTER\s+{_IF}{_NAME}\s+(?:SET|DROP)\s+DEFAULT\b", re.I)
_TYPE = re.compile(r"(\w+)\s*(?:\(([^)]*)\))?\s*(UNSIGNED)?", re.I)

_CHARSET = re.compile(r"\b(?:CHARACTER\s+SET|CHARSET|COLLATE|ASCII|UNICODE|BYTE|BINARY)\b", re.I)

NOT_UNDERSTOOD = "an ALTER TABLE in the log is not understood"


class UnclearError(Exception):
    """A statement about one of our tables of which nothing can be said."""


class ReplacedError(UnclearError):
    """A statement after which one of our tables is another, if there is one of its name."""

    def __init__(self, table: str) -> None:
        super().__init__("a table was dropped, renamed or made anew")
        self.table = table


class RenamedError(UnclearError):
    """A statement after which one of our tables has another name, and no table has its old one."""

    def __init__(self, table: str, new: str) -> None:
        super().__init__(f"it is called {new} now")
        self.table, self.new = table, new


@dataclass(frozen=True, slots=True)
class Altered:
    """What a statement does to the columns of a table, all told by their names before it.

    ``gone``: columns whose values may be others now; ``unsure``: columns of which a promise (key, NOT NULL) is gone;
    ``renamed``: with their new names; ``retyped``: with a type that keeps their values; ``added``: by their new names.
    """

    table: str
    gone: tuple[str, ...] = ()
    unsure: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    retyped: tuple[tuple[str, DeclaredColumn], ...] = ()
    added: tuple[tuple[str, DeclaredColumn], ...] = ()

    def joined(self, other: Altered) -> Altered:
        pairs = ((getattr(self, one.name), getattr(other, one.name)) for one in fields(self)[1:])
        return Altered(self.table, *((*before, *after) for before, after in pairs))


Spelled = Mapping[str, str]
"""Types of columns as the server spells them."""


def statement_itself(text: str) -> str:
    """From its first word on: without comments and settings for it alone. A comment that the server runs is none."""
    found = _BEFORE.match(text)
    return text if found is None else text[found.end() :]


def readings(text: str) -> tuple[str, ...]:
    """The statement, or the two that it may be: whether a server runs a comment that begins with ``/*!`` depends on its
    version."""
    words = [found[0] for found in _TOKEN.finditer(text)]
    if not any(_RUN.match(word) for word in words):
        return (statement_itself(text),)
    run = "".join(f" {_RUN.sub('', word)[:-2]} " if _RUN.match(word) else word for word in words)
    skipped = "".join(" " if _RUN.match(word) else word for word in words)
    return statement_itself(run), statement_itself(skipped)


def altered(text: str, schema: str, database: str, tables: Mapping[str, Spelled]) -> Altered | None:
    """What the statement does to one of the tables of the database; None if it is about none of them."""
    told = [_told(reading, schema, database, tables) for reading in readings(text)]
    if any(_effect(one) != _effect(told[0]) for one in told):
        raise UnclearError(NOT_UNDERSTOOD)
    if isinstance(told[0], UnclearError):
        raise told[0]
    return told[0]


def _told(text: str, schema: str, database: str, tables: Mapping[str, Spelled]) -> Altered | UnclearError | None:
    try:
        return _does(text, schema, database, tables)
    except UnclearError as error:
        return error


def _effect(told: Altered | UnclearError | None) -> object:
    """What is the same for two statements that do the same to our tables."""
    if isinstance(told, UnclearError):
        return type(told), str(told), tuple(vars(told).items())
    return None if told is not None and told == Altered(told.table) else told


def _does(text: str, schema: str, database: str, tables: Mapping[str, Spelled]) -> Altered | None:
    if _FIRST.match(text) is None:
        return None
    text = " ".join(_words(text))
    found = _ALTER.match(text)
    if found is None:
        _refuse_other_quotes(text, tables)
        _refuse_whole(text, schema, database, tables)
        return None
    owner, name = (_plain(found[1]) if found[1] else schema), _plain(found[2])
    _refuse_exchange(text, schema, database, tables)
    if owner != database or name not in tables:
        return None
    if _ALTER_IGNORE.match(text):
        raise UnclearError("an ALTER IGNORE TABLE may take rows away that the log does not tell")
    whole = Altered(name)
    clauses = list(_clauses(text[found.end() :]))
    if len(clauses) == 1 and (moved := _RENAME_TO.match(clauses[0])):
        _tell_renamed([(owner, name, _plain(moved[1]) if moved[1] else schema, _plain(moved[2]))], database, tables)
    for clause in clauses:
        for one in _single(clause):
            whole = whole.joined(_altered(name, one, tables[name]))
    return whole


def _single(clause: str) -> Iterator[str]:
    """ADD (a int, b int) is two."""
    found = _ADD_LIST.match(clause)
    if found is None:
        yield clause
        return
    # It may have indexes, too.
    begin = re.sub(r"COLUMN\s+", "", clause[: found.start(1) - 1], flags=re.I)
    yield from (begin + one for one in _clauses(found[1]))


def _refuse_other_quotes(text: str, tables: Mapping[str, Spelled]) -> None:
    """By the mode ANSI_QUOTES a name may be what else is a text."""
    if _ALTER_ANY.match(text) and any(f'"{name}"' in text for name in tables):
        raise UnclearError(NOT_UNDERSTOOD)


def _refuse_exchange(text: str, schema: str, database: str, tables: Mapping[str, Spelled]) -> None:
    """A table that gave its rows to a part of another and got others for them."""
    found = _EXCHANGE.search(text)
    if found is not None and _plain(found[2]) in tables and (_plain(found[1]) if found[1] else schema) == database:
        raise UnclearError("a table's rows were exchanged for those of a partition")


def _refuse_whole(text: str, schema: str, database: str, tables: Mapping[str, Spelled]) -> None:
    """A table that is dropped, renamed or made anew is another."""
    if (dropped := _DATABASE.match(text)) and _plain(dropped[1]) == database:
        raise UnclearError("the database was dropped")
    found = _WHOLE.match(text)
    if found is None:
        return
    if text[: found.end()].upper().startswith("RENAME"):
        _tell_renamed(list(_renames(text[found.end() :], schema)), database, tables)
    rest = text[found.end() :]
    made = re.match(_TABLE, rest) if text[: found.end()].upper().startswith("CREATE") else None
    if made is not None and (_plain(made[1]) if made[1] else schema) != database:
        return
    named = {_plain(word) for word in ((database, made[2]) if made else re.findall(_NAME, rest))}
    ours = sorted(named.intersection(tables))
    if ours and (schema == database or database in named):
        raise ReplacedError(ours[0])


_Rename = tuple[str, str, str, str]
"""Database and name of a table, before and after."""


def _renames(text: str, schema: str) -> Iterator[_Rename]:
    for clause in _clauses(text):
        found = _RENAMED_TABLE.match(re.sub(r"\s*\.\s*", ".", clause))
        if found is None:
            raise UnclearError(NOT_UNDERSTOOD)
        old, name, new, called = (None if one is None else _plain(one) for one in found.groups())
        yield old or schema, name or "", new or schema, called or ""


def _tell_renamed(renames: Sequence[_Rename], database: str, tables: Mapping[str, Spelled]) -> None:
    """If it does nothing else to our tables than to give one a name of its own in the database."""
    ours = [one for one in renames if one[0] == database and one[1] in tables]
    taken = [one for one in renames if one[2] == database and one[3] in tables]
    if len(renames) == 1 and len(ours) == 1 and not taken and ours[0][2] == database:
        raise RenamedError(ours[0][1], ours[0][3])


def _clauses(text: str) -> Iterator[str]:
    """The statement's actions."""
    depth = 0
    clause: list[str] = []
    for word in _words(text):
        depth += {"(": 1, ")": -1}.get(word, 0)
        if word == "," and depth == 0:
            yield " ".join(clause)
            clause = []
        elif word != ";":
            clause.append(word)
    if clause:
        yield " ".join(clause)


def _words(text: str) -> list[str]:
    """Without comments."""
    return [found[0] for found in _TOKEN.finditer(text) if not found["left_out"]]


def _altered(table: str, clause: str, columns: Spelled) -> Altered:
    if _CASCADES.search(clause):
        raise UnclearError("a foreign key of the table may change rows that are not in the log")
    if _DROP_KEY.match(clause):
        return Altered(table, unsure=tuple(columns))
    if _NO_COLUMN.match(clause) and names_unreadable(clause):
        raise UnclearError("a column may be in a character set that cannot be read exactly")
    if _NO_COLUMN.match(clause) or _DEFAULT.match(clause):
        return Altered(table)
    if found := _RENAME.match(clause):
        return Altered(table, renamed=((_plain(found[1]), _plain(found[2])),))
    if found := _CHANGE.match(clause):
        old, new = _plain(found[1]), _plain(found[2])
        retyped = _retyped(table, old, found[3], columns)
        return retyped if old == new or retyped.gone else replace(retyped, renamed=((old, new),))
    if found := _MODIFY.match(clause):
        return _retyped(table, _plain(found[1]), found[2], columns)
    if found := _DROP.match(clause):
        return Altered(table, (_plain(found[1]),))
    if found := _ADD.match(clause):
        # Whether it was there already nobody can tell who does not know all columns.
        told = DeclaredColumn(("", "", None), None) if _IF_NOT.match(clause) else declared(found[2])
        return Altered(table, added=((_plain(found[1]), told),))
    raise UnclearError(NOT_UNDERSTOOD)


def _retyped(table: str, name: str, text: str, columns: Spelled) -> Altered:
    """A column keeps its values if its type stays, or only grows longer or wider."""
    before = next((type_ for own, type_ in columns.items() if own.lower() == name.lower()), None)
    old, new = _TYPE.match(before or ""), _TYPE.match(text)
    if before is None:
        return Altered(table)
    if old is None or new is None or _CHARSET.search(text):
        return Altered(table, (name,))
    word = new[1].lower().replace("integer", "int").replace("numeric", "decimal")
    kept = word == old[1].lower() and bool(new[3]) == bool(old[3])
    nullable = () if "NOT NULL" in " ".join(text.upper().split()) else (name,)
    after, length = "".join((new[2] or "").split()), "".join((old[2] or "").split())
    grows = word.startswith("var") and after.isdigit() and length.isdigit() and int(after) >= int(length)
    if kept and (after == length or grows or word.endswith("int")):
        return Altered(table, unsure=nullable)
    was, now = declared(before), declared(text)
    numbers = word.endswith("int") or word in ("decimal", "double")
    # A server that is not strict makes 0 of what is negative, and logs no row of it.
    loses_signs = bool(new[3]) and not old[3]
    if (
        loses_signs
        or _narrows(old[1].lower(), word)
        or not numbers
        or was.type is None
        or now.type is None
        or not keeps_values(was.type, now.type)
    ):
        return Altered(table, (name,))
    return Altered(table, unsure=nullable, retyped=((name, now),))


def _narrows(old: str, new: str) -> bool:
    """A server that is not strict makes what no longer fits the nearest that does, and logs no row of it."""
    return old in WHOLE and new in WHOLE and WHOLE.index(new) < WHOLE.index(old)


def _plain(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name
