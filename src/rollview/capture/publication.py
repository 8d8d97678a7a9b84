"""Units of work become csns.

Law: the rows are written first and count for nothing; one catalog transaction then gives every entry its csn, pins the
deltas, and moves each source's position from where it was to where it was read. So a process may die anywhere: what was
not published is read again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rollview.capture.arrange import Entry
from rollview.capture.commit_stream import CommitStream, End, Reached
from rollview.capture.quarantine import note_quarantine, sift
from rollview.capture.recorded_source import tables_of
from rollview.capture.settled import Remote, Settled, SettledEntry, comes_alone, settle
from rollview.catalog import Catalog, CatalogWriter, Lease, NewUnit, Part, Relation, UnitPart
from rollview.core.interval import Csn, Interval
from rollview.errors import BadValue, RollviewError, Unreadable
from rollview.publish.step import LoggedVersion, NewVersion, Publishing, recorded
from rollview.relations.folders import delta_folder, state_folder
from rollview.sources.boundary import as_error
from rollview.store.datafile import DataFile
from rollview.store.folder import DeltaFolder

Ends = Mapping[str, End]


@dataclass(frozen=True, slots=True)
class Published:
    """How far each source is captured now, and what kept it from being more."""

    reached: Mapping[str, Reached]
    error: Exception | None = None


class Publication:
    """Of the units of work of some sources. ``held``: the lease on those; whoever lost it publishes nothing."""

    def __init__(self, catalog: Catalog, root: Path, streams: Sequence[CommitStream], held: Lease) -> None:
        self._held = held
        self._catalog = catalog
        self._root = root
        self._streams = {stream.name: stream for stream in streams}

    def publish(self, entries: Sequence[Entry], ends: Ends, reached: Mapping[str, Reached]) -> Published:
        """All entries in their order, from where the sources are; ``ends``: where they stand after the last one."""
        done = _Publishing(self._catalog, self._root, self._streams, dict(reached), self._held)
        try:
            done.publish(entries, ends)
        except Exception as error:
            return Published(done.reached, error)
        return Published(done.reached)


@dataclass(frozen=True, slots=True)
class _Publishing:
    """One publication under way. ``reached`` is its own, and moves with every transaction."""

    _catalog: Catalog
    _root: Path
    _streams: Mapping[str, CommitStream]
    reached: dict[str, Reached]
    _held: Lease

    def publish(self, entries: Sequence[Entry], ends: Ends) -> None:
        groups = list(_groups(entries))
        for group in groups[:-1]:
            self._publish_each(group, self._ends(group))
        if groups:
            # What a kind remembers belongs to the end of what was read, and moves with it.
            self._publish_each(groups[-1], self._ends(groups[-1]) | self._still(ends))
        elif ends:
            self._advance(ends)

    def _ends(self, entries: Iterable[Entry]) -> dict[str, End]:
        ends: dict[str, End] = {}
        for entry in entries:
            for one in entry.arrived:
                before = self.reached[one.source].position
                ends[one.source] = End(before, one.unit.position, latest=entry.effective)
        return ends

    def _still(self, ends: Ends) -> dict[str, End]:
        """The same ends, from where the sources are by now."""
        return {name: replace(end, before=self.reached[name].position) for name, end in ends.items()}

    def _publish_each(self, entries: Sequence[Entry], ends: Ends) -> None:
        """Together; one by one if a value does not fit, so that those before it are kept."""
        try:
            self._publish(entries, ends)
        except (BadValue, Unreadable):
            if len(entries) == 1:
                raise
            for entry in entries[:-1]:
                self._publish((entry,), self._ends((entry,)))
            self._publish(entries[-1:], self._still(ends))

    def _publish(self, entries: Sequence[Entry], ends: Ends) -> None:
        touched = {one.source for entry in entries for one in entry.arrived}
        names = {
            (source, remote): name for source in touched for remote, name in self._streams[source].relations.items()
        }
        with self._catalog.lease("commit", *(f"relation:{name}" for name in names.values())) as lease:
            snapshot = self._catalog.snapshot()
            relations = {remote: snapshot.get(name) for remote, name in names.items()}
            after = snapshot.moment.csn
            entries = [self._sifted(entry, relations) for entry in entries]
            settled = _settled(self._root, relations, entries, after + 1)
            if settled.entries:
                self._write(lease, settled, Interval(after, after + len(settled.entries)), ends, entries)
            else:
                self._advance(ends, entries)
        self._count(settled)
        _close_spools(entries)

    def _count(self, settled: Settled) -> None:
        for one in settled.entries:
            for source in {arrived.source for arrived in one.entry.arrived}:
                self.reached[source] = self.reached[source].published(1, 0)
        for (source, _), rows in (*settled.tables.items(), *settled.states.items()):
            self.reached[source] = self.reached[source].published(0, rows.num_rows)

    def _sifted(self, entry: Entry, relations: Mapping[Remote, Relation]) -> Entry:
        """Without the rows that have no representation, where a source puts those aside."""
        arrived = []
        for one in entry.arrived:
            if self._streams[one.source].quarantines:
                own = {remote: relation for (source, remote), relation in relations.items() if source == one.source}
                one = replace(one, unit=sift(one.unit, tables_of(own)))
            arrived.append(one)
        return replace(entry, arrived=tuple(arrived))

    def _quarantine(self, writer: CatalogWriter, entries: Sequence[Entry]) -> None:
        for entry in entries:
            for one in entry.arrived:
                note_quarantine(writer, one.source, self._streams[one.source].relations, [one.unit])

    def _advance(self, ends: Ends, entries: Sequence[Entry] = ()) -> None:
        with self._catalog.write(self._held) as writer:
            self._quarantine(writer, entries)
            _move(writer, ends)
        self._moved(ends)

    def _moved(self, ends: Ends) -> None:
        for name, end in ends.items():
            self.reached[name] = self.reached[name].moved(end)

    def _write(self, lease: Lease, settled: Settled, interval: Interval, ends: Ends, entries: Sequence[Entry]) -> None:
        parts = dict.fromkeys(settled.tables, Part.DELTA) | dict.fromkeys(settled.states, Part.STATE)
        places = {remote: DeltaFolder.new_folder() for remote in parts}
        paths = [f"{settled.relations[remote].folder}/{parts[remote]}/{place}" for remote, place in places.items()]
        about = ", ".join(sorted({source for source, _ in parts}))
        with recorded(self._catalog, lease, self._root, about, "capture", interval, paths) as step:
            new = [self._stage(settled, remote, place) for remote, place in places.items()]
            step.computed()
            logged = step.log(new, {"csn": str(interval.through)})
            with step.publish(
                lease, held=self._held, profile={"units": len(settled.entries), "rows": settled.rows}
            ) as publishing:
                publishing.writer.commit_units([_described(one) for one in settled.entries], interval.after + 1)
                for one, version in zip(new, logged, strict=True):
                    _show(publishing, one, version, interval.through)
                self._quarantine(publishing.writer, entries)
                _move(publishing.writer, ends)
            self._moved(ends)

    def _stage(self, settled: Settled, remote: Remote, place: str) -> NewVersion:
        relation = settled.relations[remote]
        files: tuple[DataFile, ...] = ()
        if remote in settled.states:
            folder = state_folder(self._root, relation)
            for rows in (rows for rows in settled.states[remote].each() if rows.num_rows):
                # All that is in the place so far.
                files = folder.stage(rows.select(relation.schema.names), place, sort=relation.constraints.primary_key)
            return NewVersion(relation.name, Part.STATE, folder, None, files)
        folder = delta_folder(self._root, relation)
        for rows in settled.tables[remote].each():
            # All that is in the place so far.
            files = folder.stage(rows, place, sort=relation.constraints.primary_key)
        return NewVersion(relation.name, Part.DELTA, folder, relation.pins[Part.DELTA], files)


def _settled(root: Path, relations: Mapping[Remote, Relation], entries: Sequence[Entry], csn: Csn) -> Settled:
    """What a source's rows make fail stops that source; among several entries it is found one by one."""
    try:
        return settle(root, relations, entries, csn)
    except (RollviewError, OSError):
        raise
    except Exception as error:
        first = entries[0].arrived[0]
        raise as_error(first.source, error, first.unit.position) from error


def _close_spools(entries: Sequence[Entry]) -> None:
    for changes in (c for entry in entries for one in entry.arrived for c in one.unit.changes.values()):
        for spool in changes.spools:
            spool.close()


def _move(writer: CatalogWriter, ends: Ends) -> None:
    for name, end in ends.items():
        writer.sources.advance(name, end.before, end.position, end.memory, known=end.known, latest=end.latest)


def _groups(entries: Sequence[Entry]) -> Iterable[Sequence[Entry]]:
    """An entry that is compared with all that came before, or that is very large, comes by itself."""
    group: list[Entry] = []
    for entry in entries:
        if comes_alone(entry):
            if group:
                yield group
            yield [entry]
            group = []
        else:
            group.append(entry)
    if group:
        yield group


def _show(publishing: Publishing, new: NewVersion, logged: LoggedVersion, csn: Csn) -> None:
    """A state that replaces all that was there is of one csn; a delta goes on from where it was."""
    publishing.show(logged, csn if new.base is None else new.base.after, csn)
    if new.part is Part.STATE:
        publishing.writer.add_replaced(new.relation, csn)


def _described(settled: SettledEntry) -> NewUnit:
    entry = settled.entry
    parts = tuple(UnitPart(a.source, a.unit.position, a.unit.transaction, a.unit.time) for a in entry.arrived)
    return NewUnit(parts, settled.counts, entry.effective, entry.global_id)
