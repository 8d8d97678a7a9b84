"""What maintenance will do to a relation, before it does it.

Law: a plan says what pays, and nothing else. Prune and compress stop where somebody still reads, at a csn that can be
read.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from rollview.catalog import Catalog, Part, Relation, RelationKind, Snapshot
from rollview.core.interval import Csn, Interval
from rollview.core.names import CSN
from rollview.maintain.needs import NeededCsn, legal, oldest_need
from rollview.maintain.release import readers_of_changes
from rollview.maintain.settings import Keep, ShorteningLimit, asked_compress, asked_prune
from rollview.publish.fold import pays as fold_pays
from rollview.publish.merge import groups_of
from rollview.publish.rewrite import Files, stored
from rollview.relations.versions import began_anew
from rollview.store.datafile import DataFile
from rollview.store.timed import Stored, delta_files

FEW = 16
"""Fewer files than this are not worth merging."""
LEAST_ROWS = 1_000
"""A stretch with fewer rows is not compressed by a setting; by name it always is."""


class Action(StrEnum):
    FOLD = "fold"
    PRUNE = "prune"
    COMPRESS = "compress"
    MERGE = "merge"
    RELEASE = "release"
    HOLD = "hold"


@dataclass(frozen=True, slots=True)
class Task:
    """One action on one part. ``saves``: files and bytes fewer, as far as that can be told beforehand."""

    relation: str
    part: Part
    action: Action
    interval: Interval
    why: str
    files: Files = ()
    kept: int = 0
    bytes: int = 0

    @property
    def saves_files(self) -> int:
        return len(self.files) - self.kept


def plan_relation(snapshot: Snapshot, catalog: Catalog, root: Path, name: str, keep: Keep) -> tuple[Task, ...]:
    """In the order in which they are done."""
    relation = snapshot.get(name)
    held = stored(snapshot, root, relation)
    subscribers = [one for one in catalog.subscribers() if one.name not in keep.overtake]
    need = oldest_need(snapshot, relation, subscribers)
    limit = asked_prune(snapshot, catalog, relation, keep)
    if relation.name in keep.asked and not relation.is_kept:
        # No csn of the table can be read, so nobody loses one.
        limit = ShorteningLimit(need.csn, "its rows stay at the source", named=False)
    prune = _shorten(relation, need, Action.PRUNE, limit)
    compress = _shorten(relation, need, Action.COMPRESS, asked_compress(snapshot, catalog, relation, keep))
    former = _plan_former(relation, need, asked_prune(snapshot, catalog, relation, keep))
    tasks: list[Task] = [task for task in (prune.hold, compress.hold, former) if task is not None]
    pruned = _plan_prune(relation, held, prune)
    begin = max(_compressed(catalog, relation), pruned.interval.through if pruned else 0, relation.readable_from)
    compressed = _plan_compress(relation, held, compress, begin)
    release = _plan_release(snapshot, relation, held, keep)
    if release is not None:
        tasks.append(release)
    elif relation.is_kept:
        tasks += _plan_folds(snapshot, root, relation, [task for task in (pruned, compressed) if task is not None])
    tasks += [task for task in (pruned, compressed) if task is not None]
    gone = {file.path for task in tasks if task.action in (Action.PRUNE, Action.COMPRESS) for file in task.files}
    return (*tasks, *_plan_merges(snapshot, relation, held, gone))


@dataclass(frozen=True, slots=True)
class _Shorten:
    """How far a delta may be shortened, and what keeps it from going on."""

    csn: Csn
    why: str
    named: bool
    hold: Task | None = None


def _shorten(relation: Relation, need: NeededCsn, action: Action, asked: ShorteningLimit | None) -> _Shorten:
    pin = relation.pins[Part.DELTA]
    if asked is None or asked.csn <= pin.after:
        return _Shorten(pin.after, "", False)
    csn = max(pin.after, legal(relation, min(asked.csn, need.csn)))
    hold = None
    if need.csn < asked.csn:
        left = Interval(max(pin.after, need.csn), asked.csn)
        why = f"{action.value} to csn {asked.csn} ({asked.why}) stops at {need.csn}: {need.why}"
        hold = Task(relation.name, Part.DELTA, Action.HOLD, left, why)
    return _Shorten(csn, asked.why, asked.named, hold)


def _plan_former(relation: Relation, need: NeededCsn, asked: ShorteningLimit | None) -> Task | None:
    """What a view has stored by definitions that ended at the csn, or before it."""
    since = began_anew(relation)
    if since is None or asked is None or min(asked.csn, need.csn) < since or len(relation.parts) == 1:
        return None
    first = min(parts.pins[Part.DELTA].after for parts in relation.parts)
    return Task(relation.name, Part.BRIDGE, Action.PRUNE, Interval(first, since), f"{asked.why}; earlier definitions")


def _plan_prune(relation: Relation, held: Stored, to: _Shorten) -> Task | None:
    """Files behind the csn go. One that lies across it is written anew only if the csn was named."""
    pin = relation.pins[Part.DELTA]
    if to.csn <= pin.after:
        return None
    files = held.files(Part.DELTA)
    behind = tuple(file for file in files if _csns(file)[1] <= to.csn)
    across = tuple(file for file in files if _csns(file)[0] <= to.csn < _csns(file)[1]) if to.named else ()
    if not behind and not to.named:
        return None
    gone = behind + across
    size = sum(file.size for file in behind)
    return Task(relation.name, Part.DELTA, Action.PRUNE, Interval(pin.after, to.csn), to.why, gone, len(across), size)


def _plan_compress(relation: Relation, held: Stored, to: _Shorten, begin: Csn) -> Task | None:
    after = legal(relation, max(begin, relation.pins[Part.DELTA].after))
    if to.csn - after < 2:
        return None
    interval = Interval(after, to.csn)
    if any(dropped > after for _, dropped in relation.former):
        # Rows from before and after it cannot be added up in the columns of both.
        return None
    files = delta_files(held, interval)
    csns = {csn for file in files for csn in _csns(file)}
    if len(csns) < 2 or not (to.named or sum(file.rows for file in files) >= LEAST_ROWS):
        return None
    size = sum(file.size for file in files)
    return Task(relation.name, Part.DELTA, Action.COMPRESS, interval, f"{to.why}; at most so much", files, 1, size)


def _plan_release(snapshot: Snapshot, relation: Relation, held: Stored, keep: Keep) -> Task | None:
    is_free = relation.name in keep.needed and relation.is_kept
    views = readers_of_changes(snapshot, relation, keep.asked) if is_free else ()
    if not views:
        return None
    at, files = relation.pins[Part.STATE].through, held.files(Part.STATE)
    why = f"only its changes are read, by {', '.join(views)}"
    size = sum(file.size for file in files)
    return Task(relation.name, Part.STATE, Action.RELEASE, Interval(at, at), why, files, 0, size)


def _plan_folds(snapshot: Snapshot, root: Path, relation: Relation, shortened: list[Task]) -> list[Task]:
    """What a shortened delta is read from must not lie behind or strictly inside it."""
    part = Part.STATE if relation.kind is RelationKind.TABLE else Part.GROUPS
    if part not in relation.pins:
        return []
    at = relation.pins[part].through
    to = snapshot.moment.csn if part is Part.STATE else relation.pins[Part.EXTENT].through
    for task in shortened:
        if at < task.interval.through and (task.action is Action.PRUNE or at > task.interval.after):
            why = f"it is at csn {at}, before the {task.action.value} to {task.interval.through}"
            return [Task(relation.name, part, Action.FOLD, Interval(at, to), why)]
    if part is Part.STATE and fold_pays(snapshot, root, relation):
        return [Task(relation.name, part, Action.FOLD, Interval(at, to), "its delta has outgrown it")]
    return []


def _plan_merges(snapshot: Snapshot, relation: Relation, held: Stored, gone: set[str]) -> list[Task]:
    found = []
    for part, pin in relation.pins.items():
        # What changed with a definition is written once, and read seldom.
        if part is Part.BRIDGE or not pin.is_kept:
            continue
        files = tuple(file for file in held.files(part) if file.path not in gone)
        groups = groups_of(snapshot, relation, part, files) if len(files) >= FEW else ()
        small = tuple(file for group in groups for file in group)
        if len(small) - len(groups) >= FEW // 2:
            why = f"{len(small)} of {len(files)} files are small"
            between = Interval(pin.after, pin.through)
            found.append(Task(relation.name, part, Action.MERGE, between, why, small, len(groups)))
    return found


def _compressed(catalog: Catalog, relation: Relation) -> Csn:
    """The end of what was compressed before: a csn that stays in reach."""
    last = catalog.last_step(relation.name, "compress")
    return last.interval.through if last is not None else 0


def _csns(file: DataFile) -> tuple[Csn, Csn]:
    first, last = file.bounds(CSN) or (0, 0)
    return first, last
