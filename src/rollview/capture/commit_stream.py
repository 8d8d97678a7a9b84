"""One source's commits, one after another.

Law: units of work come strictly in the source's commit order, each once: what is at or before the position is in the
ledger already and is dropped. When a unit counts as committed never goes back, and is never a time that the source was
known to have passed before, so the answer to "what was in at that moment" never changes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from rollview.capture.restrict import restricted, restrictions
from rollview.catalog import Snapshot, SourceRecord
from rollview.errors import Corrupt
from rollview.sources.protocol import LayoutChange, Source, UnitOfWork
from rollview.sources.settings import GlobalSettings, SourceSettings
from rollview.sources.values import as_rows

TICK = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class GlobalMembership:
    """A global transaction that a unit of work is part of, and who takes part: names of sources, or how many parts."""

    global_id: str
    names: frozenset[str]
    count: int


@dataclass(frozen=True, slots=True)
class Arrived:
    """A unit of work with its place in time."""

    source: str
    unit: UnitOfWork
    effective: datetime
    members: tuple[GlobalMembership, ...] = ()


@dataclass(frozen=True, slots=True)
class End:
    """Where a source stands when something is published, and what is new to say of it there."""

    before: str
    position: str
    memory: Mapping[str, Any] | None = None
    known: datetime | None = None
    latest: datetime | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """``passed``: nothing that counts as committed by then can still come from the source."""

    arrived: tuple[Arrived, ...]
    position: str
    complete: bool
    memory: Mapping[str, Any] | None
    known: datetime | None
    passed: datetime | None


@dataclass(frozen=True, slots=True)
class Reached:
    """How far a source is captured, and how many units of work and signed rows of it were published on the way."""

    position: str
    known: datetime | None
    latest: datetime | None
    units: int = 0
    rows: int = 0

    def moved(self, end: End) -> Reached:
        return replace(self, position=end.position, known=end.known or self.known, latest=end.latest or self.latest)

    def published(self, units: int, rows: int) -> Reached:
        return replace(self, units=self.units + units, rows=self.rows + rows)


class CommitStream:
    """One source's commits, from wherever it is asked to begin. Whoever uses it holds the lease ``source:NAME``."""

    def __init__(self, source: Source, record: SourceRecord, snapshot: Snapshot, waiting: Collection[str] = ()) -> None:
        """``waiting``: tables of which nothing is taken, by the source's own names."""
        assert record.position is not None
        self.name = record.name
        self.source = source
        self.start = Reached(record.position, record.known, record.latest)
        self.relations = {table.remote: table.relation for table in record.tables}
        settings = SourceSettings.from_json(record.settings)
        self.settings = settings.global_transactions
        self.quarantines = settings.quarantines
        schemas = {table.remote: snapshot.get(table.relation).schema for table in record.tables}
        self._columns = {remote: schema.names for remote, schema in schemas.items()}
        self._waiting = waiting
        told = {remote: schema for remote, schema in schemas.items() if remote not in self._waiting}
        self._restrictions = restrictions(settings, told)

    def read(self, reached: Reached, limit: int) -> Reading | LayoutChange:
        """What comes after what was reached; or that a table is not what it was, if nothing comes before that."""
        batch = self.source.read(reached.position, limit)
        if isinstance(batch, LayoutChange):
            return batch
        arrived = tuple(self._timed(reached, self._fresh(reached, batch.units)))
        last = arrived[-1].effective if arrived else reached.known
        passed = _later(batch.known, last) if batch.complete else last
        return Reading(arrived, batch.position, batch.complete, batch.memory, batch.known, passed)

    def arrive(self, reached: Reached, unit: UnitOfWork) -> Arrived:
        (arrived,) = self._timed(reached, [unit])
        return replace(arrived, members=())

    def _fresh(self, reached: Reached, units: Iterable[UnitOfWork]) -> Iterator[UnitOfWork]:
        last, newest = self.source.order(reached.position), None
        for unit in units:
            place = self.source.order(unit.position)
            if newest is not None and place <= last:
                raise Corrupt(f"Source '{self.name}' gave position {unit.position} after {newest}.")
            if place > last:
                last, newest = place, unit.position
                yield unit

    def _timed(self, reached: Reached, units: Iterable[UnitOfWork]) -> Iterator[Arrived]:
        floor = reached.latest
        if reached.known is not None:
            floor = _later(floor, reached.known + TICK)
        for unit in units:
            floor = _later(floor, unit.time) or unit.time
            told = restricted(_without(unit, self._waiting), self._restrictions)
            yield Arrived(self.name, told, floor, self._members(unit))

    def _members(self, unit: UnitOfWork) -> tuple[GlobalMembership, ...]:
        if self.settings is None:
            return ()
        found = (
            [] if unit.global_id is None else [GlobalMembership(unit.global_id, frozenset(self.settings.sources), 0)]
        )
        return (*found, *self._marked(unit, self.settings))

    def _marked(self, unit: UnitOfWork, settings: GlobalSettings) -> Iterator[GlobalMembership]:
        """What the rows say that the application put into its marker table."""
        changes = unit.changes.get(settings.table or "")
        if changes is None or settings.id is None:
            return
        names = self._columns[settings.table or ""]
        for row in as_rows(changes.after):
            values = dict(zip(names, row, strict=True))
            parts = values.get(settings.parts or "")
            by_name = isinstance(parts, str) and not parts.isdecimal()
            told = frozenset(part.strip() for part in str(parts).split(",")) if by_name else frozenset(settings.sources)
            count = 0 if by_name or parts is None else int(parts)
            yield GlobalMembership(str(values[settings.id]), frozenset() if count else told, count)


def _without(unit: UnitOfWork, remotes: Collection[str]) -> UnitOfWork:
    """Less what it did to tables that wait: a copy tells that later."""
    if not remotes:
        return unit
    for spool in (spool for remote in remotes if remote in unit.changes for spool in unit.changes[remote].spools):
        spool.close()
    changes = {remote: change for remote, change in unit.changes.items() if remote not in remotes}
    return replace(unit, changes=changes, quarantined=tuple(b for b in unit.quarantined if b.table not in remotes))


def _later(one: datetime | None, other: datetime | None) -> datetime | None:
    return other if one is None else one if other is None else max(one, other)
