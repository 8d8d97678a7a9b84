"""The warehouse: tables, views and their history in one folder and one catalog.

Law: every method is one request of a user; what it returns is a frozen value or a Spark DataFrame. Spark starts when
a request first needs it, so that status, explain and lists answer at once.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self

from sqlglot import exp

from rollview import results
from rollview.algebra.definition import Declared, declare, is_view_declaration, relation_name
from rollview.algebra.text import parse_statements, render
from rollview.catalog import Catalog, Part, Relation, RelationKind, Snapshot, SourcePosition
from rollview.core.interval import Csn, Interval
from rollview.core.order import Order
from rollview.errors import AlreadyExists, InUse, NotFound, RollviewError, SqlError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from rollview.propagate import RefreshMode
    from rollview.relations.reader import Reader
    from rollview.schedule import Refresh
    from rollview.schedule.cadence import Words
    from rollview.sources import SourceSettings
    from rollview.tables import Transaction

CATALOG_FILE = "catalog.db"
DATA_FOLDER = "data"

Point = Csn | datetime | Literal["latest"]
"""A csn, a moment (with its zone), or the newest csn."""


def _silent(progress: results.Progress) -> None:
    return None


class Warehouse:
    def __init__(
        self,
        root: Path,
        catalog: Catalog,
        spark: SparkSession | None,
        conf: Mapping[str, str],
        order: Order | None = None,
    ) -> None:
        self.root = root
        self.order = order or Order()
        self.catalog = catalog
        self._given = spark
        self._conf = conf
        self._session: SparkSession | None = None
        self._recovered = False

    @classmethod
    def create(cls, root: str | os.PathLike[str], catalog_url: str | None = None) -> Warehouse:
        """A new, empty warehouse in a folder of its own."""
        place = Path(root).absolute()
        if (place / DATA_FOLDER).exists():
            raise AlreadyExists("warehouse", str(place))
        place.mkdir(parents=True, exist_ok=True)
        catalog = Catalog.create(catalog_url or place / CATALOG_FILE)
        (place / DATA_FOLDER).mkdir()
        return cls(place, catalog, None, {})

    @classmethod
    def open(
        cls,
        root: str | os.PathLike[str],
        catalog_url: str | None = None,
        spark: SparkSession | None = None,
        conf: Mapping[str, str] | None = None,
        order: Order | None = None,
    ) -> Warehouse:
        """An existing warehouse. ``spark``: your own session; without it one is started when needed, with ``conf``.
        ``order``: that of commits of several sources, by arrival if it says nothing else."""
        place = Path(root).absolute()
        if not (place / DATA_FOLDER).is_dir():
            raise NotFound("warehouse", str(place), hint="Create one with: rollview init, or Warehouse.create().")
        return cls(place, Catalog.open(catalog_url or place / CATALOG_FILE), spark, conf or {}, order)

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
    def spark(self) -> SparkSession:
        from rollview.engine import session

        if self._session is None:
            self._session = session.adopt(self._given) if self._given is not None else session.start(self._conf)
        return self._session

    def snapshot(self) -> Snapshot:
        return self.catalog.snapshot()

    # Statements

    def sql(self, *statements: str) -> tuple[results.StatementResult, ...]:
        """Run statements in order. Neighbouring INSERT, UPDATE, DELETE and MERGE are one transaction.

        An error's fact ``done`` names the statements before it that stay done.
        """
        trees = [tree for text in statements for tree in parse_statements(text)]
        if not trees:
            raise SqlError("There is no statement in the text.")
        answers: list[results.StatementResult] = []
        for tree in _grouped(trees):
            with _telling(answers):
                self._refuse_missing(tree if isinstance(tree, list) else [tree])
                answers.extend(self._changes(tree) if isinstance(tree, list) else [self._statement(tree)])
        return tuple(answers)

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Changes to several tables, committed together when the block ends without an error (or by ``commit``)."""
        from rollview.tables import Transaction

        self._recover()
        transaction = Transaction(self.spark, self._data, self.catalog)
        try:
            yield transaction
        except BaseException:
            transaction.rollback()
            raise
        if transaction.is_open:
            transaction.commit()

    def drop_table(self, name: str) -> None:
        table = exp.Table(this=exp.to_identifier(name, quoted=True))
        self._statement(exp.Drop(tables=[table], kind="TABLE"))

    # Views

    def create_view(self, text: str) -> results.ViewCreated:
        """``CREATE [OR REPLACE] MATERIALIZED VIEW …``."""
        return self._create_view(declare(text))

    def drop_view(self, name: str) -> None:
        from rollview.publish.steps import drop, take_away

        self._recover()
        with self.catalog.lease("definitions", f"relation:{name}") as lease, self.catalog.write(lease) as writer:
            snapshot = writer.snapshot()
            view = _a_view(snapshot, name)
            readers = tuple(reader.name for reader in snapshot.readers(view.name))
            if readers:
                raise InUse("view", view.name, readers)
            step = drop(writer, view)
        take_away(self.catalog, self._data, view, step)

    def refresh(
        self,
        select: Sequence[str] = (),
        to: Point | None = None,
        mode: str | None = None,
        on_progress: Callable[[results.Progress], None] | None = None,
    ) -> results.Refreshed:
        """Propagate and apply.

        ``mode``: ``auto`` (the cheaper one, losing no csn), ``incremental`` (refuse to recompute) or ``recompute``; by
        default what the view's property ``rollview.refresh_mode`` says, else ``auto``.
        """
        return self._refresh(select, to, mode, on_progress, apply=True)

    def propagate(
        self,
        select: Sequence[str] = (),
        to: Point | None = None,
        on_progress: Callable[[results.Progress], None] | None = None,
    ) -> results.Refreshed:
        """Make the view deltas only; the extents stay where they are."""
        return self._refresh(select, to, None, on_progress, apply=False)

    def roll(
        self,
        names: Sequence[str],
        to: Point,
        on_progress: Callable[[results.Progress], None] | None = None,
    ) -> results.Rolled:
        """Bring extents to one csn, forwards or back, and publish them together."""
        from rollview.schedule import roll, select_views

        self._recover()
        if not names:
            raise UsageError("No view is named that is to be rolled.")
        views = select_views(self.snapshot(), names)
        latest = min(self.snapshot().get(name).pins[Part.DELTA].through for name in views)
        return roll(self._work(on_progress), views, latest if to == "latest" else self.resolve(to, *views))

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
        grace: timedelta = timedelta(hours=1),
        on_progress: Callable[[results.Progress], None] | None = None,
    ) -> results.Maintained:
        """Do what saves space, or only say so. Without a setting or a csn, every csn stays in reach.

        ``retention`` and ``detail``: how long changes are kept, and kept commit by commit (``30 days``, ``1000
        commits``). ``grace``: how long a file that is out of use may still be read by somebody.
        """
        from rollview.capture import requests
        from rollview.maintain import Keep, Maintenance, maintain
        from rollview.schedule import select_relations

        if not explain:
            self._recover()
        names = select_relations(self.snapshot(), select) if select else None
        prune, compress = map(self._recorded_by, (prune_before, compress_before))
        keep = Keep(retention, detail, prune, compress, requests.needed(self.catalog))
        told = on_progress or _silent
        work = Maintenance(self._data, self.catalog, lambda: self.spark, keep, grace, told, self._move_on)
        return maintain(work, names, explain=explain)

    # Sources

    def check_source(self, name: str, settings: SourceSettings | None = None) -> results.SourceChecked:
        """What is missing, and the exact statements that mend it. Changes nothing. Without settings: a known source."""
        from rollview.capture import requests

        settings = settings and settings.anchored(Path.cwd())
        found = requests.check(name, settings) if settings else requests.check_recorded(self.catalog, name)
        findings = tuple(results.SourceFinding(one.what, one.mend, one.blocks) for one in found)
        return results.SourceChecked(name, not any(one.blocks for one in findings), findings)

    def add_source(
        self,
        name: str,
        settings: SourceSettings,
        on_progress: Callable[[results.Progress], None] | None = None,
        declared: Sequence[str] = (),
    ) -> results.SourceAdded:
        """Capture the source's tables from now on, beginning with a copy at one position.

        ``declared``: SQL of views that are to come, for tables of which only what views need is copied.
        """
        from rollview.capture import requests
        from rollview.query.status import readings

        self._recover()
        trees = (tree for text in declared for tree in parse_statements(text))
        views = [declare(tree) for tree in trees if is_view_declaration(tree)]
        rows = requests.add(self.catalog, self._data, name, settings.anchored(Path.cwd()), on_progress, views)
        record = self.catalog.source(name)
        read = readings(record)
        tables = tuple(results.CopiedTable(table, count, read.get(table)) for table, count in rows.items())
        csn = self.snapshot().moment.csn
        return results.SourceAdded(record.name, record.kind, csn, record.position or "", tables)

    def sources(self) -> tuple[results.SourceStatus, ...]:
        from rollview.query.status import sources

        return sources(self.catalog)

    def quarantine(self, name: str) -> results.SourceQuarantine:
        """Rows of a source that have no representation here."""
        from rollview.query.status import quarantine

        return quarantine(self.catalog, name)

    def capture(self, names: Sequence[str] = ()) -> results.Captured:
        """Take in what the sources have committed; all of them without names. One that fails stops no other."""
        from rollview.schedule.crew import capture_all

        self._recover()
        known = [self.catalog.source(name).name for name in names] or [s.name for s in self.catalog.sources()]
        done = capture_all(self.catalog, self._data, tuple(dict.fromkeys(known)), self.order)
        return results.Captured(self.snapshot().moment.csn, done)

    def held(self) -> tuple[results.HeldTransaction, ...]:
        """Global transactions whose parts have not all come, oldest first."""
        from rollview.query.status import held

        return held(self.catalog)

    def decide(self, global_id: str, choice: Literal["wait", "release"]) -> results.Decided:
        """Let a global transaction wait on for its missing parts, or go without them; the choice is recorded."""
        from rollview.capture import requests

        part = requests.decide(self.catalog, global_id, choice)
        return results.Decided(global_id, choice, part.missing)

    def run(
        self, interval: float, stop: threading.Event, rounds: int | None = None, schedule: Words = None
    ) -> Iterator[results.Captured | results.Refreshed | RollviewError]:
        """Capture and refresh as each source and view asks until ``stop`` is set; what was done, and what went wrong.

        ``schedule``: their cadences in words, for one or by name; ``interval``: seconds, for those that have none.
        ``rounds``: everything so many times, whatever its cadence.
        """
        from rollview.schedule.crew import Crew, run_rounds
        from rollview.schedule.daemon import work

        self._recover()
        crew = Crew(self.catalog, self._data, self.order, self.refresh, self._fold, schedule, interval)
        return work(crew, stop) if rounds is None else run_rounds(crew, interval, stop, rounds)

    def resnapshot(
        self, name: str, *, widen: bool = False, settings: SourceSettings | None = None
    ) -> results.SourceCaptured:
        """Copy a source again; the difference becomes one unit of work. ``widen``: take more of its columns, those that
        ``settings`` name, or all."""
        from rollview.capture import requests

        self._recover()
        progress = requests.resnapshot(self.catalog, self._data, name, widen=widen, settings=settings)
        return results.SourceCaptured(name, progress.units, progress.rows, progress.position, notes=progress.notes)

    def remove_source(self, name: str, *, forget: bool = False) -> None:
        """Drop the source's tables and whatever capture put into the source; with ``forget`` leave the source alone."""
        from rollview.capture import requests

        self._recover()
        requests.remove(self.catalog, self._data, name, forget=forget)

    # Questions

    def read(self, name: str, as_of: Point | None = None) -> DataFrame:
        """A table or view at a csn or moment; without one, a view's extent as published and a table as it is now."""
        reader = self._reader()
        relation = reader.snapshot.get(name)
        at = self._published(reader.snapshot, relation) if as_of is None else self.resolve(as_of, relation.name)
        return reader.rows(relation.name, at)

    def delta(self, name: str, after: Point, through: Point | None = None) -> DataFrame:
        """The changes of a table or view over ``(after, through]``, with ``_count`` and ``_csn``."""
        from rollview.relations.plans import check_reachable, high_water_mark

        reader = self._reader()
        relation = reader.snapshot.get(name)
        begin = self.resolve(after, name)
        end = high_water_mark(reader.snapshot, relation) if through is None else self.resolve(through, name)
        if begin > end:
            raise UsageError(f"({begin}, {end}] is not an interval.", hint="Give the smaller csn as --after.")
        for csn in (begin, end):
            check_reachable(reader.snapshot, relation, csn)
        return reader.changes(relation.name, Interval(begin, end))

    def explain(self, name: str) -> results.Explanation:
        from rollview.query.explain import explain

        return explain(self.snapshot(), name)

    def verify(self, name: str, at: Point | None = None) -> results.Verification:
        """Compare a view with its definition recomputed from the base tables, at its own csn or another in reach."""
        from rollview.query.verify import verify

        reader = self._reader()
        view = _a_view(reader.snapshot, name)
        csn = self._published(reader.snapshot, view) if at is None else self.resolve(at, view.name)
        return verify(reader, view.name, csn)

    def status(self) -> results.Status:
        from rollview.query.status import status

        return status(self.catalog)

    def resolve(self, point: Point, *names: str) -> Csn:
        """The csn that a point means. ``latest`` is the newest, or as far as all of the named relations are complete; a
        moment is that moment at every source that they read."""
        from rollview.relations.plans import high_water_mark

        snapshot = self.snapshot()
        if point == "latest":
            complete = [high_water_mark(snapshot, snapshot.get(name)) for name in names]
            return min(complete, default=snapshot.moment.csn)
        if isinstance(point, datetime):
            return self.catalog.csn_at(point, names or None)
        try:
            return int(point)
        except (TypeError, ValueError):
            hint = "Give a csn, a datetime with its zone, or 'latest'."
            raise UsageError(f"'{point}' is neither a csn nor a moment.", hint=hint) from None

    def positions(self, at: Point = "latest") -> tuple[SourcePosition, ...]:
        """The TxnID vector of a csn: for each source, the position up to which its units of work are in it."""
        return self.catalog.positions(self.resolve(at))

    # Inside

    def _recorded_by(self, point: Point | None) -> Csn | None:
        if isinstance(point, datetime):
            return self.catalog.csn_recorded_by(point)
        return None if point is None else self.resolve(point)

    @property
    def _data(self) -> Path:
        return self.root / DATA_FOLDER

    def _move_on(self, table: str) -> bool:
        from rollview.capture import requests

        return requests.move_on(self.catalog, self._data, table)

    def _fold(self) -> None:
        """States of captured tables move forward where that pays; capture itself starts no Spark."""
        from rollview.publish.fold import fold_if_it_pays

        for table in self.snapshot().tables():
            if table.source is not None:
                fold_if_it_pays(self.spark, self._data, self.catalog, table.name)

    def _reader(self) -> Reader:
        from rollview.relations.reader import Reader

        return Reader(self.spark, self._data, self.snapshot())

    def _work(self, on_progress: Callable[[results.Progress], None] | None) -> Refresh:
        from rollview.schedule import Refresh

        return Refresh(self.spark, self._data, self.catalog, on_progress or _silent)

    def _recover(self) -> None:
        """Before the first change, and after one that ended badly: take away what was begun and will not go on."""
        from rollview.publish.recover import discard_abandoned, has_let_go

        if not self._recovered or has_let_go(self._data):
            discard_abandoned(self.catalog, self._data)
            self._recovered = True

    def _published(self, snapshot: Snapshot, relation: Relation) -> Csn:
        is_view = relation.kind is RelationKind.VIEW
        return relation.pins[Part.EXTENT].through if is_view else snapshot.moment.csn

    def _refresh(
        self,
        select: Sequence[str],
        to: Point | None,
        mode: str | None,
        on_progress: Callable[[results.Progress], None] | None,
        *,
        apply: bool,
    ) -> results.Refreshed:
        from rollview.propagate import refresh_mode
        from rollview.publish.merge import merge_if_many
        from rollview.schedule import going_on, refresh, select_views, views_below

        wanted = refresh_mode(mode) if mode is not None else None
        self._recover()
        snapshot = self.snapshot()
        views = going_on(snapshot, select_views(snapshot, select), asked=bool(select))
        self._refuse_whole(snapshot, views, wanted)
        target = None if to is None or to == "latest" else self.resolve(to, *views)
        done = refresh(self._work(on_progress), views, target, mode=wanted, apply=apply)
        now = self.snapshot()
        touched = {*views}.union(*(views_below(now, now.get(name)) for name in views if now.find(name) is not None))
        merge_if_many(self._data, self.catalog, touched, now)
        return done

    def _refuse_whole(self, snapshot: Snapshot, views: Sequence[str], mode: RefreshMode | None) -> None:
        """Before anything is done, where a view would have to be recomputed although it must not be."""
        from rollview.propagate import check_strict, mode_of
        from rollview.relations.plans import plan_of

        for view in map(snapshot.get, views):
            check_strict(view.name, plan_of(snapshot, view), mode_of(view, mode))

    def _refuse_missing(self, trees: Sequence[exp.Expr]) -> None:
        from rollview.evolve.needs import refuse_missing

        for tree in trees:
            if not is_view_declaration(tree):
                refuse_missing(self.catalog, tree)

    def _create_view(self, declared: Declared) -> results.ViewCreated:
        from rollview.capture.requests import cover
        from rollview.engine.meter import Meter
        from rollview.propagate import plan_create, run_create
        from rollview.propagate.begin import check_begin

        self._recover()
        notes = cover(self.catalog, self._data, declared)
        with self.catalog.lease("definitions", f"relation:{declared.name}") as lease:
            reader = self._reader()
            view = plan_create(self.spark, reader.snapshot, declared)
            check_begin(reader.snapshot, view)
            rows = run_create(reader, self.catalog, lease, view, Meter())
        mode = "whole" if view.plan.mode == "whole" else "incremental"
        notes = (*notes, *view.notes)
        return results.ViewCreated(declared.name, view.at, rows, mode, view.replaces, notes)

    def _statement(self, tree: exp.Expr) -> results.StatementResult:
        if is_view_declaration(tree):
            created = self._create_view(declare(tree))
            return results.StatementResult(
                "create view", render(tree), created.name, inserted=created.rows, csn=created.csn
            )
        if isinstance(tree, exp.Query):
            return results.StatementResult("query", render(tree), rows=self._query(tree))
        if isinstance(tree, exp.Drop) and tree.kind in ("VIEW", "MATERIALIZED VIEW"):
            return self._drop_view(tree)
        from rollview.tables import run_ddl

        self._recover()
        return run_ddl(self.spark, self._data, self.catalog, tree)

    def _drop_view(self, tree: exp.Drop) -> results.StatementResult:
        targets = tree.args.get("tables") or [tree.this]
        if len(targets) != 1:
            raise SqlError("DROP MATERIALIZED VIEW takes one view.")
        name = relation_name(targets[0], "view")
        if tree.args.get("exists") and self.snapshot().find(name) is None:
            return results.StatementResult("drop view", render(tree), name)
        self.drop_view(name)
        return results.StatementResult("drop view", render(tree), name, csn=self.snapshot().moment.csn)

    def _changes(self, trees: list[exp.Expr]) -> list[results.StatementResult]:
        with self.transaction() as transaction:
            answers = [transaction.run(tree) for tree in trees]
        return [transaction.committed_result(answer) for answer in answers]

    def _query(self, tree: exp.Query) -> DataFrame:
        from rollview.tables import Transaction

        return Transaction(self.spark, self._data, self.catalog).query(tree)


def _a_view(snapshot: Snapshot, name: str) -> Relation:
    relation = snapshot.get(name)
    if relation.kind is not RelationKind.VIEW:
        raise UsageError(f"'{relation.name}' is a table, not a view.")
    return relation


@contextmanager
def _telling(answers: Sequence[results.StatementResult]) -> Iterator[None]:
    """An error inside says what was done before it and stays done."""
    try:
        yield
    except RollviewError as error:
        done = [f"{answer.kind} {answer.table}" for answer in answers if answer.csn is not None]
        if done:
            error.hint = " ".join(filter(None, (error.hint, f"Done before it, and stays: {', '.join(done)}.")))
            error.facts["done"] = done
        raise


def _grouped(trees: Sequence[exp.Expr]) -> Iterator[exp.Expr | list[exp.Expr]]:
    """Neighbouring changes together, everything else alone."""
    changes: list[exp.Expr] = []
    for tree in trees:
        if isinstance(tree, exp.Insert | exp.Update | exp.Delete | exp.Merge | exp.TruncateTable):
            changes.append(tree)
            continue
        if changes:
            yield changes
            changes = []
        yield tree
    if changes:
        yield changes
