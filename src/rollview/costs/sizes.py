"""How much has to be read of a relation at a csn, from its pins and the lists of files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rollview.catalog import Part, Relation, RelationKind, Snapshot
from rollview.core.interval import Csn, Interval
from rollview.relations.plans import plan_of
from rollview.relations.reader import stored_as
from rollview.relations.shared import changes_from
from rollview.store.timed import Stored, delta_files


@dataclass(frozen=True, slots=True)
class RowsToRead:
    """``rows``: stored at some csn; ``changes``: on the way from there, in ``files`` files."""

    rows: int
    changes: int
    files: int

    @property
    def most(self) -> int:
        """At most so many rows are read."""
        return self.rows + self.changes


def size_at(snapshot: Snapshot, root: Path, relation: Relation, at: Csn) -> RowsToRead:
    """By what its delta is about: a summary view by its groups. The changes are those of the delta that tells them,
    which may be another view's."""
    snapshot, relation = snapshot.at(at), relation.at(at)
    stored, told_by = _stored(snapshot, root, relation), changes_from(snapshot, relation)
    delta = stored if told_by is relation else _stored(snapshot, root, told_by)
    way = Interval(min(stored.snapshot_csn, at), max(stored.snapshot_csn, at))
    changes = delta_files(delta, way)
    return RowsToRead(stored.pins[stored.snapshot_part].rows, sum(file.rows for file in changes), len(changes))


def shown_size(snapshot: Snapshot, root: Path, relation: Relation, at: Csn) -> RowsToRead:
    """By the rows that are shown, with all files: a view's extent where it is at the csn or nothing changed on the way
    there."""
    snapshot, relation = snapshot.at(at), relation.at(at)
    size = size_at(snapshot, root, relation, at)
    extent = relation.pins.get(Part.EXTENT)
    stored = _stored(snapshot, root, relation)
    if extent is not None and (extent.through == at or not size.changes):
        stored, size = stored_as(root, relation), RowsToRead(extent.rows, 0, 0)
    return RowsToRead(size.rows, size.changes, size.files + len(stored.files(stored.snapshot_part)))


def _stored(snapshot: Snapshot, root: Path, relation: Relation) -> Stored:
    hidden = plan_of(snapshot, relation).hidden if relation.kind is RelationKind.VIEW else None
    return stored_as(root, relation, hidden)
