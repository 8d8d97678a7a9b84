"""Looking up few keys in many rows.

Law: the rows a relation has for a key are the sum of the signed rows with that key, over its state, its delta and a
transaction's own changes; nothing has to be merged to count them. Keys are equal as Spark's GROUP BY means it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol, TypeVar

from rollview.catalog import Part, Relation
from rollview.core.interval import Csn, Interval
from rollview.relations.reader import stored_as
from rollview.store.datafile import DataFile
from rollview.store.folder import DeltaFolder
from rollview.store.timed import delta_files


class Count(StrEnum):
    """What one row counts for."""

    ONE = "one"
    SIGNED = "its count"
    DELETED = "one if it is deleted"
    INSERTED = "one if it is inserted"


class Test(StrEnum):
    """What is asked of the sum for a key."""

    NONE = "it is not there"
    SOME = "it is there"
    SEVERAL = "it is there more than once"
    MISSING = "it is deleted more often than it is there"


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows in files, those of the interval if there is one."""

    folder: DeltaFolder
    files: tuple[DataFile, ...]
    count: Count
    between: Interval | None = None


Key = tuple[Any, ...]
Keys = TypeVar("Keys")


class Probe(Protocol[Keys]):
    def touched(self, rows: Rows, columns: Sequence[str], *, with_null: bool = False) -> Keys:
        """The different keys of the rows that count; a key with a NULL in it is left out unless asked for."""

    def having(self, keys: Keys, held: Iterable[Rows], columns: Sequence[str], test: Test) -> Keys:
        """Those of the keys for which the sum over ``held`` passes the test."""

    def first(self, keys: Keys) -> Key | None: ...


Question = Callable[[Probe[Any]], Key | None]


def own_rows(folder: DeltaFolder, files: Sequence[DataFile], count: Count) -> Rows:
    return Rows(folder, tuple(files), count)


def rows_at(root: Path, relation: Relation, at: Csn) -> tuple[Rows, ...]:
    """The table at a csn not before its state's."""
    stored = stored_as(root, relation)
    between = Interval(stored.snapshot_csn, at)
    return (
        Rows(stored.folder(Part.STATE), stored.files(Part.STATE), Count.ONE),
        Rows(stored.folder(Part.DELTA), delta_files(stored, between), Count.SIGNED, between),
    )


def changes_in(root: Path, relation: Relation, between: Interval, count: Count) -> Rows:
    stored = stored_as(root, relation)
    return Rows(stored.folder(Part.DELTA), delta_files(stored, between), count, between)
