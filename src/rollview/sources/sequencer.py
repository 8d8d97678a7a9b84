"""Units of work become csns.

Law: per source strictly in its commit order, each once. The rows of a batch are written first and count for nothing;
one catalog transaction then gives every unit of work its csn, pins the deltas, and moves the source's position from
where it was to where it was read. Only after that the source is told. So a process may die anywhere: what was not
published is read again, and what was published but not told is recognised by its position and left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rollview.catalog import Catalog, Lease, Part, Pin, Relation
from rollview.catalog import Source as Record
from rollview.core.faults import reach
from rollview.core.interval import Csn, Interval
from rollview.errors import BadValue, Corrupt
from rollview.sources.held import delta_folder
from rollview.sources.protocol import Batch, Source, UnitOfWork
from rollview.sources.quarantine import note_quarantine, sift, tables_of
from rollview.sources.settings import SourceSettings
from rollview.sources.settled import Settled, settle
from rollview.store.datafile import DataFile
from rollview.store.folder import DeltaFolder
from rollview.store.steps import recorded

ROWS_AT_ONCE = 50_000


@dataclass(frozen=True, slots=True)
class Progress:
    """What one source gave: units of work with a csn, their signed rows, and where it stands; ``notes``: what a user
    should know of it."""

    units: int
    rows: int
    position: str
    csn: Csn
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Written:
    relation: Relation
    folder: DeltaFolder
    files: tuple[DataFile, ...]

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)


@dataclass(frozen=True, slots=True)
class _End:
    """Where the source stands when something is published, and what its kind remembers there if that is new."""

    position: str
    memory: Mapping[str, Any] | None = None


class Sequencer:
    """One source's way into the ledger. Whoever uses it holds the lease ``source:NAME``."""

    def __init__(self, catalog: Catalog, root: Path, source: Source, record: Record) -> None:
        assert record.position is not None
        self._catalog = catalog
        self._root = root
        self._source = source
        self._name = record.name
        self._relations = {table.remote: table.relation for table in record.tables}
        self._position = record.position
        self._quarantines = SourceSettings.from_json(record.settings).quarantines
        self._units = 0
        self._rows = 0

    def run(self, limit: int = ROWS_AT_ONCE) -> Progress:
        """Everything that the source has now."""
        while True:
            batch = self._source.read(self._position, limit)
            reach("capture.read")
            self._take(batch)
            self._source.acknowledge(self._position)
            reach("capture.acknowledged")
            if batch.complete:
                return self.progress()

    def replace(self, unit: UnitOfWork, memory: Mapping[str, Any]) -> Progress:
        """The source was copied again, and its log begins at that copy."""
        self._publish((unit,), _End(unit.position, memory))
        return self.progress()

    def progress(self) -> Progress:
        """What was published so far."""
        return Progress(self._units, self._rows, self._position, self._catalog.snapshot().moment.csn)

    def _take(self, batch: Batch) -> None:
        groups = list(_groups(self._fresh(batch.units)))
        for group in groups[:-1]:
            self._publish_each(group, _End(group[-1].position))
        # What the kind remembers belongs to the position, and moves with it.
        end = _End(batch.position, batch.memory)
        if groups:
            self._publish_each(groups[-1], end)
        elif batch.position != self._position or batch.memory is not None:
            self._advance(end)

    def _sifted(self, units: Sequence[UnitOfWork], relations: Mapping[str, Relation]) -> Sequence[UnitOfWork]:
        return [sift(unit, tables_of(relations)) for unit in units] if self._quarantines else units

    def _advance(self, end: _End, units: Sequence[UnitOfWork] = ()) -> None:
        with self._catalog.write() as writer:
            note_quarantine(writer, self._name, self._relations, units)
            writer.sources.advance(self._name, self._position, end.position, end.memory)
        self._position = end.position

    def _fresh(self, units: Iterable[UnitOfWork]) -> list[UnitOfWork]:
        """Those beyond the position; what came before it is in the ledger already."""
        fresh: list[UnitOfWork] = []
        last = self._source.order(self._position)
        for unit in units:
            place = self._source.order(unit.position)
            if fresh and place <= last:
                raise Corrupt(f"Source '{self._name}' gave position {unit.position} after {fresh[-1].position}.")
            if place > last:
                fresh.append(unit)
                last = place
        return fresh

    def _publish_each(self, units: Sequence[UnitOfWork], end: _End) -> None:
        """Together; one by one if a value does not fit, so that those before it are kept."""
        try:
            self._publish(units, end)
        except BadValue:
            if len(units) == 1:
                raise
            for unit in units[:-1]:
                self._publish((unit,), _End(unit.position))
            self._publish(units[-1:], end)

    def _publish(self, units: Sequence[UnitOfWork], end: _End) -> None:
        names = [f"relation:{self._relations[remote]}" for remote in self._relations]
        with self._catalog.lease("commit", *names) as lease:
            snapshot = self._catalog.snapshot()
            relations = {remote: snapshot.get(name) for remote, name in self._relations.items()}
            first = snapshot.moment.csn + 1
            units = self._sifted(units, relations)
            settled = settle(self._root, self._name, relations, units, first)
            if settled.units:
                self._write(lease, settled, Interval(first - 1, first - 1 + len(settled.units)), end, units)
            else:
                self._advance(end, units)
        self._units += len(settled.units)
        self._rows += settled.rows

    def _write(
        self, lease: Lease, settled: Settled, interval: Interval, end: _End, units: Sequence[UnitOfWork]
    ) -> None:
        places = {name: DeltaFolder.new_folder() for name in settled.tables}
        relations = {name: settled.relations[name] for name in settled.tables}
        paths = [f"{relations[name].folder}/{Part.DELTA}/{place}" for name, place in places.items()]
        with recorded(self._catalog, lease, self._root, self._name, "capture", interval, paths) as step:
            written = [self._stage(settled, name, place) for name, place in places.items()]
            reach("capture.staged")
            pins = _log(written, interval)
            with self._catalog.write(lease) as writer:
                for unit, expect in zip(settled.units, range(interval.after + 1, interval.through + 1), strict=True):
                    writer.commit_unit(**_described(self._name, unit.unit), changes=unit.counts, expect=expect)
                for one, pin in zip(written, pins, strict=True):
                    writer.pin(one.relation.name, pin)
                note_quarantine(writer, self._name, self._relations, units)
                writer.sources.advance(self._name, self._position, end.position, end.memory)
                writer.finish_step(step, "done", {"units": len(settled.units), "rows": settled.rows})
            self._position = end.position
            reach("capture.published")

    def _stage(self, settled: Settled, name: str, place: str) -> _Written:
        relation = settled.relations[name]
        folder = delta_folder(self._root, relation)
        files = folder.stage(settled.tables[name], place, sort=relation.constraints.primary_key)
        return _Written(relation, folder, files)


def _groups(units: Sequence[UnitOfWork]) -> Iterable[Sequence[UnitOfWork]]:
    """A unit that replaces a table is compared with all that came before, so it comes by itself."""
    group: list[UnitOfWork] = []
    for unit in units:
        if any(changes.replaces for changes in unit.changes.values()):
            if group:
                yield group
            yield [unit]
            group = []
        else:
            group.append(unit)
    if group:
        yield group


def _log(written: Sequence[_Written], interval: Interval) -> tuple[Pin, ...]:
    pins: list[Pin] = []
    for one in written:
        old = one.relation.pins[Part.DELTA]
        version = one.folder.commit(old.version, one.files, (), {"csn": str(interval.through)})
        if not pins:
            reach("capture.logged")
        pins.append(Pin(Part.DELTA, version, old.after, interval.through, old.rows + one.rows))
    reach("capture.all_logged")
    return tuple(pins)


def _described(source: str, unit: UnitOfWork) -> Mapping[str, Any]:
    return {
        "source": source,
        "position": unit.position,
        "transaction": unit.transaction,
        "source_time": unit.time,
    }
