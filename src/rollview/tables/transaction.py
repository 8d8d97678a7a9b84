"""A transaction: statements over one snapshot, committed together.

Law: every statement sees the warehouse at the csn at which the transaction began, with the transaction's own changes on
top, and nothing else. Until ``commit`` nobody sees anything of it; afterwards everybody sees all of it, at one csn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sqlglot import exp

from rollview.algebra.text import parse_statements, render
from rollview.algebra.unsafe import refuse_unsafe
from rollview.catalog import Catalog, Part, Relation, RelationKind, Snapshot
from rollview.core.interval import Csn
from rollview.core.names import COUNT
from rollview.engine.abilities import within
from rollview.errors import SqlError, Unsupported, UsageError
from rollview.publish.fold import fold_if_it_pays
from rollview.publish.following import Following, NobodyFollows
from rollview.publish.merge import merge_if_many
from rollview.publish.places import Places
from rollview.relations import references
from rollview.relations.reader import Reader
from rollview.results import StatementResult
from rollview.store import timed
from rollview.tables import statements
from rollview.tables.commit import Committed, PendingCommit, run_commit
from rollview.tables.failures import statement_failures
from rollview.tables.in_transaction import TableInTransaction
from rollview.tables.merge import merge
from rollview.tables.missing import refuse_missing
from rollview.tables.staging import Effect, Staged, effect, stage_changes
from rollview.tables.statements import TableChanges

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_STATEMENTS: Mapping[type[exp.Expr], Callable[..., TableChanges]] = {
    exp.Insert: statements.insert,
    exp.Update: statements.update,
    exp.Delete: statements.delete,
    exp.TruncateTable: statements.truncate,
    exp.Merge: merge,
}


def is_dml(tree: exp.Expr) -> bool:
    return type(tree) in _STATEMENTS


class Transaction:
    """Not safe to share between threads. ``following``: who brings views along with the commit. ``allow_unsafe``:
    statements may run code and read files outside."""

    def __init__(
        self,
        spark: SparkSession,
        root: Path,
        catalog: Catalog,
        following: Following | None = None,
        *,
        allow_unsafe: bool = False,
    ) -> None:
        self.spark = spark
        self.root = root
        self.catalog = catalog
        self.snapshot: Snapshot = catalog.snapshot()
        self.committed: Committed | None = None
        self._reader = Reader(spark, root, self.snapshot)
        self._staged: dict[str, list[Staged]] = {}
        self._places = Places(catalog, root, self.snapshot.moment.csn)
        self._open = True
        self._allow_unsafe = allow_unsafe
        self._following = following or NobodyFollows()

    @property
    def is_open(self) -> bool:
        return self._open

    @property
    def csn(self) -> Csn | None:
        """The csn of the commit, once there is one."""
        return self.committed.csn if self.committed is not None else None

    def sql(self, *texts: str | exp.Expr) -> tuple[StatementResult, ...]:
        """Run statements that change tables, in order, each seeing what the earlier ones did."""
        trees = [tree for text in texts for tree in (parse_statements(text) if isinstance(text, str) else (text,))]
        return tuple(self.run(tree) for tree in trees)

    def query(self, text: str | exp.Expr) -> DataFrame:
        """Rows as this transaction sees them: its own changes in tables, and views at the csn at which it began."""
        self._check_open()
        trees = parse_statements(text) if isinstance(text, str) else (text,)
        if len(trees) != 1 or not isinstance(trees[0], exp.Query):
            raise SqlError("Expected one query.")
        self._check_safe(text if isinstance(text, str) else render(text))
        with statement_failures("the query"):
            return self.rows(trees[0])

    def committed_result(self, result: StatementResult) -> StatementResult:
        """The statement's result with the csn of the commit."""
        return replace(result, csn=self.csn)

    def insert(self, table: str, data: DataFrame) -> StatementResult:
        """Rows by column name; columns that ``data`` does not have get their defaults."""
        target = self.table(table)
        names = [target.schema.names[statements.place_in(target, name, exp.Star())] for name in data.columns]
        with statement_failures(target.name), within(self.spark, data) as ours:
            rows = statements.inserted(ours, target.schema, names)
            return self._stage(TableChanges(target, rows), "insert", "")

    def delete(self, table: str, data: DataFrame) -> StatementResult:
        """As many copies of each row as ``data`` has; refused if one is not there."""
        target = self.table(table)
        names = [target.schema.names[statements.place_in(target, name, exp.Star())] for name in data.columns]
        if len(set(names)) < len(target.schema):
            raise UsageError(f"Rows to delete from '{target.name}' need all of its columns.")
        with statement_failures(target.name), within(self.spark, data) as ours:
            rows = statements.inserted(ours, target.schema, names)
            return self._stage(TableChanges(target, rows.withColumn(COUNT, -rows[COUNT])), "delete", "", check=True)

    def commit(self) -> Committed:
        """All or nothing. Conflict if another transaction changed the same rows first."""
        self._check_open()
        self._open = False
        about = (self.spark, self.root, self.catalog, self.snapshot, self._places, self._staged, self._following)
        self.committed = run_commit(PendingCommit(*about))
        for change in self.committed.changes:
            fold_if_it_pays(self.spark, self.root, self.catalog, change.relation)
        changed = [change.relation for change in self.committed.changes]
        merge_if_many(self.root, self.catalog, [*changed, *self.committed.followed])
        return self.committed

    def rollback(self) -> None:
        """Forget everything; also after a commit, where it changes nothing."""
        if self._open:
            self._open = False
            self._places.give_up()

    def table(self, name: str) -> Relation:
        relation = self.snapshot.get(name)
        if relation.kind is not RelationKind.TABLE:
            raise UsageError(f"'{relation.name}' is a view; its rows follow from its definition.")
        if relation.source is not None:
            raise UsageError(
                f"Table '{relation.name}' is captured from source '{relation.source}'; it cannot be changed here.",
                hint="Change it at the source, then run: rollview capture",
                table=relation.name,
                source=relation.source,
            )
        return relation

    def rows(self, query: exp.Expr) -> DataFrame:
        return references.run(self.spark, query, self.read, outside=self._allow_unsafe)

    def read(self, name: str) -> DataFrame:
        """A relation's rows as this transaction sees them."""
        relation = self.snapshot.get(name)
        if relation.kind is RelationKind.VIEW:
            if self._staged.keys() & set(self.snapshot.tables_below(relation)):
                seen = self._reader.seen_by(relation.name)
                return seen.evaluate(relation.name, lambda lower: seen.called(lower, self.read(lower)))
            return self._reader.newest_rows(relation.name)
        staged = self._staged.get(relation.name, [])
        own = TableInTransaction.on(self.root, relation, tuple(file for one in staged for file in one.files))
        # Each statement's changes are a net effect, those of several are not.
        key, settled = relation.constraints.primary_key, len(staged) < 2
        return timed.rows(self.spark, own, self._guess, key, settled=settled)

    def most_rows(self, relation: Relation) -> int:
        own = sum(one.rows for one in self._staged.get(relation.name, ()))
        return own + sum(pin.rows for pin in relation.pins.values())

    @property
    def _guess(self) -> Csn:
        """The csn that the commit gets if nobody else commits first."""
        return self.snapshot.moment.csn + 1

    def run(self, tree: exp.Expr) -> StatementResult:
        """One statement that changes a table."""
        self._check_open()
        make = _STATEMENTS.get(type(tree))
        if make is None:
            raise Unsupported(
                f"{tree.key.upper()} cannot be part of a transaction.",
                hint="INSERT, UPDATE, DELETE, MERGE and TRUNCATE can.",
            )
        self._check_safe(render(tree))
        with statement_failures(_changed(tree)):
            changes = make(tree, self)
        kind = "truncate" if isinstance(tree, exp.TruncateTable) else tree.key
        return self._stage(changes, kind, render(tree))

    def _stage(self, changes: TableChanges, kind: str, sql: str, check: bool = False) -> StatementResult:
        self._check_open()
        relation = changes.table
        folder = TableInTransaction.on(self.root, relation).folder(Part.DELTA)
        place = self._places.reserve(relation)
        staged = stage_changes(folder, changes.rows, place, self._guess, relation, changes.at_most)
        if check:
            every = (*self._staged.get(relation.name, ()), staged)
            refuse_missing(self.spark, self.root, relation, self.snapshot.moment.csn, folder, every)
        if staged.files:
            self._staged.setdefault(relation.name, []).append(staged)
        done: Effect = effect(self.spark, folder, staged.files, relation)
        return StatementResult(kind, sql, relation.name, done.inserted, done.deleted, done.updated)

    def _check_safe(self, text: str) -> None:
        if not self._allow_unsafe:
            refuse_unsafe(text)

    def _check_open(self) -> None:
        if not self._open:
            raise UsageError("The transaction has ended.", hint="Begin another one.")


def _changed(tree: exp.Expr) -> str:
    target = tree.find(exp.Table)
    return target.name if target is not None else tree.key


__all__ = ["Committed", "Transaction", "is_dml"]
