"""A MariaDB database, asked by keys.

Law: a consistent snapshot knows its place in the log. It saw the transactions up to there, and no other; the log may be
ahead of it. Keys go into a statement as numbers and as hexadecimal digits, so no value of a key is read as SQL.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rollview.core.names import quoted
from rollview.sources.asking import unaskable
from rollview.sources.binlog.charsets import encoded
from rollview.sources.binlog.layout import BinlogLayout, stored
from rollview.sources.binlog.stream import done_through
from rollview.sources.protocol import Row, UnitOfWork

TOO_LONG = 1969
"""The number of the error of a statement that took longer than it may."""
_COMPARED = ("tinyint", "smallint", "mediumint", "int", "bigint", "char", "varchar", "text", "mediumtext", "longtext")
"""Kinds of columns whose equal values are equal for the server too; a YEAR is compared otherwise than it is told."""


@dataclass(frozen=True, slots=True)
class GtidSeen:
    """Transactions up to a place in the log."""

    through: str

    def saw(self, unit: UnitOfWork, after: str) -> bool | None:
        return not self.missed(unit.position, unit.transaction)

    def missed(self, position: str, transaction: str) -> bool:
        """A transaction is in the log a moment before it can be seen."""
        return order_of(position) > order_of(self.through)


def order_of(position: str) -> int:
    return int(done_through(position).rpartition("-")[2])


def check_compared(table: BinlogLayout, equal: Sequence[str]) -> None:
    kinds = {column.name: column for column in stored(table)}
    for name in equal:
        if kinds[name].kind not in _COMPARED:
            raise unaskable(table.remote, name, f"the server compares {kinds[name].spelled} in its own way")


def condition(equal: Sequence[str], keys: Iterable[str]) -> str:
    """``keys``: spelled, or places for them. A row is given once, however many keys it equals there."""
    return f"({', '.join(map(quoted, equal))}) IN ({', '.join(keys)})"


def spelled(table: BinlogLayout, equal: Sequence[str], keys: Iterable[Row]) -> Iterator[str]:
    """Those that a row may have. Texts are in the columns' own character sets: the server refuses to compare others, or
    does not find them among several."""
    charsets = {column.name: column.charset for column in stored(table)}
    for key in keys:
        values = [_spelled(charsets[name], value) for name, value in zip(equal, key, strict=True)]
        texts = [value for value in values if value is not None]
        if len(texts) == len(equal):
            yield f"({', '.join(texts)})"


def _spelled(charset: str | None, value: object) -> str | None:
    if isinstance(value, int):
        return str(int(value))
    assert charset is not None
    text = encoded(charset, str(value))
    return None if text is None else f"_{charset} X'{text.hex()}'"
