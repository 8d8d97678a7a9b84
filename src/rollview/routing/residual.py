"""Views at csns that they have not reached: what is stored of them and what came since, as one query.

Law: V@t = V@mark + ΔV(mark, t], by the same propagation that a refresh runs; nothing is written. Where nothing below
the view changed since its mark, its stored rows are its rows.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rollview.algebra.script import Motion
from rollview.algebra.summary import GROUPS
from rollview.algebra.view import Mode, Propagation
from rollview.catalog import RelationKind, Snapshot
from rollview.core.interval import Csn, Interval
from rollview.core.names import COUNT, CSN
from rollview.core.schema import Schema
from rollview.engine.binding import run_query
from rollview.propagate.choice import RefreshMode
from rollview.propagate.plan import MANY_CSNS, SMALL_DELTA_ROWS, PropagateStep, plan_propagate
from rollview.propagate.run import closed_in
from rollview.relations.ahead import Ahead
from rollview.relations.moved import ChangesOf, moved
from rollview.relations.plans import can_follow, check_told, high_water_mark, propagation_of
from rollview.relations.reader import Reader
from rollview.routing.few_rows import few_changes, few_groups
from rollview.store.folder import frame
from rollview.store.multiset import expand, net, signed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_STORED_ROWS = "_rv_stored"


class ResidualReader(Reader):
    """Reads views at csns past their marks as well. ``changes_of``: the ledger's counts of a table's changes."""

    def __init__(self, spark: SparkSession, root: Path, snapshot: Snapshot, changes_of: ChangesOf) -> None:
        super().__init__(spark, root, snapshot)
        self._changes_of = changes_of

    def rows(self, name: str, at: Csn) -> DataFrame:
        if not self._is_behind(name, at):
            return super().rows(name, at)
        plan, mark = self.plan(name), self._mark(name)
        if not self._moves(name, at):
            return super().rows(name, mark)
        if not self._can_follow(name, at):
            seen = self.seen_by(name)
            return self.evaluate(name, lambda lower: seen.rows(lower, at))
        schema = self.snapshot.get(name).schema
        if plan.summary is not None:
            few = self._few_groups(name, at)
            if few is not None:
                return frame(self.spark, few.extent, schema)
            return run_query(self.spark, plan.visible(_STORED_ROWS), {_STORED_ROWS: self._many_groups(name, at)})
        return self._moved_on(super().rows(name, mark), self._since(name, at), schema)

    def groups(self, name: str, at: Csn) -> DataFrame:
        if not self._is_behind(name, at):
            return super().groups(name, at)
        summary = self.plan(name).summary
        assert summary is not None
        if not self._moves(name, at):
            return super().groups(name, self._mark(name))
        if not self._can_follow(name, at):
            return self.groups_anew(name, at)
        few = self._few_groups(name, at)
        return self._many_groups(name, at) if few is None else frame(self.spark, few.groups, summary.schema)

    def _few_groups(self, name: str, at: Csn) -> Ahead | None:
        step = self._step(name, Interval(self._mark(name), at))
        return None if step is None else few_groups(self, step)

    def _many_groups(self, name: str, at: Csn) -> DataFrame:
        held, summary = super().groups(name, self._mark(name)), self.plan(name).summary
        assert summary is not None
        return self._moved_on(held, self._since(name, at, held), summary.schema)

    def groups_anew(self, name: str, at: Csn) -> DataFrame:
        """A summary view's groups from the rows of what it reads."""
        return self.run_at(self.plan(name).first_groups(), at)

    def changes(self, name: str, interval: Interval) -> DataFrame:
        """Visible changes; the ones past the mark are computed."""
        mark = self._mark(name)
        if interval.through <= mark:
            return super().changes(name, interval)
        plan, since = self.plan(name), self._since(name, interval.through)
        if plan.summary is not None:
            since = run_query(self.spark, plan.visible(_STORED_ROWS, (COUNT, CSN)), {_STORED_ROWS: since})
        if interval.after >= mark:
            return since.where(since[CSN] > interval.after)
        return super().changes(name, Interval(interval.after, mark)).unionAll(since)

    def _mark(self, name: str) -> Csn:
        return high_water_mark(self.snapshot, self.snapshot.get(name))

    def _can_follow(self, name: str, at: Csn) -> bool:
        return can_follow(self.snapshot, self.snapshot.get(name), at)

    def _is_behind(self, name: str, at: Csn) -> bool:
        relation = self.snapshot.get(name)
        is_behind = relation.kind is RelationKind.VIEW and at > self._mark(name)
        if is_behind:
            check_told(self.snapshot, (name,), at, f"Cannot compute view '{name}' at csn {at}")
        return is_behind

    def _moves(self, name: str, at: Csn) -> bool:
        """Whether a table below the view changed since its mark."""
        since = Interval(self._mark(name), at)
        tables = self.snapshot.tables_below(self.snapshot.get(name))
        return any(self._changes_of(table, since) for table in tables)

    def _since(self, name: str, at: Csn, groups: DataFrame | None = None) -> DataFrame:
        """The timed delta of what is stored of the view, from its mark on. ``groups``: of a summary view, there."""
        plan, since = self.plan(name), Interval(self._mark(name), at)
        step = self._step(name, since)
        few = None if step is None else few_changes(self, step)
        if few is not None:
            return frame(self.spark, few, self.stored(name).folder("delta").schema)
        query, small = self._refreshing(name, step) or self._through_views(name, since)
        if plan.summary is None:
            return self.seen_by(name).run(query, since, small=small)
        held = super().groups(name, since.after) if groups is None else groups
        return self.seen_by(name).run(query, since, {GROUPS: held}, small=small)

    def _refreshing(self, name: str, step: PropagateStep | None) -> tuple[Propagation, bool] | None:
        """The query that a refresh would run; None where one step of it does not come that far."""
        if step is None:
            return None
        closed = closed_in(self, step)
        return propagation_of(self.plan(name), step.circumstances(ahead=False, closed=closed)), step.small

    def _step(self, name: str, since: Interval) -> PropagateStep | None:
        """The step of a refresh that comes that far by deltas, if one does."""
        asked = (self.snapshot, self.root, name, since.through, self._changes_of, tuple)
        step = plan_propagate(*asked, mode=RefreshMode.INCREMENTAL, applied_next=True)
        if step is None or step.interval != since or step.mode is Mode.WHOLE or step.merged:
            return None
        return step

    def _through_views(self, name: str, since: Interval) -> tuple[Propagation, bool]:
        """Where a view below is behind as well, and its changes are computed on the way."""
        plan, below = self.plan(name), self.snapshot.get(name).depends_on
        motion = {lower: self._motion(lower, since) for lower in below if lower in plan.moved_by}
        small = sum(size for _, size in motion.values()) <= SMALL_DELTA_ROWS
        many = plan.groups_states and since.through - since.after >= MANY_CSNS
        return plan.propagation({lower: one for lower, (one, _) in motion.items()}, small=small, many=many), small

    def _motion(self, lower: str, since: Interval) -> tuple[Motion, int]:
        relation = self.snapshot.get(lower)
        if relation.kind is RelationKind.VIEW and self._is_behind(lower, since.through):
            return Motion(changed=self._moves(lower, since.through)), SMALL_DELTA_ROWS + 1
        found = moved(self.snapshot, relation, self.root, since, self._changes_of)
        return found.motion, found.rows

    @staticmethod
    def _moved_on(state: DataFrame, since: DataFrame, schema: Schema) -> DataFrame:
        return expand(net(signed(state).unionAll(since.drop(CSN)), schema), schema)
