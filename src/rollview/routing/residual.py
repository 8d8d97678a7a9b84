"""Views at csns that they have not reached: what is stored of them and what came since, as one query.

Law: V@t = V@mark + ΔV(mark, t], by the same propagation that a refresh runs; nothing is written. Where nothing below
the view changed since its mark, its stored rows are its rows.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rollview.algebra.script import Motion
from rollview.algebra.summary import GROUPS
from rollview.algebra.view import Mode
from rollview.catalog import RelationKind, Snapshot
from rollview.core.interval import Csn, Interval
from rollview.core.names import COUNT, CSN
from rollview.core.schema import Schema
from rollview.engine.binding import run_query
from rollview.propagate.moved import ChangesOf, moved
from rollview.propagate.plan import MANY_CSNS, SMALL_DELTA_ROWS
from rollview.relations.plans import high_water_mark
from rollview.relations.reader import Reader
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
        if not self.can_follow(name, at):
            seen = self.seen_by(name)
            return self.evaluate(name, lambda lower: seen.rows(lower, at))
        if plan.summary is not None:
            return run_query(self.spark, plan.visible(_STORED_ROWS), {_STORED_ROWS: self.groups(name, at)})
        schema = self.snapshot.get(name).schema
        return self._moved_on(super().rows(name, mark), self._since(name, at), schema)

    def groups(self, name: str, at: Csn) -> DataFrame:
        if not self._is_behind(name, at):
            return super().groups(name, at)
        mark, summary = self._mark(name), self.plan(name).summary
        assert summary is not None
        held = super().groups(name, mark)
        return self._moved_on(held, self._since(name, at), summary.schema) if self._moves(name, at) else held

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

    def can_follow(self, name: str, at: Csn) -> bool:
        """Whether the view's changes since its mark follow from those of what it reads, without its rows being anew."""
        relation, plan, since = self.snapshot.get(name), self.plan(name), Interval(self._mark(name), at)
        below = [self.snapshot.get(lower) for lower in relation.depends_on]
        return plan.mode is not Mode.WHOLE and all(
            lower.is_kept
            and lower.readable_from <= since.after
            and not any(csn in since for csn in lower.replaced)
            and (
                lower.kind is RelationKind.TABLE
                or not self._is_behind(lower.name, at)
                or self.can_follow(lower.name, at)
            )
            for lower in below
        )

    def _mark(self, name: str) -> Csn:
        return high_water_mark(self.snapshot, self.snapshot.get(name))

    def _is_behind(self, name: str, at: Csn) -> bool:
        return at > self._mark(name)

    def _moves(self, name: str, at: Csn) -> bool:
        """Whether a table below the view changed since its mark."""
        since = Interval(self._mark(name), at)
        tables = self.snapshot.tables_below(self.snapshot.get(name))
        return any(self._changes_of(table, since) for table in tables)

    def _since(self, name: str, at: Csn) -> DataFrame:
        """The timed delta of what is stored of the view, from its mark on."""
        plan, since = self.plan(name), Interval(self._mark(name), at)
        motion = {
            lower: self._motion(lower, since) for lower in self.snapshot.get(name).depends_on if lower in plan.moved_by
        }
        rows = sum(size for _, size in motion.values())
        small, many = rows <= SMALL_DELTA_ROWS, plan.groups_states and at - since.after >= MANY_CSNS
        query = plan.propagation({lower: one for lower, (one, _) in motion.items()}, small=small, many=many)
        held = {} if plan.summary is None else {GROUPS: super().groups(name, since.after)}
        return self.seen_by(name).run(query, since, held, small=small)

    def _motion(self, lower: str, since: Interval) -> tuple[Motion, int]:
        relation = self.snapshot.get(lower)
        if relation.kind is RelationKind.VIEW and self._is_behind(lower, since.through):
            return Motion(changed=self._moves(lower, since.through)), SMALL_DELTA_ROWS + 1
        found = moved(self.snapshot, relation, self.root, since, self._changes_of)
        return found.motion, found.rows

    @staticmethod
    def _moved_on(state: DataFrame, since: DataFrame, schema: Schema) -> DataFrame:
        return expand(net(signed(state).unionAll(since.drop(CSN)), schema), schema)
