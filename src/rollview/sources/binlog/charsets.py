"""Character sets.

Law: a text is taken only from a character set whose bytes the log's reader takes for the same characters as the server
does, which was tried byte by byte. The names of an ENUM are read as UTF-8 whatever they are in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from pymysqlreplication.constants import FIELD_TYPE

_UNICODE = frozenset({"utf8mb4", "utf8mb3", "utf8", "ascii"})
_ALIKE = _UNICODE | {
    *("latin1", "latin2", "latin5", "latin7", "cp1250", "cp1251", "cp1256", "cp1257", "cp850", "cp852"),
    *("koi8r", "macroman"),
}
_READ_AS: Mapping[str, str] = {"utf8mb4": "utf8", "utf8mb3": "utf8", "latin1": "cp1252", "koi8r": "koi8_r"}
_NARROW = ("utf8mb3", "utf8")
_HOLES = frozenset(("latin1", one) for one in "\x81\x8d\x8f\x90\x9d")
"""What the server has where cp1252 has nothing."""
_ENCODINGS = frozenset({_READ_AS.get(name, name) for name in _ALIKE} | {"binary"})
_ENUM_ENCODINGS = frozenset({"utf8", "ascii"})
_TEXTS = (FIELD_TYPE.VARCHAR, FIELD_TYPE.VAR_STRING, FIELD_TYPE.STRING, FIELD_TYPE.BLOB)
_WIDE = re.compile(r"\b(?:ucs2|utf16|utf32)", re.IGNORECASE)


def is_read_alike(kind: str, charset: str | None) -> bool:
    """Whether values of a column come out of the log as they are."""
    return charset is None or charset in (_UNICODE if kind == "enum" else _ALIKE)


def encoded(charset: str, text: str) -> bytes | None:
    """A text as a column has it; None if it cannot have it."""
    if charset in _NARROW and any(one > "\uffff" for one in text):
        return None
    encoding = _READ_AS.get(charset, charset)
    try:
        return b"".join(one.encode("latin-1" if (charset, one) in _HOLES else encoding) for one in text)
    except UnicodeEncodeError:
        return None


def names_unreadable(statement: str) -> bool:
    """Whether a column may be in a character set that the reader cannot even name afterwards."""
    return _WIDE.search(statement) is not None


def find_unreadable(columns: Iterable[Any], names: Iterable[str]) -> str | None:
    """One of the named columns, as the log tells them, whose values would not come out as they are."""
    wanted = set(names)
    return next((c.name for c in columns if c.name in wanted and not _comes_out(c)), None)


def _comes_out(column: Any) -> bool:
    if column.type == FIELD_TYPE.ENUM:
        return column.character_set_name in _ENUM_ENCODINGS
    return column.type not in _TEXTS or column.character_set_name in _ENCODINGS
