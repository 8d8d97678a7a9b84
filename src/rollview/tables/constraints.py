"""Constraints of a transaction's outcome, looked at only where it changed something.

Law: the tables before satisfied every constraint, so one can be broken only for a key that the transaction touched:
an inserted key may be there twice, an inserted reference may lead nowhere, a deleted key may still be referred to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rollview.catalog import Relation, Snapshot
from rollview.core.names import same
from rollview.core.schema import ForeignKey
from rollview.store.folder import DeltaFolder
from rollview.tables.ask import ask
from rollview.tables.probe import Count, Key, Probe, Rows, Test, own_rows, rows_at
from rollview.tables.staging import Effect, Staged, load

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Written:
    """One table's settled changes."""

    relation: Relation
    folder: DeltaFolder
    staged: Staged
    effect: Effect

    def rows(self, count: Count) -> Rows:
        return own_rows(self.folder, self.staged.files, count)


@dataclass(frozen=True, slots=True)
class Violation:
    table: str
    constraint: str
    example: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """The tables of a snapshot with the transaction's changes on top. ``written`` is keyed by folded name."""

    spark: SparkSession
    root: Path
    snapshot: Snapshot
    written: Mapping[str, Written]

    def held(self, table: Relation) -> tuple[Rows, ...]:
        own = self.written.get(table.name.lower())
        return (
            *rows_at(self.root, table, self.snapshot.moment.csn),
            *((own.rows(Count.SIGNED),) if own is not None else ()),
        )


def find_violation(outcome: Outcome) -> Violation | None:
    """The first constraint that would be broken, or None."""
    return next((found for written in outcome.written.values() for found in _violations(outcome, written)), None)


def _violations(outcome: Outcome, written: Written) -> Iterator[Violation]:
    table = outcome.snapshot.get(written.relation.name)
    if written.effect.inserted:
        yield from _null_values(written)
        for key in table.constraints.checked.keys:
            yield from _doubled(outcome, written, table, key)
        for reference in table.constraints.checked.foreign_keys:
            yield from _leading_nowhere(outcome, written, table, reference)
    if written.effect.deleted:
        for child in outcome.snapshot.tables():
            for reference in child.constraints.checked.foreign_keys:
                if same(reference.table, table.name):
                    yield from _left_behind(outcome, written, child, reference)


def _null_values(written: Written) -> Iterator[Violation]:
    """Deleted rows have no NULL there, so every NULL in the files comes in."""
    for name in written.relation.constraints.checked.not_null:
        stored = written.relation.schema.stored(name)
        nulls = [file.nulls.get(stored) for file in written.staged.files]
        if any(count is None or count > 0 for count in nulls) and _has_null(written, name):
            yield Violation(written.relation.name, f"NOT NULL of column '{name}'", f"a row has no {name}")


def _has_null(written: Written, name: str) -> bool:
    return any(load(written.folder, (file,), (name,)).column(0).null_count for file in written.staged.files)


def _doubled(outcome: Outcome, written: Written, table: Relation, key: tuple[str, ...]) -> Iterator[Violation]:
    def question(probe: Probe[Any]) -> Key | None:
        keys = probe.touched(written.rows(Count.INSERTED), key)
        return probe.first(probe.having(keys, outcome.held(table), key, Test.SEVERAL))

    found = ask(outcome.spark, written.staged.rows, table.schema, key, question)
    if found is not None:
        kind = "its primary key" if key == table.constraints.checked.primary_key else "UNIQUE"
        yield Violation(table.name, f"{kind} ({', '.join(key)})", f"{told(key, found)} would be there more than once")


def _leading_nowhere(outcome: Outcome, written: Written, table: Relation, reference: ForeignKey) -> Iterator[Violation]:
    parent = outcome.snapshot.find(reference.table)

    def question(probe: Probe[Any]) -> Key | None:
        keys = probe.touched(written.rows(Count.INSERTED), reference.columns)
        held = outcome.held(parent) if parent is not None else ()
        return probe.first(probe.having(keys, held, reference.referenced, Test.NONE) if held else keys)

    found = ask(outcome.spark, written.staged.rows, table.schema, reference.columns, question)
    if found is not None:
        where = f"'{reference.table}' has no row with {told(reference.referenced, found)}"
        yield Violation(table.name, _named(reference), where)


def _left_behind(outcome: Outcome, written: Written, child: Relation, reference: ForeignKey) -> Iterator[Violation]:
    parent = outcome.snapshot.get(reference.table)

    def question(probe: Probe[Any]) -> Key | None:
        deleted = probe.touched(written.rows(Count.DELETED), reference.referenced)
        gone = probe.having(deleted, outcome.held(parent), reference.referenced, Test.NONE)
        return probe.first(probe.having(gone, outcome.held(child), reference.columns, Test.SOME))

    found = ask(outcome.spark, written.staged.rows, parent.schema, reference.referenced, question)
    if found is not None:
        where = f"rows with {told(reference.columns, found)} still refer to '{parent.name}'"
        yield Violation(child.name, _named(reference), where)


def told(columns: Sequence[str], values: Key) -> str:
    """A key for people; long values are cut."""
    return ", ".join(f"{name} = {_short(value)}" for name, value in zip(columns, values, strict=True))


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 80 else f"{text[:77]}…"


def _named(reference: ForeignKey) -> str:
    return f"its foreign key ({', '.join(reference.columns)})"
