"""Asking a source for rows by keys, instead of copying its tables.

Law: an answer is read in one short read-only transaction that sees one snapshot and leaves nothing behind; keys are
bound, never part of a text. A source may compare more generously than Spark, never more strictly: what it gives beyond
the keys is left out here. What was seen is told as a set of units of work, so that captured changes bring the rows to
any csn: R@t = answer − Σ Δ(seen, csn > t) + Σ Δ(unseen, csn ≤ t).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import islice
from typing import Protocol, runtime_checkable

from rollview.core.schema import Schema
from rollview.errors import AskTooLarge, NotFound, UsageError
from rollview.sources.protocol import Row, Rows, SourceTable, UnitOfWork
from rollview.sources.settings import AskLimits, SourceSettings

MOST_KEYS = 1_000
"""Keys that are bound into one statement; more of them are asked for in turn, in the same snapshot."""
_PLAIN = ("bigint", "int", "smallint", "tinyint", "string")


@dataclass(frozen=True, slots=True)
class Ask:
    """Rows of a table, by the source's own name of it, whose ``equal`` columns have one of the keys."""

    table: str
    columns: tuple[str, ...]
    equal: tuple[str, ...]
    keys: frozenset[Row]


class SeenUnits(Protocol):
    @property
    def through(self) -> str:
        """Capture must have read this far to know all that was seen."""

    def saw(self, unit: UnitOfWork, after: str) -> bool | None:
        """Whether a unit of work, the next one after a position, was seen; None if a part of it was: ask again."""

    def missed(self, position: str, transaction: str) -> bool:
        """Whether a unit of work that had been captured when the source was asked was nevertheless not seen."""


@dataclass(frozen=True, slots=True)
class SourceAnswer:
    """Rows for each ask, in the order of its columns, from one snapshot."""

    rows: tuple[tuple[Row, ...], ...]
    seen: SeenUnits


@dataclass(frozen=True, slots=True)
class SourceStream:
    """All rows of tables, piece by piece, from one snapshot; only while it is open."""

    rows: Callable[[str], Iterator[Rows]]
    seen: SeenUnits


@runtime_checkable
class AskableSource(Protocol):
    """A source that can be asked."""

    def ask(self, asks: Sequence[Ask]) -> SourceAnswer: ...

    @staticmethod
    def statement(table: SourceTable, equal: Sequence[str]) -> str:
        """The text with which it is asked, with places for the keys."""

    def stream(self) -> AbstractContextManager[SourceStream]:
        """All rows of captured tables, by the source's own names. Nothing is left behind at the source."""

    def moment(self) -> AbstractContextManager[None]:
        """Where a unit of work is all that was committed by now: what is asked and then read inside has the same now.
        Elsewhere it does nothing."""


def asked_table(known: Mapping[str, SourceTable], settings: SourceSettings, ask: Ask) -> SourceTable:
    """The table with the columns that are asked for; refused where keys of its columns cannot be sent."""
    table = known.get(ask.table)
    if table is None:
        raise NotFound("captured table", ask.table)
    for name in (*ask.columns, *ask.equal):
        if table.schema.find(name) is None:
            raise NotFound(f"column of table '{ask.table}'", name)
    if not ask.equal or not set(ask.equal) <= set(ask.columns):
        raise UsageError(f"Table '{ask.table}' is asked for by columns that are among those asked for.")
    for name in ask.equal:
        type_ = table.schema.find(name).type  # type: ignore[union-attr]
        if type_ not in _PLAIN or name in settings.table(ask.table).types:
            raise unaskable(ask.table, name, f"values of type {type_} may be equal here and not there")
    columns = tuple(column for name in ask.columns if (column := table.schema.find(name)) is not None)
    return SourceTable(table.name, Schema(columns))


def unaskable(table: str, column: str, reason: str) -> UsageError:
    return UsageError(
        f"Table '{table}' cannot be asked for by column '{column}': {reason}.",
        hint="Ask by columns of whole numbers or text, or copy the table.",
        table=table,
        column=column,
    )


def pieces(keys: Iterable[Row]) -> Iterator[list[Row]]:
    """Keys without NULL, which equals nothing, so many at a time."""
    rest = iter(sorted((key for key in keys if None not in key), key=repr))
    while piece := list(islice(rest, MOST_KEYS)):
        yield piece


def only_asked(rows: Iterable[Row], ask: Ask) -> tuple[Row, ...]:
    """Rows whose key is one of those that were asked for, exactly."""
    at = [ask.columns.index(name) for name in ask.equal]
    return tuple(row for row in rows if tuple(row[i] for i in at) in ask.keys)


def check_size(ask: Ask, rows: int, limits: AskLimits) -> None:
    if rows > limits.rows:
        raise AskTooLarge(ask.table, len(ask.keys), f"it has more than {limits.rows} rows for them")


def took_too_long(ask: Ask, limits: AskLimits) -> AskTooLarge:
    return AskTooLarge(ask.table, len(ask.keys), f"that takes longer than {limits.seconds} seconds")
