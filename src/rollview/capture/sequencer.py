"""Units of work of all sources become one ledger order.

Law: per source strictly in commit order. Across sources by arrival, or by commit time: then a unit of work waits until
every other source is known to have passed its time, or has kept the others waiting for longer than it may. Nothing is
taken from a source that cannot be published yet: it is left there and read again. Only after it is published the source
is told, so what was published but not told is recognised by its position and left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from rollview.capture.arrange import Arranged, Entry, arrange
from rollview.capture.commit_stream import TICK, CommitStream, End, Reading
from rollview.capture.publication import Publication
from rollview.catalog import Catalog, Lease
from rollview.core.faults import reach
from rollview.core.interval import Csn
from rollview.core.order import Order
from rollview.errors import RollviewError, SourceStopped
from rollview.publish.following import Following
from rollview.sources.boundary import as_error
from rollview.sources.protocol import LayoutChange, UnitOfWork

FIRST_ROWS = 20_000
"""What is published first, so that a process that never lives long gets on, and views have something to begin with."""
ROWS_AT_ONCE = 250_000
_MORE = 4
_MOST_ROWS = 10_000_000


@dataclass(frozen=True, slots=True)
class CaptureProgress:
    """What one source gave: units of work with a csn, their signed rows, and where it stands; ``notes``: what a user
    should know of it."""

    units: int
    rows: int
    position: str
    csn: Csn
    notes: tuple[str, ...] = ()


class Sequencer:
    def __init__(
        self,
        catalog: Catalog,
        root: Path,
        streams: Sequence[CommitStream],
        lease: Lease,
        order: Order | None = None,
        following: Following | None = None,
    ) -> None:
        """``lease``: on the sources. ``following``: who brings views along."""
        self._catalog = catalog
        self._lease = lease
        self._streams = {stream.name: stream for stream in streams}
        self.reached = {stream.name: stream.start for stream in streams}
        self._publication = Publication(catalog, root, streams, lease, following)
        self._order = order or Order()
        self.stopped: dict[str, RollviewError | LayoutChange] = {}
        self._absent = [
            source.known for source in catalog.sources() if source.name not in self._streams and source.position
        ]

    def run(self, limit: int = FIRST_ROWS) -> Mapping[str, CaptureProgress]:
        """Everything that the sources have now, published in larger and larger pieces. One in ``stopped`` failed or has
        another layout, and stops no other."""
        while True:
            before = self._positions()
            readings = self._read(limit)
            reach("capture.read")
            arranged = self._arrange(readings)
            is_whole = self._publish(readings, arranged)
            self._hold(arranged)
            self._acknowledge(readings)
            reach("capture.acknowledged")
            if is_whole and all(reading.complete for reading in readings.values()):
                return self._progress()
            if is_whole and self._positions() == before:
                if limit >= _MOST_ROWS or not _hides_more(readings, arranged):
                    return self._progress()
                limit *= 2
            else:
                limit = max(limit, min(ROWS_AT_ONCE, _MORE * limit))

    def replace(self, unit: UnitOfWork, memory: Mapping[str, object]) -> CaptureProgress:
        """The one source was copied again, and its log begins at that copy."""
        (stream,) = self._streams.values()
        reached = self.reached[stream.name]
        arrived = stream.arrive(reached, unit)
        end = End(reached.position, unit.position, memory, arrived.effective, arrived.effective)
        published = self._publication.publish((Entry((arrived,), arrived.effective),), {stream.name: end}, self.reached)
        self.reached = dict(published.reached)
        if published.error is not None:
            raise published.error
        with self._catalog.write(self._lease) as writer:
            writer.sources.unhold(stream.name)
        return self._progress()[stream.name]

    def _read(self, limit: int) -> dict[str, Reading]:
        readings: dict[str, Reading] = {}
        for name, stream in self._streams.items():
            if name in self.stopped:
                continue
            try:
                found = stream.read(self.reached[name], limit)
            except Exception as error:
                self.stopped[name] = as_error(name, error, self.reached[name].position)
            else:
                if isinstance(found, LayoutChange):
                    self.stopped[name] = found
                else:
                    readings[name] = found
        return readings

    def _arrange(self, readings: Mapping[str, Reading]) -> Arranged:
        queues = {name: reading.arrived for name, reading in readings.items()}
        through = self._passed_by_all(readings) if self._order.by_time else None
        arranged = arrange(queues, self._catalog.released(), through, self._order.by_time)
        return replace(arranged, entries=tuple(self._in_time(arranged.entries)))

    def _in_time(self, entries: Sequence[Entry]) -> list[Entry]:
        """When entries count as committed never goes back at any source; by commit time, not at all."""
        floors = {name: reached.latest for name, reached in self.reached.items()}
        if self._order.by_time:
            newest = max((s.latest for s in self._catalog.sources() if s.latest is not None), default=None)
            floors = dict.fromkeys(floors, newest)
        timed = []
        for entry in entries:
            names = floors if self._order.by_time else {one.source for one in entry.arrived}
            effective = max([entry.effective, *(f for name in names if (f := floors[name]) is not None)])
            floors |= dict.fromkeys(names, effective)
            timed.append(replace(entry, effective=effective))
        return timed

    def _passed_by_all(self, readings: Mapping[str, Reading]) -> datetime | None:
        """What every source has passed; one that is far behind is not waited for."""
        passed = [reading.passed for reading in readings.values()]
        passed += [reached.known for name, reached in self.reached.items() if name in self.stopped] + self._absent
        newest = max((one for one in passed if one is not None), default=None)
        if newest is None:
            return None
        return min(
            newest - self._order.delay if one is None else max(one, newest - self._order.delay) for one in passed
        )

    def _positions(self) -> dict[str, str]:
        return {name: reached.position for name, reached in self.reached.items() if name not in self.stopped}

    def _publish(self, readings: Mapping[str, Reading], arranged: Arranged) -> bool:
        """Whether all went well: a value that does not fit stops its source, and the others are read again."""
        latest = {one.source: entry.effective for entry in arranged.entries for one in entry.arrived}
        ends = {
            name: end
            for name, reading in readings.items()
            if (end := self._end(name, reading, arranged.taken[name], latest.get(name))) is not None
        }
        published = self._publication.publish(arranged.entries, ends, self.reached)
        self.reached = dict(published.reached)
        if isinstance(published.error, SourceStopped):
            self.stopped[str(published.error.facts["source"])] = published.error
        elif published.error is not None:
            raise published.error
        return published.error is None

    def _end(self, name: str, reading: Reading, taken: int, latest: datetime | None) -> End | None:
        before = self.reached[name].position
        if taken == len(reading.arrived):
            known = (
                None if reading.known is None or not reading.complete else max(reading.known, latest or reading.known)
            )
            return End(before, reading.position, reading.memory, known, latest)
        known = reading.arrived[taken].effective - TICK
        position = reading.arrived[taken - 1].unit.position if taken else before
        return End(before, position, None, known, latest)

    def _hold(self, arranged: Arranged) -> None:
        """What keeps each source waiting is in the catalog, for whoever has to decide."""
        held = {part.source: (part.global_id, part.missing) for part in self._catalog.held()}
        now = {name: (blocked.global_id, blocked.missing) for name, blocked in arranged.blocked.items()}
        if {name: held[name] for name in self._streams if name in held} == now:
            return
        with self._catalog.write(self._lease) as writer:
            for name in self._streams:
                blocked = arranged.blocked.get(name)
                if blocked is None:
                    writer.sources.unhold(name)
                elif held.get(name) != now[name]:
                    writer.sources.hold(name, blocked.global_id, blocked.arrived.unit.position, blocked.missing)

    def _acknowledge(self, readings: Mapping[str, Reading]) -> None:
        for name in readings:
            if name in self.stopped:
                continue
            try:
                self._streams[name].source.acknowledge(self.reached[name].position)
            except Exception as error:
                self.stopped[name] = as_error(name, error, self.reached[name].position)

    def _progress(self) -> Mapping[str, CaptureProgress]:
        csn = self._catalog.snapshot().moment.csn
        return {
            name: CaptureProgress(reached.units, reached.rows, reached.position, csn)
            for name, reached in self.reached.items()
            if name not in self.stopped
        }


def _hides_more(readings: Mapping[str, Reading], arranged: Arranged) -> bool:
    """Whether what a source waits for may lie beyond what was read of another."""
    wanted = {name for blocked in arranged.blocked.values() for name in blocked.missing}
    counted = any(name.isdecimal() for name in wanted)
    return any(not r.complete and (not r.arrived or counted or name in wanted) for name, r in readings.items())
