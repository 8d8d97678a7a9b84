"""Every way to have a relation at a csn, with its seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from rollview.catalog import Part, Relation, RelationKind, Snapshot, Step
from rollview.core.interval import Csn, Interval
from rollview.costs.refreshing import RefreshSeconds, RefreshWork, refresh_seconds
from rollview.costs.sizes import RowsToRead, shown_size, size_at
from rollview.costs.work import COMPUTED_ROW, Machine, Work
from rollview.errors import OutOfReach
from rollview.relations.moved import ChangesOf
from rollview.relations.plans import can_follow, check_reachable, check_told, high_water_mark, plan_of
from rollview.relations.versions import check_defined

PastOf = Callable[[str], Sequence[Step]]
"""A view's last propagation steps, newest first, and its creation."""


class WayToRead(StrEnum):
    ROWS = "rows"
    EXTENT = "extent"
    WITH_DELTA = "extent ± delta"
    WITH_RESIDUAL = "stale + residual"
    RECOMPUTED = "recomputed"


@dataclass(frozen=True, slots=True)
class RelationCost:
    """One relation at one csn: how, and for how long. ``rows``: at most so many are grouped, netted or shown on the
    way."""

    relation: str
    way: WayToRead
    seconds: float
    rows: int = 0


@dataclass(frozen=True, slots=True)
class Costs:
    snapshot: Snapshot
    root: Path
    changes_of: ChangesOf
    past_of: PastOf
    machine: Machine = Machine()
    _told: dict[tuple[str, Csn], tuple[RelationCost, ...]] = field(default_factory=dict, compare=False, repr=False)

    def reading(self, name: str, at: Csn) -> RelationCost:
        """The cheapest way. Raises ``OutOfReach``."""
        return min(self.ways(name, at), key=lambda one: one.seconds)

    def all(self, names: Sequence[str], at: Csn) -> tuple[RelationCost, ...] | None:
        """None if one of them cannot be read there."""
        try:
            return tuple(self.reading(name, at) for name in names)
        except OutOfReach:
            return None

    def ways(self, name: str, at: Csn) -> tuple[RelationCost, ...]:
        """All ways, where there is a choice. Raises ``OutOfReach`` if there is none at all."""
        if (name, at) not in self._told:
            self._told[name, at] = self._ways(name, at)
        return self._told[name, at]

    def from_nothing(self, name: str, at: Csn) -> float | None:
        """Of a view that would have to be brought there; None if nothing has to be done, or it cannot be computed."""
        with suppress(OutOfReach):
            return next((one.seconds for one in self.ways(name, at) if one.way is WayToRead.RECOMPUTED), None)
        return None

    def _ways(self, name: str, at: Csn) -> tuple[RelationCost, ...]:
        relation = self.snapshot.get(name)
        check_defined(relation, at)
        if relation.kind is RelationKind.TABLE or at <= high_water_mark(self.snapshot, relation):
            return (self._stored(relation, at),)
        found = tuple(self._past_its_mark(relation, at))
        if not found:
            raise OutOfReach(
                f"View '{relation.name}' cannot be brought to csn {at}: not all that it reads is kept.",
                hint=f"Refresh it first: rollview refresh --select {relation.name}",
                name=relation.name,
                csn=at,
            )
        return found

    def rolling(self, name: str, at: Csn) -> float:
        """To bring the extent there, forwards or back, and write it. Raises ``OutOfReach``."""
        relation = self.snapshot.get(name)
        check_reachable(self.snapshot, relation, at, rolling=True)
        return roll_seconds(self.snapshot, self.root, relation, at)

    def refreshing(self, name: str, at: Csn) -> RefreshSeconds:
        """To bring the view's delta there from its mark."""
        relation = self.snapshot.get(name)
        work = self._work(relation, Interval(min(at, high_water_mark(self.snapshot, relation)), at))
        return refresh_seconds(work, self.past_of(relation.name))

    def _stored(self, relation: Relation, at: Csn) -> RelationCost:
        check_reachable(self.snapshot, relation, at)
        size = shown_size(self.snapshot, self.root, relation, at)
        if relation.kind is RelationKind.TABLE:
            way = WayToRead.ROWS
        else:
            way = WayToRead.WITH_DELTA if size.changes else WayToRead.EXTENT
        return RelationCost(relation.name, way, self._to_read(relation, size), size.most)

    def _to_read(self, relation: Relation, size: RowsToRead) -> float:
        # A query still has to join or group the rows of a table; those of a view are joined and grouped already.
        each = COMPUTED_ROW if relation.kind is RelationKind.TABLE else 1
        # A change is netted with the row that it is about.
        return self.machine.seconds(Work(each * size.rows + 2 * size.changes, files=size.files, relations=1))

    def _past_its_mark(self, relation: Relation, at: Csn) -> Iterator[RelationCost]:
        check_told(self.snapshot, (relation.name,), at, f"Cannot compute view '{relation.name}' at csn {at}")
        mark = high_water_mark(self.snapshot, relation)
        stored = self._stored(relation, mark)
        work = self._work(relation, Interval(mark, at))
        if not work.delta_rows:
            yield stored
            return
        seconds = refresh_seconds(work, self.past_of(relation.name))
        planning = self.machine.seconds(Work(relations=2 * (1 + len(relation.depends_on))))
        if can_follow(self.snapshot, relation, at):
            netting = self.machine.seconds(Work(changes=stored.rows))
            residual = stored.seconds + netting + planning + seconds.by_deltas
            rows = stored.rows + (work.delta_rows if self._is_linear(relation) else work.read_rows)
            yield RelationCost(relation.name, WayToRead.WITH_RESIDUAL, residual, rows)
        if self._has_rows(relation, at):
            yield RelationCost(relation.name, WayToRead.RECOMPUTED, planning + seconds.recomputed, work.read_rows)

    def _is_linear(self, view: Relation) -> bool:
        """Whether only rows that changed move, those of tables that did not are looked up."""
        below = (self.snapshot.get(name) for name in view.depends_on)
        is_over_tables = all(lower.kind is RelationKind.TABLE for lower in below)
        return is_over_tables and not plan_of(self.snapshot, view).groups_states

    def _has_rows(self, view: Relation, at: Csn) -> bool:
        """Whether all tables below can be read there."""
        return self.all(tuple(self.snapshot.tables_below(view)), at) is not None

    def _work(self, relation: Relation, interval: Interval) -> RefreshWork:
        """What a refresh over the interval reads."""
        moved_by = plan_of(self.snapshot, relation).moved_by
        read = [self.snapshot.get(name) for name in relation.depends_on if name in moved_by]
        counts = [
            count
            for table in {table for lower in read for table in self.snapshot.tables_of(lower)}
            for count in self.changes_of(table, interval)
        ]
        changes = sum(count.inserted + count.deleted for count in counts)
        sizes = [size_at(self.snapshot, self.root, one, interval.after) for one in read]
        csns = [count.csn for count in counts]
        return RefreshWork(changes, sum(one.most for one in sizes), (min(csns), max(csns)) if csns else None)


def roll_seconds(snapshot: Snapshot, root: Path, relation: Relation, at: Csn) -> float:
    """The extent is read, and written as far as it changes."""
    size, extent = size_at(snapshot, root, relation, at), relation.pins[Part.EXTENT]
    if extent.through == at:
        return 0.0
    return Machine().seconds(Work(2 * extent.rows + size.rows, size.changes, size.files, relations=1, jobs=1))
