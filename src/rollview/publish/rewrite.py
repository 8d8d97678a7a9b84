"""Files of one part replaced by others, as a recorded step.

Law: the new files are written, then logged, then pinned in the transaction that ends the step. Who dies on the way has
changed nothing, and the files that were replaced stay until nobody can be reading them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rollview.catalog import Catalog, Lease, Part, Pin, Relation, RelationKind, Snapshot, StepKind
from rollview.core.interval import Csn, Interval
from rollview.publish.step import NewVersion, recorded
from rollview.relations.plans import plan_of
from rollview.relations.reader import stored_as
from rollview.store.datafile import DataFile
from rollview.store.folder import DeltaFolder
from rollview.store.timed import Stored

Files = tuple[DataFile, ...]
Write = Callable[[DeltaFolder, Sequence[str]], Files]
"""Stages new files of the part in the given places, each of which it may use once."""


@dataclass(frozen=True, slots=True)
class Rewriting:
    """``after`` and ``through``: what the part covers afterwards. ``coarse``: what can no longer be read inside."""

    relation: Relation
    part: Part
    kind: StepKind
    interval: Interval
    removed: Files
    after: Csn
    through: Csn
    coarse: Interval | None = None

    @property
    def pin(self) -> Pin:
        return self.relation.pins[self.part]


@dataclass(frozen=True, slots=True)
class Rewritten:
    added: Files
    removed: Files

    @property
    def files_saved(self) -> int:
        return len(self.removed) - len(self.added)

    @property
    def bytes_saved(self) -> int:
        return sum(file.size for file in self.removed) - sum(file.size for file in self.added)


def stored(snapshot: Snapshot, root: Path, relation: Relation) -> Stored:
    """The relation as its delta tells it: a summary view by its groups."""
    hidden = plan_of(snapshot, relation).hidden if relation.kind is RelationKind.VIEW else None
    return stored_as(root, relation, hidden)


def copied(relation: Relation, held: Stored) -> Stored:
    """The same with all columns that its files may hold, for who copies rows as they are."""
    return replace(held, schema=relation.copied) if relation.former else held


def rewrite(
    catalog: Catalog, lease: Lease, root: Path, work: Rewriting, folder: DeltaFolder, write: Write, places: int = 1
) -> Rewritten:
    relation, kind, pin = work.relation, work.kind, work.pin
    names = tuple(folder.new_folder() for _ in range(places))
    paths = tuple(f"{relation.folder}/{work.part}/{name}" for name in names)
    with recorded(catalog, lease, root, relation.name, kind, work.interval, paths) as step:
        added = write(folder, names)
        step.computed()
        new = NewVersion(relation.name, work.part, folder, pin, added, work.removed)
        (logged,) = step.log([new], {"step": kind, "interval": str(work.interval)})
        done = Rewritten(added, work.removed)
        with step.publish(lease, _profile(done)) as publishing:
            publishing.show(logged, work.after, work.through)
            if work.coarse is not None:
                publishing.writer.add_coarse(relation.name, work.coarse)
            if work.part is Part.DELTA and work.after > pin.after:
                publishing.writer.forget_coarse(relation.name, work.after)
                publishing.writer.forget_definitions(relation.name, work.after)
    return done


def _profile(done: Rewritten) -> Mapping[str, Any]:
    return {
        "files_written": len(done.added),
        "bytes_written": sum(file.size for file in done.added),
        "files_replaced": len(done.removed),
        "bytes_replaced": sum(file.size for file in done.removed),
    }
