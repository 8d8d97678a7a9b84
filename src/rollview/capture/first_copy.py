"""A source's tables, copied at one position.

Law: the copy is the state of all chosen tables at that position, and it becomes visible with the position in one
catalog transaction. Until then the source is ``copying``, and whoever comes next begins the copy again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

import pyarrow as pa

from rollview.capture.in_place import COPIED, READINGS, reading_of
from rollview.capture.restrict import restriction
from rollview.catalog import (
    NOT_KEPT,
    Catalog,
    CatalogWriter,
    Change,
    Lease,
    Moment,
    NewUnit,
    Part,
    Pin,
    Relation,
    RelationKind,
    SourceRecord,
    UnitPart,
)
from rollview.core.faults import reach
from rollview.core.interval import Csn, Interval
from rollview.core.lent import UnlinkableError
from rollview.core.names import fault_in_name, same
from rollview.core.schema import Schema
from rollview.core.states import SourceState
from rollview.errors import AlreadyExists, BadValue, InvalidName, UsageError
from rollview.evolve.run import begin_layout
from rollview.publish.step import NewVersion, RunningStep, recorded
from rollview.relations.folders import delta_folder, state_folder
from rollview.results import Progress
from rollview.sources.protocol import FirstCopy, Lender, Source, SourceTable
from rollview.sources.quarantine import sift_rows
from rollview.sources.settings import SourceSettings
from rollview.sources.values import UnfitError, as_table
from rollview.store.datafile import DataFile
from rollview.store.folder import DeltaFolder
from rollview.types.arrow import arrow_type

TRANSACTION = "first copy"


@dataclass(frozen=True, slots=True)
class _Copied:
    table: SourceTable
    relation: Relation
    files: tuple[DataFile, ...]
    reason: str | None = None
    """Why it was copied, where the source could lend its files."""
    asked: bool = False
    """Its rows stay at the source."""

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    @property
    def read(self) -> tuple[tuple[DataFile, ...], str | None]:
        return self.files, self.reason


OnProgress = Callable[[Progress], None]


def run_first_copy(
    catalog: Catalog,
    root: Path,
    source: Source,
    record: SourceRecord,
    lease: Lease,
    on_progress: OnProgress | None = None,
) -> Mapping[str, int]:
    """Rows by relation. ``lease``: on the source."""
    settings = SourceSettings.from_json(record.settings)
    at = catalog.snapshot().moment.csn
    with source.first_copy() as copy:
        reach("copy.opened")
        # Only the copy itself knows what its rows look like: the tables may have changed a moment ago.
        tables = check_tables(catalog, settings, copy.tables)
        homes = {table.name: f"t-{uuid4().hex}" for table in tables}
        folders = tuple(homes.values())
        with recorded(catalog, None, root, record.name, "copy", Interval(at, at), folders) as step:
            planned = [_planned(settings, table, homes[table.name], at) for table in tables]
            staging = _Staging(root, record.name, settings, copy, len(tables), on_progress, source)
            copied = staging.run(list(zip(tables, planned, strict=True)))
            step.computed()
            if isinstance(source, Lender):
                reasons = {one.table.name: one.reason for one in copied if one.reason is not None}
                copy = replace(copy, memory={**copy.memory, COPIED: reasons})
            _publish(catalog, root, record, copy, copied, step, lease)
    return {one.relation.name: one.rows for one in copied}


def check_tables(catalog: Catalog, settings: SourceSettings, tables: Sequence[SourceTable]) -> Sequence[SourceTable]:
    """Refuse names that are taken, columns that rollview cannot keep, and conditions that have no one meaning."""
    snapshot = catalog.snapshot()
    for table in tables:
        relation = settings.table(table.name).relation
        present = snapshot.find(relation)
        if present is not None:
            raise AlreadyExists(str(present.kind), relation, hint=f"Give it another name: NAME={table.name}")
        check_columns(relation, table.schema)
        restriction(settings.table(table.name), table.schema)
    return tables


def check_columns(relation: str, schema: Schema) -> None:
    fault = fault_in_name(relation)
    if fault is not None:
        raise InvalidName("table", relation, fault)
    for place, column in enumerate(schema):
        fault = fault_in_name(column.name)
        if fault is not None:
            raise InvalidName("column", column.name, fault)
        if any(same(column.name, other.name) for other in schema.columns[:place]):
            raise UsageError(
                f"Table '{relation}' has two columns named '{column.name}', which Spark cannot tell apart."
            )
        arrow_type(column.type, column.name)


def _planned(settings: SourceSettings, table: SourceTable, home: str, at: Csn) -> Relation:
    name = settings.table(table.name).relation
    kind = RelationKind.TABLE
    return Relation(0, name, kind, table.schema, table.constraints, None, (), home, at, {}, (), None)


def pieces(source: str, settings: SourceSettings, table: SourceTable, copy: FirstCopy) -> Iterator[pa.Table]:
    relation, keep = settings.table(table.name).relation, restriction(settings.table(table.name), table.schema)
    for rows in copy.rows(table.name):
        rows = rows if keep is None else keep.rows(rows)
        if settings.quarantines:
            rows = sift_rows(table, rows, +1, copy.quarantined)
        try:
            piece = as_table(rows, table.schema)
        except UnfitError as error:
            raise BadValue(source, relation, error.column, error.reason, copy.position) from None
        if piece.num_rows:
            yield piece


@dataclass(slots=True)
class _Staging:
    """The tables' rows into files that nothing refers to yet, as many tables at once as the source allows."""

    root: Path
    source: str
    settings: SourceSettings
    copy: FirstCopy
    total: int
    on_progress: OnProgress | None
    of: Source
    _done: int = 0

    def run(self, planned: Sequence[tuple[SourceTable, Relation]]) -> list[_Copied]:
        if self.copy.at_once == 1:
            return [self._stage(table, relation) for table, relation in planned]
        with ThreadPoolExecutor(self.copy.at_once, "rollview-copy") as pool:
            return list(pool.map(lambda pair: self._stage(*pair), planned))

    def _stage(self, table: SourceTable, relation: Relation) -> _Copied:
        if self.settings.table(table.name).asked:
            return _Copied(table, relation, (), asked=True)
        try:
            return self._link(table, relation)
        except UnlinkableError as error:
            return self._copy(table, relation, str(error) or None)

    def _link(self, table: SourceTable, relation: Relation) -> _Copied:
        """Nothing is copied where the source's own files can be read."""
        if not isinstance(self.of, Lender):
            raise UnlinkableError
        lent = self.of.lent(table.name, self.copy.position)
        files = state_folder(self.root, relation).link(lent, DeltaFolder.new_folder())
        self._done += 1
        return _Copied(table, relation, files)

    def _copy(self, table: SourceTable, relation: Relation, reason: str | None) -> _Copied:
        folder = state_folder(self.root, relation)
        files: list[DataFile] = []
        self._tell(relation, 0)
        for piece in pieces(self.source, self.settings, table, self.copy):
            files += folder.stage(piece, DeltaFolder.new_folder(), sort=table.constraints.primary_key)
            self._tell(relation, sum(file.rows for file in files))
        self._done += 1
        return _Copied(table, relation, tuple(files), reason)

    def _tell(self, relation: Relation, rows: int) -> None:
        if self.on_progress is not None:
            self.on_progress(Progress("copied, now at", f"{relation.name}, row {rows}", self._done, self.total))


def _publish(
    catalog: Catalog,
    root: Path,
    record: SourceRecord,
    copy: FirstCopy,
    copied: Sequence[_Copied],
    step: RunningStep,
    held: Lease,
) -> None:
    names = [f"relation:{one.relation.name}" for one in copied]
    with catalog.lease("definitions", "commit", *names) as lease:
        logged = step.log([new for one in copied for new in _first_versions(root, one)], {"table": "copied"})
        with step.publish(lease, held=(held,), profile={"rows": sum(one.rows for one in copied)}) as publishing:
            writer = publishing.writer
            for one in copied:
                about = (one.relation.schema, one.relation.constraints)
                writer.add_relation(one.relation.name, RelationKind.TABLE, *about, None, (), one.relation.folder)
                writer.sources.attach(record.name, one.relation.name, one.table.name)
                begin_layout(writer, one.relation.name, copy.position, _reason(record, one.table))
            moment = _first_unit(writer, record.name, copy, copied)
            for new in logged:
                publishing.show(new, moment.csn, moment.csn)
            for one in (one for one in copied if one.asked):
                # No rows are here, which is not the same as none at the source.
                publishing.show_pin(one.relation.name, Pin(Part.STATE, NOT_KEPT, moment.csn, moment.csn, 0))
            relations = {one.table.name: one.relation.name for one in copied}
            for bad in copy.quarantined:
                writer.sources.quarantine(record.name, relations[bad.table], copy.position, bad)
            times = {"known": copy.time, "latest": copy.time}
            writer.sources.advance(record.name, None, copy.position, copy.memory, **times)
            writer.sources.set_state(record.name, SourceState.ACTIVE)
            if COPIED in copy.memory:
                readings = {
                    one.relation.name: reading_of(state_folder(root, one.relation), *one.read) for one in copied
                }
                writer.sources.set_health(record.name, {READINGS: readings})


def _reason(record: SourceRecord, table: SourceTable) -> str:
    rows = SourceSettings.from_json(record.settings).table(table.name).rows
    return f"{TRANSACTION}; rows: {rows}" if rows else TRANSACTION


def _first_versions(root: Path, one: _Copied) -> tuple[NewVersion, NewVersion]:
    relation = one.relation
    return (
        NewVersion(relation.name, Part.STATE, state_folder(root, relation), None, one.files),
        NewVersion(relation.name, Part.DELTA, delta_folder(root, relation), None),
    )


def _first_unit(writer: CatalogWriter, source: str, copy: FirstCopy, copied: Sequence[_Copied]) -> Moment:
    changes = [
        Change(one.relation.name, one.rows, 0, 0 if one.relation.constraints.primary_key else None) for one in copied
    ]
    part = UnitPart(source, copy.position, TRANSACTION, copy.time)
    return writer.commit_units([NewUnit((part,), tuple(changes), copy.time)])
