"""All relations as of one catalog snapshot: their rows, signed states and changes at any csn in reach.

Law: what a view shows is a projection and selection of what it stores, so a summary view's visible rows and changes
are read off its groups; a base table and a view then look the same to whoever reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pyarrow as pa
from pyspark.sql import functions as sf

from rollview.algebra.script import DELTA_SUFFIX, TIMED_SUFFIX, InputForm
from rollview.algebra.stages import stages
from rollview.algebra.summary import FEW_GROUPS
from rollview.algebra.view import ROWS_SUFFIX, AuthorsQuery, Propagation, ViewPlan
from rollview.catalog import Part, Relation, RelationKind, Snapshot
from rollview.core.interval import Csn, Interval
from rollview.core.names import COUNT, CSN
from rollview.core.phases import phase
from rollview.core.schema import SIGNED, Schema
from rollview.engine.binding import Prepared, prepare, prepare_words, run_query
from rollview.engine.meter import Meter
from rollview.errors import OutOfReach
from rollview.relations.former import as_in_files, read_tables
from rollview.relations.plans import check_reachable, covered, plan_of
from rollview.relations.shared import changes_from
from rollview.relations.versions import began_anew, carried, check_defined
from rollview.store import timed
from rollview.store.folder import DeltaFolder, frame
from rollview.store.multiset import col, expand, net, net_by_csn, separate, signed
from rollview.store.timed import Stored
from rollview.store.writing import named_failures

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_STORED_ROWS = "_rv_stored"
_IN_ONE_PIECE = (DELTA_SUFFIX, TIMED_SUFFIX)
MOST_FILES = 100
"""Few rows in more files than this are read by Spark: opening a file takes its time."""


def stored_as(root: Path, relation: Relation, hidden: Schema | None = None) -> Stored:
    """``hidden``: read the stored groups rather than the extent."""
    pins = {part.value: pin for part, pin in relation.pins.items()}
    about = (relation.source, relation.replaced)
    return Stored(relation.name, relation.schema, root / relation.folder, pins, hidden, *about)


@dataclass(frozen=True, slots=True)
class StandIn:
    """What was asked for in place of a table's state at one csn: rows with ``_count``, and once each those in the files
    of a folder. ``moves``: it is the whole table, and is taken to other csns by what is captured."""

    at: Csn
    rows: pa.Table
    place: Path | None = None
    moves: bool = False

    def signed(self, spark: SparkSession, schema: Schema) -> DataFrame:
        few = frame(spark, self.rows, Schema((*schema.columns, SIGNED[0])))
        if self.place is None:
            return few
        rows = signed(DeltaFolder(self.place, schema).read_folder(spark, self.place))
        return rows.unionAll(few) if self.rows.num_rows else rows


def changed_rows(snapshot: Snapshot, root: Path, view: Relation, interval: Interval) -> int:
    """At most so many rows of a view's own changes lie in the interval, over all of its definitions."""
    snapshot, view = snapshot.at(interval.through), view.at(interval.through)
    since = began_anew(view)
    if since is None or since <= interval.after:
        files = timed.delta_files(stored_as(root, view, plan_of(snapshot, view).hidden), interval)
        return sum(file.rows for file in files)
    before = changed_rows(snapshot, root, view, Interval(interval.after, since - 1))
    after = changed_rows(snapshot, root, view, Interval(since, interval.through))
    return before + view.pins[Part.BRIDGE].rows + after


class Reader:
    """``stand_ins``: by table, what is read where its own state would be."""

    def __init__(
        self,
        spark: SparkSession,
        root: Path,
        snapshot: Snapshot,
        meter: Meter | None = None,
        stand_ins: Mapping[str, StandIn] | None = None,
    ) -> None:
        self.spark = spark
        self.root = root
        self.snapshot = snapshot
        self.meter = meter or Meter()
        self.stand_ins = stand_ins or {}
        self._seen: Mapping[str, Relation] = {}
        self._intervals: Mapping[str, Interval] = {}

    def seen_by(self, view: str | Relation) -> Self:
        """The same, with tables in the columns and names by which a view knows them."""
        seen = read_tables(self.snapshot, self.snapshot.get(view) if isinstance(view, str) else view)
        if seen == self._seen:
            return self
        found = copy(self)
        found._seen = seen
        return found

    def over(self, intervals: Mapping[str, Interval]) -> Self:
        """The same for queries that read relations over intervals of their own."""
        found = copy(self)
        found._intervals = intervals
        return found

    def interval_of(self, name: str, interval: Interval) -> Interval:
        """Over which a query for the interval reads the relation."""
        return self._intervals.get(name, interval)

    def metered(self, meter: Meter) -> Self:
        """The same, with what it costs counted elsewhere."""
        found = copy(self)
        found.meter = meter
        return found

    def by(self, spark: SparkSession) -> Self:
        """The same, with another session of the same Spark."""
        found = copy(self)
        found.spark = spark
        return found

    def plan(self, name: str) -> ViewPlan:
        return plan_of(self.snapshot, self.snapshot.get(name))

    def stored(self, name: str) -> Stored:
        """The relation as its delta tells it: a summary view by its groups."""
        relation = self._relation(name)
        hidden = self.plan(name).hidden if relation.kind is RelationKind.VIEW else None
        return stored_as(self.root, relation, hidden)

    def _relation(self, name: str) -> Relation:
        relation = self.snapshot.get(name)
        return self._seen.get(relation.name, relation)

    def as_of(self, csn: Csn) -> Reader:
        """The same with views as they are defined at a csn."""
        then = self.snapshot.at(csn)
        if then is self.snapshot:
            return self
        found = Reader(self.spark, self.root, then, self.meter, self.stand_ins)
        found._seen = self._seen
        return found

    def rows(self, name: str, at: Csn) -> DataFrame:
        """The plain rows at a csn, in the columns of that csn."""
        asked = self._asked_rows(name, at)
        if asked is not None:
            schema = self.snapshot.get(name).schema
            return expand(net(asked, schema, apart=True), schema)
        check_reachable(self.snapshot, self._relation(name), at)
        return self.as_of(at)._rows(name, at)

    def _rows(self, name: str, at: Csn) -> DataFrame:
        relation = self._relation(name)
        if relation.kind is RelationKind.TABLE:
            stored = stored_as(self.root, as_in_files(relation))
            return _typed(timed.rows(self.spark, stored, at, _row_key(relation)), relation)
        extent, told_by = relation.pins[Part.EXTENT], changes_from(self.snapshot, relation)
        if told_by is not relation and extent.through != at:
            return self.rows(told_by.name, at)
        plan = self.plan(name)
        if plan.summary is None or extent.through == at:
            return timed.rows(self.spark, stored_as(self.root, relation), at)
        return run_query(self.spark, plan.visible(_STORED_ROWS), {_STORED_ROWS: self.groups(name, at)})

    def newest_rows(self, name: str) -> DataFrame:
        """The plain rows at the snapshot's own csn; a view that is not there yet is computed from its definition."""
        relation, at = self.snapshot.get(name), self.snapshot.moment.csn
        is_behind = relation.kind is RelationKind.VIEW and at > covered(self.snapshot, relation).through
        return self.recompute(relation.name, at) if is_behind else self.rows(relation.name, at)

    def few_rows(self, name: str, at: Csn, most: int) -> pa.Table | None:
        """A view's rows in this process, where they are stored as such and at most ``most`` have to be read."""
        check_reachable(self.snapshot, self.snapshot.get(name), at)
        return self.as_of(at)._few_rows(name, at, most)

    def _few_rows(self, name: str, at: Csn, most: int) -> pa.Table | None:
        relation = self.snapshot.get(name)
        stored, told_by = stored_as(self.root, relation), changes_from(self.snapshot, relation)
        if told_by is not relation and stored.snapshot_csn != at:
            return self.few_rows(told_by.name, at, most)
        if self.plan(name).summary is not None and timed.delta_files(stored, timed.way_to(stored, at).interval):
            return None
        return timed.few_rows(stored, at, most)

    def groups(self, name: str, at: Csn) -> DataFrame:
        """A summary view's groups at a csn."""
        summary, stored = self.plan(name).summary, self.stored(name)
        assert summary is not None
        few = timed.few_rows(stored, at, FEW_GROUPS)
        if few is not None:
            return frame(self.spark, few, stored.columns)
        return timed.rows(self.spark, stored, at, summary.keys)

    def changes(self, name: str, interval: Interval) -> DataFrame:
        """Visible changes with ``_count`` and ``_csn``, in the columns of the interval's end."""
        return self.as_of(interval.through)._changes(name, interval)

    def _changes(self, name: str, interval: Interval) -> DataFrame:
        since = began_anew(self.snapshot.get(name))
        if since is None or since <= interval.after:
            return self._told_changes(name, interval)
        view = self.snapshot.get(name)
        bridge = stored_as(self.root, view)
        come = bridge.folder(Part.BRIDGE).read(self.spark, bridge.files(Part.BRIDGE))
        if since < interval.through:
            come = come.unionAll(self._told_changes(name, Interval(since, interval.through)))
        if interval.after == since - 1:
            return come
        before = self.changes(name, Interval(interval.after, since - 1))
        return carried(before, view, COUNT, CSN).unionAll(come)

    def _told_changes(self, name: str, interval: Interval) -> DataFrame:
        told_by = changes_from(self.snapshot, self.snapshot.get(name))
        if told_by is not self.snapshot.get(name):
            return self._changes(told_by.name, interval)
        relation = self._relation(name)
        if relation.kind is RelationKind.TABLE:
            held = stored_as(self.root, as_in_files(relation))
            return _typed(timed.changes(self.spark, held, interval), relation, COUNT, CSN)
        stored = timed.changes(self.spark, self.stored(name), interval)
        if self.snapshot.get(name).places:
            # What changed at a csn may have come in several boxes.
            stored = net_by_csn(stored, self.stored(name).columns)
        if self.plan(name).summary is None:
            return stored
        query = self.plan(name).visible(_STORED_ROWS, (COUNT, CSN))
        return run_query(self.spark, query, {_STORED_ROWS: stored})

    def signed(self, name: str, at: Csn) -> DataFrame:
        """The state as rows with ``_count`` +1 or -1."""
        asked = self._asked_rows(name, at)
        if asked is not None:
            return asked
        relation = self._relation(name)
        if relation.kind is RelationKind.TABLE:
            return timed.signed_state(self.spark, stored_as(self.root, relation), at)
        return signed(self._rows_like_now(name, at))

    def _rows_like_now(self, name: str, at: Csn) -> DataFrame:
        """A view's rows at a csn in the columns of this reader's definition of it."""
        view = self.snapshot.get(name)
        since = began_anew(view)
        if since is not None and at < since:
            return carried(self.as_of(since - 1)._rows_like_now(name, at), view)
        check_reachable(self.snapshot, view, at)
        return self._rows(name, at)

    def unit_changes(self, name: str, interval: Interval) -> DataFrame:
        """Visible changes, every copy a row of its own: ``_count`` is +1 or -1."""
        changes = self.changes(name, interval)
        relation = self.snapshot.at(interval.through).get(name)
        if relation.kind is RelationKind.TABLE:
            return changes
        return separate(changes, relation.schema, sf.col(CSN))

    def few_timed_rows(self, name: str, interval: Interval) -> pa.Table | None:
        """A small table's rows at the interval's start, at csn 0, and its changes; None if Spark must read them."""
        if self.snapshot.get(name).kind is RelationKind.VIEW:
            return None
        asked = self._asked(name, interval.after)
        if asked is not None:
            return None if asked.place else timed.with_changes(asked.rows, self.stored(name), interval)
        return timed.few_timed_rows(self.stored(name), interval, MOST_FILES)

    def timed_rows(self, name: str, interval: Interval) -> DataFrame:
        """The same of any relation."""
        few = self.few_timed_rows(name, interval)
        if few is not None:
            return frame(self.spark, few, self.stored(name).folder("delta").schema)
        old = self.signed(name, interval.after).withColumn(CSN, sf.lit(0).cast("bigint"))
        return old.unionAll(self.unit_changes(name, interval))

    def _asked_rows(self, name: str, at: Csn) -> DataFrame | None:
        """Signed rows of what was asked for."""
        found, schema = self.stand_ins.get(name), self.snapshot.get(name).schema
        if found is not None and found.moves and found.at != at:
            between = Interval(min(at, found.at), max(at, found.at))
            sign = sf.lit(1 if at > found.at else -1)
            moved = self.changes(name, between).withColumn(COUNT, sign * sf.col(COUNT)).drop(CSN)
            return found.signed(self.spark, schema).unionByName(moved)
        asked = self._asked(name, at)
        return None if asked is None else asked.signed(self.spark, schema)

    def _asked(self, name: str, at: Csn) -> StandIn | None:
        found = self.stand_ins.get(name)
        if found is not None and found.at != at:
            raise OutOfReach(f"Table '{name}' was asked for at csn {found.at}, and not at {at}.", name=name, csn=at)
        return found

    @phase("prepare query")
    def run(
        self,
        propagation: Propagation,
        interval: Interval,
        more: Mapping[str, DataFrame] | None = None,
        *,
        small: bool = False,
    ) -> DataFrame:
        """A propagation query over the interval; ``name@rows`` is read at its end. ``small``: its deltas are few."""
        inputs = {f"{name}@{what}": self._input(name, what, interval) for name, what in sorted(propagation.inputs)}
        if small:
            inputs = {name: data.coalesce(1) if name.endswith(_IN_ONE_PIECE) else data for name, data in inputs.items()}
        return self._run(propagation, {**inputs, **(more or {})})

    @phase("prepare query")
    def run_at(self, propagation: Propagation, at: Csn) -> DataFrame:
        """A query over states at one csn. Their rows are plain, so a sum meets no row that has come and gone."""
        return self._run(propagation, self.plain_inputs(propagation.inputs, at))

    def plain_inputs(self, inputs: Collection[tuple[str, InputForm]], at: Csn) -> dict[str, DataFrame]:
        """States at one csn by the names that a query has for them."""
        return {f"{name}@{what}": self._plain(name, what, at) for name, what in sorted(inputs)}

    def _plain(self, name: str, what: InputForm, at: Csn) -> DataFrame:
        assert what != "delta"
        return self.rows(name, at) if what == "rows" else signed(self.rows(name, at))

    def _run(self, propagation: Propagation, known: dict[str, DataFrame]) -> DataFrame:
        *first, (_, last) = prepared(propagation, tuple(known))
        for name, stage in first:
            with named_failures("compute a stage"), self.meter.action("stage"), phase("Spark jobs"):
                known[name] = stage.run(self.spark, known).localCheckpoint()
        return last.run(self.spark, known)

    def _input(self, name: str, what: InputForm, interval: Interval) -> DataFrame:
        interval = self.interval_of(name, interval)
        if what == "delta":
            return self.unit_changes(name, interval)
        if what == "timed":
            return self.timed_rows(name, interval)
        return self.signed(name, interval.after) if what == "old" else self.rows(name, interval.through)

    def recompute(self, name: str, at: Csn) -> DataFrame:
        """A view's definition evaluated from base tables alone, whatever is stored of it or of the views below it."""
        relation = self.snapshot.get(name)
        if relation.kind is RelationKind.TABLE:
            return self.rows(name, at)
        check_defined(relation, at)
        then = self.as_of(at)
        seen = then.seen_by(name)
        return then.evaluate(name, lambda lower: seen.recompute(lower, at))

    def evaluate(self, name: str, read: Callable[[str], DataFrame]) -> DataFrame:
        """A view's definition over what ``read`` gives for each relation below it, tables as the view sees them."""
        below = {f"{lower}{ROWS_SUFFIX}": read(lower) for lower in self.snapshot.get(name).depends_on}
        return prepare_author(self.plan(name).author).run(self.spark, below)

    def called(self, name: str, rows: DataFrame) -> DataFrame:
        """A relation's rows as it is seen here; ``rows``: in its present columns."""
        if name not in self._seen:
            return rows
        present = {column.stored: column.name for column in self.snapshot.get(name).schema}
        return rows.select(*(col(present[c.stored]).alias(c.name) for c in self._seen[name].schema))


@lru_cache(maxsize=1024)
def prepared(propagation: Propagation, names: tuple[str, ...]) -> tuple[tuple[str, Prepared], ...]:
    """The query's stages: what later ones call the result, and the text over what is known by then."""
    if propagation.author is not None:
        return (("", prepare_author(propagation.author)),)
    known, written = list(names), []
    for stage in stages(propagation.query):
        written.append((stage.name or "", prepare(stage.query, known)))
        known.append(stage.name or "")
    return tuple(written)


def prepare_author(author: AuthorsQuery) -> Prepared:
    """A definition in its author's words, over ``name@rows``."""
    inputs = {name: name + ROWS_SUFFIX for name in author.columns}
    return prepare_words(author.words, inputs, author.columns, author.outputs)


def _typed(rows: DataFrame, table: Relation, *more: str) -> DataFrame:
    """A table's rows in the types that it has here."""
    if as_in_files(table) is table:
        return rows
    return rows.select(*(col(column.name).cast(column.type).alias(column.name) for column in table.schema), *more)


def _row_key(relation: Relation) -> tuple[str, ...]:
    return relation.constraints.primary_key
