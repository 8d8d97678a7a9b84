"""The warehouse: tables, views and their history in one folder and one catalog.

Law: every method is one request of a user and one call of the room that does it; what it returns is a frozen value or a
Spark DataFrame. Spark starts when a request first needs it, so that status, explain and lists answer at once.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self

from rollview import capture, lab, publish, query, relations, results, routing, sql, subscribers
from rollview import schedule as scheduling
from rollview.catalog import Catalog, Snapshot, SourcePosition
from rollview.core import durable
from rollview.core.interval import Csn, Interval
from rollview.core.order import Order
from rollview.core.substitutes import Substitute
from rollview.errors import AlreadyExists, NotFound, RollviewError
from rollview.publish.workplace import Workplace
from rollview.relations.policies import Policies

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from rollview.query.reading import RowsRead
    from rollview.relations.cadence import Words
    from rollview.relations.points import Point
    from rollview.sources.settings import SourceSettings
    from rollview.subscribers.batch import ChangeBatch
    from rollview.tables import Transaction

CATALOG_FILE = "catalog.db"
DATA_FOLDER = "data"

OnProgress = Callable[["results.Progress"], None]


class Warehouse:
    def __init__(
        self,
        root: Path,
        catalog: Catalog,
        spark: SparkSession | None,
        conf: Mapping[str, str],
        order: Order | None = None,
        policies: Policies | None = None,
        parallel: int = 1,
        substitutes: Sequence[Substitute] = (),
    ) -> None:
        self.root = root
        given = (spark, conf, order or Order(), policies or Policies())
        self._place = Workplace(
            root / DATA_FOLDER,
            catalog,
            *given,
            lambda place: scheduling.ViewsInCommits(place, place.policies, _resume_stopped),
            parallel,
            substitutes,
        )

    @classmethod
    def create(cls, root: str | os.PathLike[str], catalog_url: str | None = None) -> Warehouse:
        """A new, empty warehouse in a folder of its own."""
        place = Path(root).absolute()
        data = place / DATA_FOLDER
        # An empty one is of a process that was cut off before the warehouse had a catalog.
        if data.exists() and not (data.is_dir() and not any(data.iterdir())):
            raise AlreadyExists("warehouse", str(place))
        # Rows of databases that not everybody may read: others are let in by whoever owns the folder.
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Before the catalog: with both of them the warehouse can be opened, wherever the process is cut off then.
        data.mkdir(mode=0o700, exist_ok=True)
        durable.sync([place])
        warehouse = cls(place, Catalog.create(catalog_url or place / CATALOG_FILE), None, {})
        warehouse._place.check()
        return warehouse

    @classmethod
    def open(
        cls,
        root: str | os.PathLike[str],
        catalog_url: str | None = None,
        spark: SparkSession | None = None,
        conf: Mapping[str, str] | None = None,
        order: Order | None = None,
        policies: Policies | None = None,
        parallel: int = 1,
        substitutes: Sequence[Substitute] = (),
    ) -> Warehouse:
        """An existing warehouse. ``spark``: your own session; without it one is started when needed, with ``conf``.
        ``order``: that of commits of several sources, by arrival if it says nothing else. ``policies``: of views that
        name none themselves; ``dpda`` if it says nothing else. ``parallel``: how many threads refresh views.
        ``substitutes``: tables that may stand for others in views when those are gone."""
        place = _existing(root)
        given = (spark, conf or {}, order, policies, parallel, substitutes)
        warehouse = cls(place, Catalog.open(catalog_url or place / CATALOG_FILE), *given)
        try:
            warehouse._place.check()
        except BaseException:
            warehouse.close()
            raise
        return warehouse

    @classmethod
    def recover(
        cls,
        root: str | os.PathLike[str],
        catalog_url: str | None = None,
        *,
        accept_catalog: bool = False,
        accept_clock: bool = False,
    ) -> results.CatalogRecovery:
        """Whether a warehouse's catalog and data belong together, also where ``open`` refuses them.

        ``accept_catalog``: go on from a catalog that is older than the data, as it is after a backup was restored.
        ``accept_clock``: the clock is right, although it is more than a day ahead of another.
        """
        place = _existing(root)
        with Catalog.open(catalog_url or place / CATALOG_FILE) as catalog:
            do = publish.accept_catalog if accept_catalog else publish.look_at_catalog
            found = do(catalog, place / DATA_FOLDER)
            return replace(found, accepted_time=catalog.accept_clock()) if accept_clock else found

    def close(self) -> None:
        """Let go of the catalog. A Spark session stays: it belongs to the process."""
        self.catalog.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def catalog(self) -> Catalog:
        return self._place.catalog

    @property
    def spark(self) -> SparkSession:
        return self._place.spark

    def snapshot(self) -> Snapshot:
        return self.catalog.snapshot()

    # Statements

    def sql(self, *statements: str, allow_unsafe: bool = False) -> tuple[results.StatementResult, ...]:
        """Run statements in order. Neighbouring INSERT, UPDATE, DELETE and MERGE are one transaction.

        An error's fact ``done`` names the statements before it that stay done. ``allow_unsafe``: statements may call
        Java, run programs and read files outside the warehouse; views never.
        """
        return sql.run_statements(self._place, statements, allow_unsafe=allow_unsafe)

    def transaction(self, *, allow_unsafe: bool = False) -> AbstractContextManager[Transaction]:
        """Changes to several tables, committed together when the block ends without an error (or by ``commit``).

        ``allow_unsafe``: as for ``sql``.
        """
        return sql.transaction(self._place, allow_unsafe=allow_unsafe)

    def drop_table(self, name: str) -> None:
        """``DROP TABLE``: refused while a foreign key, or a view that says ``stop``, needs the table."""
        sql.drop_table(self._place, name)

    # Views

    def create_view(self, text: str) -> results.ViewCreated:
        """``CREATE [OR REPLACE] MATERIALIZED VIEW …``."""
        return sql.create_view(self._place, text)

    def set_view(self, name: str, properties: Mapping[str, str]) -> results.ViewSet:
        """``ALTER MATERIALIZED VIEW … SET TBLPROPERTIES``: nothing is rebuilt. An empty value removes a property."""
        return sql.set_view(self._place, name, properties)

    def view_log(self, name: str) -> results.ViewLog:
        """The definitions that a view has had, from which csn on, and why."""
        return query.view_log(self.catalog, name)

    def view_changes(self, name: str) -> results.ViewChanges:
        """What can be decided for a view that a schema change stopped: other definitions, their rows and their cost."""
        return sql.view_changes(self._place, name)

    def decide_view(self, name: str, number: int) -> results.ViewDecided:
        """Take one of them. It counts from the csn of the change on; ``refresh`` brings the view over it."""
        return sql.decide_view(self._place, name, number)

    def drop_view(self, name: str) -> None:
        """``DROP MATERIALIZED VIEW``: refused while another view reads it."""
        sql.drop_view(self._place, name)

    def refresh(
        self,
        select: Sequence[str] = (),
        to: Point | None = None,
        mode: str | None = None,
        on_progress: OnProgress | None = None,
        workers: int | None = None,
    ) -> results.Refreshed:
        """Propagate and apply.

        ``mode``: ``auto`` (the cheaper one, losing no csn), ``incremental`` (refuse to recompute) or ``recompute``; by
        default what the view's property ``rollview.refresh_mode`` says, else ``auto``. ``workers``: how many threads
        work on views that do not read each other; by default as many as the warehouse was opened with.
        """
        return scheduling.refresh_views(self._place, select, to, mode, on_progress, workers=workers)

    def propagate(
        self, select: Sequence[str] = (), to: Point | None = None, on_progress: OnProgress | None = None
    ) -> results.Refreshed:
        """Make the view deltas only; the extents stay where they are."""
        return scheduling.refresh_views(self._place, select, to, None, on_progress, apply=False)

    def roll(self, names: Sequence[str], to: Point, on_progress: OnProgress | None = None) -> results.Rolled:
        """Bring extents to one csn, forwards or back, and publish them together."""
        return scheduling.roll_views(self._place, names, to, on_progress)

    # Space

    def maintain(
        self,
        select: Sequence[str] = (),
        *,
        explain: bool = False,
        retention: str | Mapping[str, str] | None = None,
        detail: str | Mapping[str, str] | None = None,
        prune_before: Point | None = None,
        compress_before: Point | None = None,
        overtake: Sequence[str] = (),
        grace: timedelta = timedelta(hours=1),
        on_progress: OnProgress | None = None,
    ) -> results.Maintained:
        """Do what saves space, or only say so. Without a setting or a csn, every csn stays in reach.

        ``retention`` and ``detail``: how long changes are kept, and kept commit by commit (``30 days``, ``1000
        commits``). ``overtake``: subscribers that hold nothing back this time, and may be out of reach after it.
        ``grace``: how long a file that is out of use may still be read by somebody.
        """
        return scheduling.maintain_relations(
            self._place,
            select,
            explain=explain,
            retention=retention,
            detail=detail,
            prune_before=prune_before,
            compress_before=compress_before,
            overtake=overtake,
            grace=grace,
            on_progress=on_progress,
        )

    # Sources

    def check_source(self, name: str, settings: SourceSettings | None = None) -> results.SourceChecked:
        """What is missing, and the statements that repair it. Changes nothing. Without settings: a known source."""
        return capture.check_source(self._place, name, settings)

    def add_source(
        self,
        name: str,
        settings: SourceSettings,
        on_progress: OnProgress | None = None,
        declared: Sequence[str] = (),
    ) -> results.SourceAdded:
        """Capture the source's tables from now on, beginning with a copy at one position.

        ``declared``: SQL of views that are to come, for tables of which only what views need is copied.
        """
        return capture.add_source(self._place, name, settings, on_progress, declared)

    def sources(self) -> tuple[results.SourceStatus, ...]:
        """Where each source stands."""
        return query.sources(self.catalog)

    def quarantine(self, name: str) -> results.SourceQuarantine:
        """Rows of a source that have no representation here."""
        return query.quarantine(self.catalog, name)

    def capture(self, names: Sequence[str] = ()) -> results.Captured:
        """Take in what the sources have committed; all of them without names. One that fails stops no other."""
        return capture.capture_sources(self._place, names)

    def alter_source(self, name: str, statement: str) -> results.SourceCaptured:
        """Run an ALTER TABLE at a source where what capture put there would block it (SQLite), and capture it."""
        return capture.alter_source(self._place, name, statement)

    def say_rename(self, table: str, old: str, new: str) -> None:
        """Before files of a captured table show a column under another name: that it is the same column."""
        capture.say_rename(self._place, table, old, new)

    def held(self) -> tuple[results.HeldTransaction, ...]:
        """Global transactions whose parts have not all come, oldest first."""
        return query.held(self.catalog)

    def decide(self, global_id: str, choice: Literal["wait", "release"]) -> results.Decided:
        """Let a global transaction wait on for its missing parts, or go without them; the choice is recorded."""
        return capture.decide(self._place, global_id, choice)

    def run(
        self,
        interval: float,
        stop: threading.Event,
        rounds: int | None = None,
        schedule: Words = None,
        propagate: Words = None,
    ) -> Iterator[results.Captured | results.Refreshed | results.Delivered | RollviewError]:
        """Capture, refresh and deliver as each source and view asks until ``stop`` is set; what was done, and what went
        wrong.

        ``schedule``: their cadences in words, for one or by name; ``propagate``: those of views that are propagated by
        themselves as well; ``interval``: seconds, for those that have none.
        ``rounds``: everything so many times, whatever its cadence.
        """
        return scheduling.run_until(self._place, interval, stop, rounds, schedule, propagate)

    def resnapshot(
        self, name: str, *, widen: bool = False, settings: SourceSettings | None = None
    ) -> results.SourceCaptured:
        """Copy a source again; the difference becomes one unit of work. ``widen``: take more of its columns, those that
        ``settings`` name, or all."""
        return capture.resnapshot(self._place, name, widen=widen, settings=settings)

    def remove_source(self, name: str, *, forget: bool = False) -> None:
        """Drop the source's tables and whatever capture put into the source; with ``forget`` leave the source alone."""
        capture.remove_source(self._place, name, forget=forget)

    # Subscribers

    def add_subscriber(
        self, name: str, view: str, from_: Csn | Literal["start", "now"] = "start", to: str | None = None
    ) -> results.SubscriberStatus:
        """Hand out the changes of a view, and keep them until they are acknowledged.

        ``from_``: ``start`` is all rows at the oldest csn in reach, then changes; a csn, changes after it; ``now``,
        later changes. ``to``: a folder, or the URL of a server, with a secret as ``env:NAME`` or ``file:PATH``; without
        it the subscriber pulls.
        """
        sink = None if to is None else subscribers.anchored(to, Path.cwd())
        return subscribers.add(self._place, name, view, from_, sink)

    def subscribers(self, name: str | None = None) -> tuple[results.SubscriberStatus, ...]:
        """Where each subscriber stands, or the named one."""
        return subscribers.status(self.catalog, name)

    def batches(
        self, name: str, stored: Csn | None = None, wait: float = 0.0, most_rows: int = 10_000
    ) -> Iterator[ChangeBatch]:
        """The subscriber's batches, one after another, until none comes within ``wait`` seconds.

        A batch is acknowledged when the next one is asked for, so store its rows and its ``through`` together first.
        ``stored``: the csn that was stored last; it is acknowledged before the first batch. A batch ends after the
        commit with which it has ``most_rows`` rows.
        """
        return subscribers.batches(self._place, name, stored, wait, most_rows)

    def pull(self, name: str, wait: float = 0.0, most_rows: int = 10_000) -> ChangeBatch | None:
        """The subscriber's next batch; the same one again until it is acknowledged. None if none comes in time."""
        return subscribers.pull(self._place, name, wait, most_rows)

    def ack(self, name: str, csn: Csn, *, full: bool = False) -> results.Acknowledged:
        """The subscriber has stored everything up to the csn; idempotent, and an earlier csn changes nothing.

        ``full``: all rows at that csn, which come first after ``start`` and ``resync_subscriber``.
        """
        return subscribers.acknowledge(self._place, name, csn, full=full)

    def deliver(self, names: Sequence[str] = ()) -> results.Delivered:
        """Bring changes to the subscribers that have an address; one that fails stops no other."""
        return subscribers.deliver(self._place, names)

    def resync_subscriber(self, name: str) -> results.SubscriberStatus:
        """Begin anew: all rows of the view at one csn come next, then changes."""
        return subscribers.resync(self._place, name)

    def remove_subscriber(self, name: str) -> None:
        """It holds nothing back any more; what it was given stays where it is."""
        subscribers.remove(self._place, name)

    # Questions

    def query(
        self,
        text: str,
        *,
        as_of: Point | None = None,
        max_staleness: str | None = None,
        rewrite: Literal["auto", "off", "require"] = "auto",
        explain: bool = False,
    ) -> results.Answer:
        """A SELECT at one csn, from tables or from whatever views answer it more cheaply.

        ``as_of``: a csn or moment; ``max_staleness``: how old the answer may be (``5 minutes``, ``10 commits``); with
        neither, the newest csn. ``rewrite``: whether views may answer that the text does not name. ``explain``: tell
        how, without rows and without Spark.
        """
        bound = None if max_staleness is None else routing.staleness(max_staleness)
        do = routing.explain if explain else routing.ask
        return do(self._place, text, as_of=as_of, max_staleness=bound, rewrite=rewrite)

    def read(self, name: str, as_of: Point | None = None) -> DataFrame:
        """A table or view at a csn or moment; without one, a view's extent as published and a table as it is now."""
        return query.read(self._place, name, as_of).frame

    def read_labelled(self, name: str, as_of: Point | None = None) -> RowsRead:
        """The same, with how far each table is in the rows of a view that is weakly consistent."""
        return query.read(self._place, name, as_of)

    def delta(self, name: str, after: Point, through: Point | None = None) -> DataFrame:
        """The changes of a table or view over ``(after, through]``, with ``_count`` and ``_csn``."""
        return query.delta(self._place, name, after, through)

    def layouts_over(self, name: str, after: Point, through: Point = "latest") -> tuple[Interval, ...]:
        """``(after, through]``, cut so that a view has one definition, and one set of columns, over each piece."""
        return query.layouts_over(self._place, name, after, through)

    def explain(self, name: str) -> results.Explanation:
        """How a view is maintained, operator by operator, and the query that propagates."""
        return query.explain_view(self._place, name)

    def draw(self, name: str) -> str:
        """A picture of how changes came to a view, as SVG: what each step since its first rows joined with what."""
        return lab.draw_view(self.catalog, self.snapshot(), name)

    def explain_replace(self, name: str, *texts: str) -> results.ReplacementPlan:
        """How the view would get its new rows by ``CREATE OR REPLACE MATERIALIZED VIEW``, which is among the texts."""
        return sql.explain_replace(self._place, name, texts)

    def verify(self, name: str, at: Point | None = None, *, ask_sources: bool = False) -> results.Verification:
        """Compare a view with its definition recomputed from the base tables, at its own csn or another in reach.

        ``ask_sources``: tables that are not copied are read once, whole, at their sources.
        """
        return query.verify_view(self._place, name, at, ask_sources=ask_sources)

    def check_history(
        self,
        name: str,
        after: Point | None = None,
        through: Point | None = None,
        tell: Callable[[str], None] | None = None,
        *,
        published: bool = False,
        ask_sources: bool = False,
    ) -> results.HistoryJudged:
        """Compare a view with its definition at every csn that changed either, and judge how consistent it was.

        ``published``: judge the versions that readers got, in their order, and not all that can be read.
        ``ask_sources``: tables that are not copied are read once, whole, at their sources.
        """
        return query.check_history(self._place, name, query.HistoryWish(after, through, published, ask_sources), tell)

    def status(self) -> results.Status:
        """Where every table, view and source stands."""
        return query.warehouse_status(self.catalog, self._place.policies)

    def schema_log(self, name: str | None = None) -> results.SchemaLog:
        """The columns that tables and views have had; an entry holds at csn t if since <= t < until."""
        return query.schema_log(self.catalog, name)

    def schema_at(self, name: str, at: Point = "latest") -> results.SchemaAt:
        """The columns of the table or view that had this name at a csn or moment."""
        return query.schema_at(self.catalog, name, at)

    def valid_time(self, name: str) -> results.ValidTime:
        """For how long the rows that are published are what the table or view is, told by commit times."""
        return relations.valid_time(self.catalog, self._place.data, self.snapshot(), name)

    def resolve(self, point: Point, *names: str) -> Csn:
        """The csn that a point means. ``latest`` is the newest, or as far as all of the named relations are complete; a
        moment is that moment at every source that they read."""
        return relations.resolve(self.catalog, point, *names)

    def positions(self, at: Point = "latest") -> tuple[SourcePosition, ...]:
        """For each source, the position up to which its units of work are in a csn."""
        return self.catalog.positions(self.resolve(at))


def _resume_stopped(place: Workplace, names: Collection[str]) -> None:
    sql.resume_stopped(place, names)


def _existing(root: str | os.PathLike[str]) -> Path:
    place = Path(root).absolute()
    if not (place / DATA_FOLDER).is_dir():
        raise NotFound("warehouse", str(place), hint="Create one with: rollview init, or Warehouse.create().")
    return place
