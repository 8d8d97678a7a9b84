"""ALTER TABLE: a commit of its own that changes no row.

Law: at its csn s the table has the new columns, below s the old ones; rows that were there are not written anew. What
new rules ask of rows is true of all that are there at s. A view that cannot go on has been carried to s - 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import reduce
from operator import and_
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import functions as sf
from sqlglot import exp

from rollview.algebra.text import render
from rollview.catalog import Catalog, CatalogWriter, Layout, Lease, Moment, Part, Relation, RelationKind, Snapshot
from rollview.core.interval import Csn
from rollview.core.schema import AddedRule, Column, RuleKind
from rollview.core.states import Policy
from rollview.errors import ConstraintViolated, Retryable, SqlError, Unsupported, UsageError
from rollview.evolve.views import (
    AffectedViews,
    NobodySynchronizes,
    Synchronizing,
    ViewOutcome,
    views_affected,
    write_outcomes,
)
from rollview.publish.following import Following
from rollview.publish.merge import GetSpark
from rollview.relations.folders import delta_folder, state_folder
from rollview.relations.plans import check_not_waiting
from rollview.relations.reader import Reader
from rollview.results import StatementResult
from rollview.store.multiset import col
from rollview.tables.alter_plan import Draft, Meanings, plan_alter
from rollview.tables.altering import DeclaredAlter, DropTable, declare_alter
from rollview.tables.assignment import assigned, constant
from rollview.tables.constraints import told
from rollview.tables.ddl import declared_column
from rollview.tables.failures import statement_failures
from rollview.types.arrow import arrow_type, is_atomic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ATTEMPTS = 5
_CONSTANTS = (exp.Literal, exp.Neg, exp.Boolean, exp.Null, exp.Cast, exp.DataType, exp.DataTypeParam)


def is_alter(tree: exp.Expr) -> bool:
    return isinstance(tree, exp.Alter) and tree.args.get("kind") == "TABLE"


def alter_table(
    spark: GetSpark,
    root: Path,
    catalog: Catalog,
    following: Following,
    tree: exp.Expr,
    synchronizing: Synchronizing | None = None,
) -> StatementResult:
    """``spark``: asked for where a type or a constant has to be understood, or rows looked at. ``synchronizing``: says
    what becomes of views that lose something; without it they stop."""
    assert isinstance(tree, exp.Alter)
    declared = declare_alter(tree)
    result = StatementResult("alter table", render(tree), declared.name)
    if declared.if_exists and catalog.snapshot().find(declared.name) is None:
        return result
    reason = ", ".join(render(action) for action in tree.args["actions"])
    work = _AlterWork(spark, root, catalog, following, declared, reason, synchronizing or NobodySynchronizes())
    return replace(result, csn=work.run().csn)


def drop_read_table(
    spark: GetSpark,
    root: Path,
    catalog: Catalog,
    following: Following,
    name: str,
    synchronizing: Synchronizing,
) -> Csn:
    """DROP TABLE of one that views read, or read by definitions that they had: from its csn on it is not there."""
    declared = DeclaredAlter(name, (DropTable(),), False)
    return _AlterWork(spark, root, catalog, following, declared, "dropped", synchronizing).run().csn


class _AlterWork:
    def __init__(
        self,
        spark: GetSpark,
        root: Path,
        catalog: Catalog,
        following: Following,
        declared: DeclaredAlter,
        reason: str,
        synchronizing: Synchronizing,
    ) -> None:
        self._spark, self._root, self._catalog, self._following = spark, root, catalog, following
        self._declared, self._reason, self._synchronizing = declared, reason, synchronizing

    def run(self) -> Moment:
        for _ in range(_ATTEMPTS):
            done = self.attempt()
            if done is not None:
                moment, redefined = done
                for view in redefined:
                    self._bring(view)
                return moment
        raise Retryable(f"Views of table '{self._declared.name}' fell behind again and again.", hint="Run it again.")

    def _bring(self, view: str) -> None:
        """One that is propagated in commits has the rows of its new definition before the next commit."""
        snapshot, policies = self._catalog.snapshot(), self._following.policies
        policy = policies.of(snapshot, snapshot.get(view)) if policies is not None else Policy.DPDA
        if policy.in_commits:
            self._following.catch_up(view, Policy.IMMEDIATE)

    def attempt(self) -> tuple[Moment, tuple[str, ...]] | None:
        """The csn, and views that get other definitions by it. None if a view that it touches is not at the csn before;
        it is brought there first."""
        snapshot = self._catalog.snapshot()
        draft = self._plan(snapshot)
        for view in self._affected(draft).touched:
            wish = f"Table '{draft.table.name}' cannot be altered so: view '{view}' cannot be brought there"
            check_not_waiting(snapshot, snapshot.get(view), snapshot.moment.csn, wish)
            self._following.catch_up(f"+{view}", Policy.IMMEDIATE)
        names = {draft.table.name.lower(), draft.name.lower()}
        with self._catalog.lease("definitions", "commit", *(f"relation:{name}" for name in sorted(names))) as lease:
            now = self._catalog.snapshot()
            draft = self._plan(now)
            affected = self._affected(draft)
            if any(not _is_at(now, view) for view in affected.touched):
                return None
            if not draft.changes:
                return now.moment, ()
            self._check_rows(now, draft)
            outcomes = self._synchronizing.plan(now, _after(draft, self._reason), affected) if affected.touched else ()
            self._declare(draft)
            redefined = tuple(one.view for one in outcomes if one.redefined is not None)
            return self._write(lease, draft, outcomes), redefined

    def _plan(self, snapshot: Snapshot) -> Draft:
        table = _altered(snapshot, self._declared.name)
        folders = (state_folder(self._root, table), delta_folder(self._root, table))
        declared = frozenset(name for folder in folders for name in folder.declared())
        meanings = Meanings(self._type_of, self._constant_of, declared)
        return plan_alter(snapshot, table, self._declared.alterations, meanings)

    def _type_of(self, name: str, type_: str) -> Column:
        return declared_column(self._spark(), self._declared.name, name, type_)

    def _constant_of(self, column: Column, given: exp.Expr) -> str | None:
        """As text, which both Spark and Arrow read back as the same value."""
        if any(not isinstance(node, _CONSTANTS) for node in given.walk()):
            raise Unsupported(f"The DEFAULT of column '{column.name}' is not a constant: {render(given)}.")
        if isinstance(given, exp.Null):
            return None
        type_ = arrow_type(column.type, column.name)
        if not is_atomic(type_) or pa.types.is_binary(type_) or type_ == pa.timestamp("us", "UTC"):
            raise Unsupported(f"Column '{column.name}' of type {column.type.upper()} cannot have a DEFAULT.")
        with statement_failures(self._declared.name):
            data = self._spark().sql(f"SELECT {render(given)} AS given")
            text: str | None = data.select(assigned(data, "given", column).cast("string")).head()[0]  # type: ignore[index]
        return text

    def _affected(self, draft: Draft) -> AffectedViews:
        gone = [column.stored for column in draft.dropped]
        renamed = [column.stored for column in draft.table.schema if column.name in draft.renamed]
        wider = [column.stored for column in draft.widened]
        if gone or wider:
            _check_none_waits(draft)
        if draft.name != draft.table.name:
            renamed = [column.stored for column in draft.table.schema]
        return views_affected(draft.snapshot, draft.table, gone, renamed, wider)

    def _check_rows(self, snapshot: Snapshot, draft: Draft) -> None:
        if not draft.checks and draft.must_be_empty is None:
            return
        reader = Reader(self._spark(), self._root, snapshot)
        rows = _as_drafted(reader.rows(draft.table.name, snapshot.moment.csn), draft)
        with statement_failures(draft.name):
            if draft.must_be_empty is not None and rows.head() is not None:
                raise SqlError(f"Table '{draft.name}' has rows, and {draft.must_be_empty}.", hint="Give it a DEFAULT.")
            for rule in draft.checks:
                _check_rule(reader, draft, rule, rows)

    def _declare(self, draft: Draft) -> None:
        """For other programs that read the table: the columns and types that its files may have from now on."""
        later = replace(draft.table, schema=draft.schema)
        for folder in (state_folder(self._root, later), delta_folder(self._root, later)):
            folder.declare(draft.added)
            folder.retype(draft.widened)

    def _write(self, lease: Lease, draft: Draft, outcomes: Sequence[ViewOutcome]) -> Moment:
        unit = {"source": "local", "transaction": str(uuid4()), "source_time": datetime.now(UTC)}
        with self._catalog.write(lease) as writer:
            csn = draft.snapshot.moment.csn + 1
            moment = writer.commit_unit(**unit, position=str(csn), changes=[], expect=csn)  # type: ignore[arg-type]
            about = (draft.schema, draft.constraints, moment.csn, self._reason)
            writer.alter_table(draft.table.name, draft.name, *about)
            _rename_references(writer, draft)
            done = f"was altered at csn {moment.csn}: {self._reason}." if len(draft.schema) else "is gone."
            write_outcomes(writer, outcomes, moment.csn, f"Table '{draft.table.name}' {done}")
        return moment


def _after(draft: Draft, reason: str) -> Snapshot:
    """The catalog as it is from the change on."""
    snapshot, table = draft.snapshot, draft.table
    csn = snapshot.moment.csn + 1
    first = table.layouts or (Layout(table.created, str(table.created), table.schema, "created"),)
    layouts = (*first, Layout(csn, str(csn), draft.schema, reason))
    about = {"name": draft.name, "schema": draft.schema, "constraints": draft.constraints, "layouts": layouts}
    later = {name: one for name, one in snapshot.relations.items() if one.id != table.id}
    relations = {**later, draft.name: replace(table, **about)}  # type: ignore[arg-type]
    return Snapshot(Moment(csn, snapshot.moment.time), relations)


def _check_none_waits(draft: Draft) -> None:
    for view in draft.snapshot.readers(draft.table.name):
        if view.pending is not None:
            raise UsageError(
                f"Table '{draft.table.name}' cannot be altered so: view '{view.name}' waits for the rows of a new "
                "definition.",
                hint=f"Give it those first: rollview refresh --select {view.name}",
                views=[view.name],
            )


def _altered(snapshot: Snapshot, name: str) -> Relation:
    table = snapshot.get(name)
    if table.kind is not RelationKind.TABLE:
        raise UsageError(f"'{table.name}' is a view, not a table.", hint="Write CREATE OR REPLACE MATERIALIZED VIEW.")
    if table.source is not None:
        raise UsageError(
            f"Table '{table.name}' is captured from source '{table.source}'; it cannot be altered here.",
            hint="Alter it at the source, then run: rollview capture",
            table=table.name,
            source=table.source,
        )
    return table


def _is_at(snapshot: Snapshot, view: str) -> bool:
    return snapshot.get(view).pins[Part.EXTENT].through == snapshot.moment.csn


def _rename_references(writer: CatalogWriter, draft: Draft) -> None:
    """Foreign keys of other tables, in the names that the table has now."""
    for table in draft.snapshot.tables():
        rules = table.constraints.referring(draft.table.name, draft.name, draft.renamed)
        if table.id != draft.table.id and rules != table.constraints:
            writer.set_constraints(table.name, rules)


def _as_drafted(rows: DataFrame, draft: Draft) -> DataFrame:
    """The rows that are there, in the columns that they will have."""
    present = {column.stored: column.name for column in draft.table.schema}
    return rows.select(
        *((col(present[c.stored]) if c.stored in present else constant(c, c.fill)).alias(c.name) for c in draft.schema)
    )


def _check_rule(reader: Reader, draft: Draft, rule: AddedRule, rows: DataFrame) -> None:
    if rule.kind in (RuleKind.NOT_NULL, RuleKind.PRIMARY_KEY):
        for name in rule.columns:
            if rows.where(col(name).isNull()).head() is not None:
                raise ConstraintViolated(draft.name, f"NOT NULL of column '{name}'", f"a row has no {name}")
    if rule.kind is RuleKind.NOT_NULL:
        return
    keys = rows.where(reduce(and_, (col(name).isNotNull() for name in rule.columns)))
    if rule.kind is RuleKind.FOREIGN_KEY:
        found = _leading_nowhere(reader, draft, rule, rows, keys)
        what, how = f"foreign key '{rule.name}'", f"leads to no row of '{rule.table}'"
    else:
        counted = keys.groupBy(*map(col, rule.columns)).agg(sf.count("*").alias("_rv_times"))
        found = counted.where("_rv_times > 1").select(*map(col, rule.columns)).head()
        what, how = f"{rule.kind} ({', '.join(rule.columns)})", "is there more than once"
    if found is not None:
        raise ConstraintViolated(draft.name, what, f"{told(rule.columns, tuple(found))} {how}")


def _leading_nowhere(
    reader: Reader, draft: Draft, rule: AddedRule, rows: DataFrame, keys: DataFrame
) -> tuple[object, ...] | None:
    snapshot = draft.snapshot
    own = snapshot.find(rule.table) is None or snapshot.get(rule.table).id == draft.table.id
    parent = rows if own else reader.rows(snapshot.get(rule.table).name, snapshot.moment.csn)
    there = parent.select(*(col(name).alias(f"_rv_{place}") for place, name in enumerate(rule.referenced)))
    same = reduce(and_, (col(name) == sf.col(f"_rv_{place}") for place, name in enumerate(rule.columns)))
    return keys.join(there, same, "left_anti").select(*map(col, rule.columns)).head()
