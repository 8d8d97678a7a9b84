"""A catalog's moment made by hand, over real delta folders: what plans are made of, without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.property.duck import Duck

from rollview.algebra.definition import Declared
from rollview.algebra.resolve import Known
from rollview.algebra.view import outline
from rollview.catalog import ChangeCount, Definition, Moment, Part, Pin, Relation, RelationKind, Snapshot
from rollview.core.interval import Csn, Interval
from rollview.core.schema import Column, Constraints, Schema
from rollview.relations.plans import plan_of
from rollview.relations.reader import stored_as
from rollview.store.folder import DeltaFolder
from rollview.types.arrow import arrow_type

KX = Schema((Column("k", "bigint"), Column("x", "bigint")))
SUMMED = "SELECT k, SUM(x) AS s FROM t GROUP BY k"


def facts_of(query: str) -> dict[str, Any]:
    """What would be found out of a view over ``t`` when it is created."""
    known = Known("t", KX)
    probes = outline(Declared("v", (), None, {}, query, False), {"t": known}).probes
    assert probes is not None
    return Duck((known,)).facts(probes)


FACTS = facts_of(SUMMED)

Change = tuple[Any, ...]
"""A row, its count and its csn."""


@dataclass
class World:
    root: Path
    csn: Csn
    relations: dict[str, Relation] = field(default_factory=dict)
    counts: list[ChangeCount] = field(default_factory=list)

    @property
    def snapshot(self) -> Snapshot:
        return Snapshot(Moment(self.csn, datetime.now(UTC)), dict(self.relations))

    def table(self, name: str, *changes: Change, constraints: Constraints | None = None, schema: Schema = KX) -> None:
        pins = {Part.STATE: Pin(Part.STATE, 0, 0, 0, 0)}
        self._add(name, RelationKind.TABLE, schema, constraints or Constraints(), None, (), pins)
        self.write_delta(name, changes, self.csn)

    def view(
        self,
        name: str,
        query: str,
        *changes: Change,
        reads: tuple[str, ...] = ("t",),
        facts: Mapping[str, Any] | None = None,
        extent: Csn = 0,
        mark: Csn = 0,
        schema: Schema = KX,
    ) -> None:
        pins = {Part.EXTENT: Pin(Part.EXTENT, 0, extent, extent, 0)}
        if facts:
            pins[Part.GROUPS] = Pin(Part.GROUPS, 0, 0, 0, 0)
        definition = Definition(query, (), None, {}, facts or {})
        self._add(name, RelationKind.VIEW, schema, Constraints(), definition, reads, pins)
        hidden = plan_of(self.snapshot, self.relations[name]).hidden
        self.write_delta(name, changes, mark, hidden)

    def pin(self, name: str, part: Part, **facts: int) -> None:
        """Say something else of a part: plans look at nothing but what the catalog says."""
        relation = self.relations[name]
        self.relations[name] = replace(relation, pins={**relation.pins, part: replace(relation.pins[part], **facts)})

    def changes_of(self, name: str, interval: Interval) -> tuple[ChangeCount, ...]:
        inside = (count for count in self.counts if interval.after < count.csn <= interval.through)
        return tuple(count for count in inside if count.relation == name)

    def _add(self, name: str, kind: RelationKind, schema: Schema, *rest: Any) -> None:
        constraints, definition, reads, pins = rest
        number = len(self.relations)
        folder = f"{kind[0]}-{number:032x}"
        self.relations[name] = Relation(
            number, name, kind, schema, constraints, definition, reads, folder, 0, pins, (), None
        )

    def write_delta(self, name: str, changes: Iterable[Change], mark: Csn, hidden: Schema | None = None) -> None:
        """A file for each csn, as commits and refreshes make them. ``hidden``: a summary's columns."""
        relation = self.relations[name]
        folder = stored_as(self.root, relation, hidden).folder("delta")
        by_csn: dict[Csn, list[Change]] = {}
        for change in changes:
            by_csn.setdefault(change[-1], []).append(change)
        files = [file for rows in by_csn.values() for file in folder.stage(_table(folder, rows), folder.new_folder())]
        version = folder.commit(None, files, (), {})
        rows = sum(file.rows for file in files)
        self.relations[name] = replace(
            relation, pins={**relation.pins, Part.DELTA: Pin(Part.DELTA, version, 0, mark, rows)}
        )


def _table(folder: DeltaFolder, rows: list[Change]) -> pa.Table:
    columns = [
        pa.array(values, arrow_type(column.type, column.name))
        for values, column in zip(zip(*rows, strict=True), folder.schema, strict=True)
    ]
    return pa.table(columns, list(folder.schema.names))
