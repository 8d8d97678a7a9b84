"""Files that nobody can be reading any more go; the others are noted for later.

Law: a file goes only if it has been out of use for the grace period, and since before the oldest answer that may still
be fetched of its relation: by a note of an earlier sweep, or because its relation's pins have not moved since. A Delta
log begins at a version that was pinned that long ago.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from rollview.catalog import Catalog, ReaderRecord
from rollview.core import durable
from rollview.core.faults import reach
from rollview.core.interval import Interval
from rollview.maintain.notes import Notes, read_notes, write_notes
from rollview.maintain.trim import LogTrim, plan_trim, run_trim
from rollview.maintain.unused import Unused, find_unused, is_staged, remove
from rollview.publish.step import finish_without_files, recorded

EVERYTHING = "*"


@dataclass(frozen=True, slots=True)
class Sweep:
    """``due``: files that go, ``later``: files that stay for now, ``trims``: logs that are shortened, by relation."""

    unused: Unused
    due: tuple[str, ...]
    later: tuple[str, ...]
    trims: tuple[tuple[str, LogTrim], ...]
    notes: Notes

    def of(self, paths: tuple[str, ...], relation: str | None) -> tuple[str, ...]:
        """Those of the paths that belong to the relation."""
        return tuple(path for path in paths if self.unused.owner[path] == relation)

    def bytes(self, paths: tuple[str, ...]) -> int:
        return sum(self.unused.files[path] for path in paths)


@dataclass(frozen=True, slots=True)
class ReadSince:
    """Who may still be reading began after ``grace``, or is one of ``readers``, whose answers are not fetched yet."""

    grace: datetime
    readers: tuple[ReaderRecord, ...]

    def limit(self, relation: str | None) -> datetime:
        """Whatever went out of use before this is read by nobody. ``relation``: None of one that is gone."""
        begun = (one.begun for one in self.readers if relation is None or relation in one.relations)
        return min([self.grace, *begun])


def plan_sweep(catalog: Catalog, root: Path, chosen: tuple[str, ...] | None, now: datetime, grace: timedelta) -> Sweep:
    notes = read_notes(root)
    # After ``now``: who is not among them yet began later than all that may go.
    since = ReadSince(now - grace, catalog.readers.live())
    unused = find_unused(catalog, root, chosen)
    staged = [path for path in unused.files if unused.owner[path] is None or is_staged(path)]
    due = tuple(path for path in staged if _is_due(unused, path, notes, since))
    later = tuple(path for path in staged if path not in set(due))
    trims = tuple(_trims(catalog, root, unused, chosen, notes, since))
    # What was in use until a moment ago went out of use no earlier than now.
    seen = max(now, catalog.now())
    return Sweep(unused, due, later, trims, _noted(unused, later, notes, chosen, seen, since))


def run_sweep(catalog: Catalog, root: Path, sweep: Sweep) -> None:
    csn = sweep.unused.snapshot.moment.csn
    if sweep.due or sweep.trims:
        with recorded(catalog, None, root, EVERYTHING, "sweep", Interval(csn, csn), ()) as step:
            reach("sweep.begun")
            with durable.disk(root):
                for path in sweep.due:
                    remove(root, path)
                    reach("sweep.removed")
                for _, trim in sweep.trims:
                    run_trim(trim)
                    reach("sweep.trimmed")
            finish_without_files(step, {"files": len(sweep.due), "bytes": sweep.bytes(sweep.due)})
    write_notes(root, sweep.notes)
    reach("sweep.noted")


def _is_due(unused: Unused, path: str, notes: Notes, since: ReadSince) -> bool:
    limit, quiet_since = since.limit(unused.owner[path]), unused.since(path)
    return notes.is_due(path, limit) or (quiet_since is not None and quiet_since <= limit)


def _trims(
    catalog: Catalog, root: Path, unused: Unused, chosen: tuple[str, ...] | None, notes: Notes, since: ReadSince
) -> Iterator[tuple[str, LogTrim]]:
    for relation in unused.snapshot.relations.values():
        if chosen is not None and relation.name not in chosen:
            continue
        ended, limit = catalog.settled(relation.name), since.limit(relation.name)
        for part, pin in relation.pins.items():
            place = f"{relation.folder}/{part}"
            quiet = ended is not None and ended <= limit
            noted = notes.settled_version(place, limit)
            # A note may be of a later version than a catalog that was restored since.
            settled = None if noted is None else min(noted, pin.version)
            version = pin.version if quiet else settled
            trim = None if version is None else plan_trim(root / place, version, limit)
            if trim is not None:
                yield relation.name, trim


def _noted(
    unused: Unused,
    later: tuple[str, ...],
    notes: Notes,
    chosen: tuple[str, ...] | None,
    now: datetime,
    since: ReadSince,
) -> Notes:
    """Older notes stay for what was not looked at; of each part the oldest version that is not settled yet."""
    files = {path: notes.unused.get(path, now) for path in later}
    if chosen is not None:
        files = {**notes.unused, **files}
    pinned = {}
    for relation in unused.snapshot.relations.values():
        for part, pin in relation.pins.items():
            place = f"{relation.folder}/{part}"
            old = notes.pinned.get(place)
            settled = old is None or notes.settled_version(place, since.limit(relation.name)) is not None
            pinned[place] = (pin.version, now) if settled or old is None else old
    return Notes(files, pinned)
