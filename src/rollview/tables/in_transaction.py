"""A table with a transaction's own changes on top.

Law: the transaction's files are simply more of the table's delta, at the csn after the snapshot's.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from rollview.catalog import Part, Relation
from rollview.store.datafile import DataFile
from rollview.store.timed import Stored


@dataclass(frozen=True, slots=True)
class TableInTransaction(Stored):
    changes: tuple[DataFile, ...] = ()

    @classmethod
    def on(cls, root: Path, relation: Relation, changes: tuple[DataFile, ...] = ()) -> Self:
        pins = {part.value: pin for part, pin in relation.pins.items()}
        about = (relation.name, relation.schema, root / relation.folder, pins)
        return cls(*about, source=relation.source, replaced=relation.replaced, changes=changes)

    def files(self, part: str) -> tuple[DataFile, ...]:
        committed = Stored.files(self, part)
        return committed + self.changes if part == Part.DELTA else committed
