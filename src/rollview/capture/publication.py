"""Units of work become csns.

Law: the rows are written first and count for nothing; one catalog transaction then gives every entry its csn, pins the
deltas, and moves each source's position from where it was to where it was read. So a process may die anywhere: what was
not published is read again. Views that follow commits are published in the same transaction; one that cannot falls
behind and holds up no source.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from rollview.capture.arrange import Entry
from rollview.capture.commit_stream import CommitStream, End, Reached
from rollview.capture.quarantine import note_quarantine, sift
from rollview.capture.recorded_source import tables_of
from rollview.capture.settled import Remote, Settled, SettledEntry, comes_alone, settle
from rollview.catalog import Catalog, CatalogWriter, ChangeCount, Lease, NewUnit, Part, Relation, Snapshot, UnitPart
from rollview.core.interval import Csn, Interval
from rollview.core.raised import unexpected_error
from rollview.errors import BadValue, LostLease, RollviewError, Unreadable
from rollview.publish.following import Following, NobodyFollows, Taken, Upcoming, as_published, followers
from rollview.publish.step import Along, LoggedVersion, NewVersion, RunningStep, Shown, recorded
from rollview.relations.folders import delta_folder, state_folder
from rollview.sources.boundary import as_error
from rollview.store.datafile import DataFile
from rollview.store.folder import DeltaFolder

_log = logging.getLogger(__name__)

_PATIENCE = 5.0
"""Seconds that a publication waits for views that are to follow it."""

Ends = Mapping[str, End]


@dataclass(frozen=True, slots=True)
class Published:
    """How far each source is captured now, and what kept it from being more."""

    reached: Mapping[str, Reached]
    error: Exception | None = None


class Publication:
    """Of the units of work of some sources. ``held``: the lease on those; whoever lost it publishes nothing."""

    def __init__(
        self,
        catalog: Catalog,
        root: Path,
        streams: Sequence[CommitStream],
        held: Lease,
        following: Following | None = None,
    ) -> None:
        """``following``: who brings views along; one that cannot follow holds up no source."""
        self._held = held
        self._following = following or NobodyFollows()
        self._catalog = catalog
        self._root = root
        self._streams = {stream.name: stream for stream in streams}

    def publish(self, entries: Sequence[Entry], ends: Ends, reached: Mapping[str, Reached]) -> Published:
        """All entries in their order, from where the sources are; ``ends``: where they stand after the last one."""
        about = (self._catalog, self._root, self._streams, dict(reached), self._held, self._following)
        done = _Publishing(*about)
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
    _following: Following

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
        with ExitStack() as stack:
            taken = self._take(tuple(names.values()), stack)
            ready, lease = self._prepare(taken, names, entries, stack)
            try:
                self._show(taken, lease, ready, ends)
            except BaseException:
                ready.give_up()
                raise
        self._count(ready.settled)
        _close_spools(entries)

    def _take(self, tables: tuple[str, ...], stack: ExitStack) -> Taken:
        """Views that others hold are not waited for long, and what is wrong with views is not the source's concern."""
        try:
            taken = Taken(tables, followers(self._following.policies, self._catalog.snapshot(), tables, strict=False))
            if not taken.followers.views:
                return taken
            return replace(taken, lease=stack.enter_context(self._catalog.lease(*taken.all, wait=_PATIENCE)))
        except RollviewError as error:
            _log.warning("no view follows the capture of %s: %s", ", ".join(tables), error.message)
            return Taken(tables)

    def _prepare(
        self, taken: Taken, names: Mapping[Remote, str], entries: Sequence[Entry], stack: ExitStack
    ) -> tuple[_LoggedEntries, Lease]:
        """What views have to compute is done before the clock is held; once more if another got the csn meanwhile."""
        ready = None
        try:
            if taken.lease is not None:
                ready = self._logged(taken, taken.lease, names, entries)
            lease = stack.enter_context(self._catalog.lease(*taken.remaining))
            if ready is None or ready.interval.after != self._catalog.snapshot().moment.csn:
                left, ready = ready, None
                if left is not None:
                    left.give_up()
                ready = self._logged(taken, taken.lease or lease, names, entries)
        except BaseException:
            if ready is not None:
                ready.give_up()
            raise
        return ready, lease

    def _logged(
        self, taken: Taken, lease: Lease, names: Mapping[Remote, str], entries: Sequence[Entry]
    ) -> _LoggedEntries:
        snapshot = self._catalog.snapshot()
        relations = {remote: snapshot.get(name) for remote, name in names.items()}
        sifted = [self._sifted(entry, relations) for entry in entries]
        settled = _settled(self._root, relations, sifted, snapshot.moment.csn + 1)
        interval = Interval(snapshot.moment.csn, snapshot.moment.csn + len(settled.entries))
        if not settled.entries:
            return _LoggedEntries(settled, sifted, interval)
        step, new, logged = self._write(lease, settled, interval)
        ready = _LoggedEntries(settled, sifted, interval, step, new, logged)
        try:
            return replace(ready, along=self._along(taken, lease, snapshot, ready))
        except BaseException:
            ready.give_up()
            raise

    def _along(self, taken: Taken, lease: Lease, snapshot: Snapshot, ready: _LoggedEntries) -> Along:
        if taken.lease is None:
            return Along()
        shown = as_published(snapshot, ready.interval.through, ready.shown)
        try:
            return self._following.along(Upcoming(shown, ready.changes), taken.followers, lease)
        except LostLease:
            raise
        except Exception as error:
            message = unexpected_error(error).message
            return Along(behind=dict.fromkeys(taken.followers.views, message))

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

    def _write(
        self, lease: Lease, settled: Settled, interval: Interval
    ) -> tuple[RunningStep, tuple[NewVersion, ...], tuple[LoggedVersion, ...]]:
        """Up to the publication of the step."""
        parts = dict.fromkeys(settled.tables, Part.DELTA) | dict.fromkeys(settled.states, Part.STATE)
        places = {remote: DeltaFolder.new_folder() for remote in parts}
        paths = [f"{settled.relations[remote].folder}/{parts[remote]}/{place}" for remote, place in places.items()]
        about = ", ".join(sorted({source for source, _ in parts}))
        with recorded(self._catalog, lease, self._root, about, "capture", interval, paths) as step:
            new = tuple(self._stage(settled, remote, place) for remote, place in places.items())
            step.computed()
            return step, new, step.log(new, {"csn": str(interval.through)})

    def _show(self, taken: Taken, lease: Lease, ready: _LoggedEntries, ends: Ends) -> None:
        if ready.step is None:
            self._advance(ends, ready.entries)
            return
        held = (self._held,) if taken.lease is None else (self._held, taken.lease)
        profile = {"units": len(ready.settled.entries), "rows": ready.settled.rows}
        with ready.step.publish(lease, profile, held=held, along=ready.along) as publishing:
            units = [_described(one) for one in ready.settled.entries]
            publishing.writer.commit_units(units, ready.interval.after + 1)
            for one in ready.shown:
                publishing.show_pin(one.logged.relation, one.pin)
                if one.logged.part is Part.STATE:
                    publishing.writer.add_replaced(one.logged.relation, one.through)
            self._quarantine(publishing.writer, ready.entries)
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


@dataclass(frozen=True, slots=True)
class _LoggedEntries:
    """Entries that are logged, to get the csns of the interval. Without a ``step`` they change nothing."""

    settled: Settled
    entries: Sequence[Entry]
    interval: Interval
    step: RunningStep | None = None
    new: tuple[NewVersion, ...] = ()
    logged: tuple[LoggedVersion, ...] = ()
    along: Along = field(default_factory=Along)

    @property
    def shown(self) -> tuple[Shown, ...]:
        """A state that replaces all that was there is of one csn; a delta goes on from where it was."""
        csn = self.interval.through
        pairs = zip(self.new, self.logged, strict=True)
        return tuple(Shown(logged, csn if new.base is None else new.base.after, csn) for new, logged in pairs)

    @property
    def changes(self) -> tuple[ChangeCount, ...]:
        numbered = enumerate(self.settled.entries, self.interval.after + 1)
        return tuple(ChangeCount(one.relation, csn, *one[1:]) for csn, entry in numbered for one in entry.counts)

    def give_up(self) -> None:
        self.along.give_up()
        if self.step is not None:
            self.step.give_up()


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


def _described(settled: SettledEntry) -> NewUnit:
    entry = settled.entry
    parts = tuple(UnitPart(a.source, a.unit.position, a.unit.transaction, a.unit.time) for a in entry.arrived)
    return NewUnit(parts, settled.counts, entry.effective, entry.global_id)
