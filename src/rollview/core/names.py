"""Names from outside: what is refused, and how a column is called inside a file.

Law: ``physical`` is injective, so two columns of a relation never share a place in a file. Relation names never
reach a path at all; folders are generated.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

COUNT = "_count"
CSN = "_csn"
RESERVED_PREFIX = "_rv_"
MAX_LENGTH = 255

_PLAIN = re.compile(r"[A-Za-z0-9_]")


def fault_in_name(name: str) -> str | None:
    """The reason why this cannot be the name of a relation or column, or None."""
    if not name.strip():
        return "it is empty"
    if len(name) > MAX_LENGTH:
        return f"it is longer than {MAX_LENGTH} characters"
    if "\0" in name:
        return "it holds a NUL character"
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return "it is not valid Unicode"
    if name.lower() in (COUNT, CSN) or name.lower().startswith(RESERVED_PREFIX):
        return f"'{COUNT}', '{CSN}' and names that start with '{RESERVED_PREFIX}' belong to rollview"
    return None


def physical(column: str) -> str:
    """The column's name inside Parquet and Delta: itself, or percent-encoded where a reader could stumble."""
    return "".join(c if _PLAIN.match(c) else "".join(f"%{b:02X}" for b in c.encode("utf-8")) for c in column)


def free_place(column: str, taken: Iterable[str]) -> str:
    """A name inside files for a new column, where others are taken."""
    known = {one.lower() for one in taken}
    place, number = physical(column), len(known)
    while place.lower() in known:
        number += 1
        place = f"{physical(column)}%_{number}"
    return place


def same(left: str, right: str) -> bool:
    """Spark compares identifiers without regard to case."""
    return left.lower() == right.lower()


def quoted(name: str) -> str:
    """A name as one identifier of Spark, MariaDB and MySQL."""
    return _enclosed(name, "`")


def double_quoted(name: str) -> str:
    """A name as one identifier of standard SQL, as PostgreSQL and SQLite take it."""
    return _enclosed(name, '"')


def _enclosed(name: str, mark: str) -> str:
    return mark + name.replace(mark, mark + mark) + mark
