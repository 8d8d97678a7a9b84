"""What reading a relation at a csn costs, in seconds, told from the catalog and lists of files alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from rollview.algebra.states import states_read
from rollview.algebra.view import ViewPlan
from rollview.catalog import Relation, RelationKind, Snapshot
from rollview.core.interval import Csn, Interval
from rollview.errors import OutOfReach
from rollview.propagate.moved import ChangesOf
from rollview.relations.plans import check_reachable, high_water_mark, plan_of
from rollview.relations.reader import stored_as
from rollview.relations.versions import check_defined
from rollview.store.timed import delta_files

JOB_SECONDS = 0.06
"""A query on rows that are at hand."""
ROWS_PER_SECOND = 4_000_000.0
PLANNING_SECONDS = 0.015
"""For each relation that a query names."""
ROWS_PER_CHANGE = 4.0
"""Following a change costs about as much as reading so many rows."""


class WayToRead(StrEnum):
    ROWS = "rows"
    EXTENT = "extent"
    WITH_DELTA = "extent ± delta"
    WITH_RESIDUAL = "stale + residual"
    RECOMPUTED = "recomputed"


@dataclass(frozen=True, slots=True)
class RelationCost:
    """One relation at one csn: how, and for how long."""

    relation: str
    way: WayToRead
    seconds: float


@dataclass(frozen=True, slots=True)
class Costs:
    snapshot: Snapshot
    root: Path
    changes_of: ChangesOf

    def reading(self, name: str, at: Csn) -> RelationCost:
        """The cheapest way. Raises ``OutOfReach``."""
        relation = self.snapshot.get(name)
        mark = high_water_mark(self.snapshot, relation)
        check_defined(relation, at)
        if relation.kind is RelationKind.TABLE or at <= mark:
            check_reachable(self.snapshot, relation, at)
            return self._stored(relation, at)
        stale, again = self._residual(relation, mark, at), self._recomputed(relation, at)
        return min((one for one in (stale, again) if one is not None), key=lambda one: one.seconds)

    def all(self, names: Sequence[str], at: Csn) -> tuple[RelationCost, ...] | None:
        """None if one of them cannot be read there."""
        try:
            return tuple(self.reading(name, at) for name in names)
        except OutOfReach:
            return None

    def _stored(self, relation: Relation, at: Csn) -> RelationCost:
        rows, changes = self._size(relation, at)
        is_view = relation.kind is RelationKind.VIEW
        way = WayToRead.ROWS if not is_view else WayToRead.WITH_DELTA if changes else WayToRead.EXTENT
        return RelationCost(relation.name, way, PLANNING_SECONDS + (rows + 2 * changes) / ROWS_PER_SECOND)

    def _size(self, relation: Relation, at: Csn) -> tuple[int, int]:
        hidden = plan_of(self.snapshot, relation).hidden if relation.kind is RelationKind.VIEW else None
        stored = stored_as(self.root, relation, hidden)
        way = Interval(min(stored.snapshot_csn, at), max(stored.snapshot_csn, at))
        return stored.pins[stored.snapshot_part].rows, sum(file.rows for file in delta_files(stored, way))

    def _residual(self, relation: Relation, mark: Csn, at: Csn) -> RelationCost | None:
        plan = plan_of(self.snapshot, relation)
        check_reachable(self.snapshot, relation, mark)
        tables = self.snapshot.tables_below(relation)
        counts = [count for table in tables for count in self.changes_of(table, Interval(mark, at))]
        changes = sum(count.inserted + count.deleted for count in counts)
        stored = self._stored(relation, mark)
        if not changes:
            return stored
        if plan.outline.rel is None:
            return None
        states = sum(self._size(self.snapshot.get(table), mark)[0] for table in tables) if _reads_states(plan) else 0
        seconds = PLANNING_SECONDS * 4 + (ROWS_PER_CHANGE * changes + states) / ROWS_PER_SECOND
        return RelationCost(relation.name, WayToRead.WITH_RESIDUAL, stored.seconds + seconds)

    def _recomputed(self, relation: Relation, at: Csn) -> RelationCost:
        tables = self.snapshot.tables_below(relation)
        readings = [self.reading(table, at) for table in tables]
        return RelationCost(relation.name, WayToRead.RECOMPUTED, JOB_SECONDS + 2 * sum(one.seconds for one in readings))


def _reads_states(plan: ViewPlan) -> bool:
    return bool(states_read(plan))
