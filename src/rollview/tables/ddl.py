"""CREATE TABLE and DROP TABLE.

Law: a table is there from the csn at which it was created, empty, or with the rows of its query as its first unit of
work. What a constraint refers to exists, and stays as long as the constraint does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from sqlglot import exp

from rollview.algebra.definition import checked_name, relation_name
from rollview.algebra.text import render
from rollview.catalog import Catalog, CatalogWriter, Moment, Part, Relation, RelationKind
from rollview.core.interval import Csn, Interval
from rollview.core.names import same
from rollview.core.schema import Column, Constraints, Schema
from rollview.errors import AlreadyExists, SqlError, Unsupported, UsageError
from rollview.publish.fold import fold_if_it_pays
from rollview.publish.step import NewVersion, RunningStep, drop, dropped, recorded
from rollview.results import StatementResult
from rollview.store.datafile import DataFile
from rollview.store.timed import Stored
from rollview.tables.declaration import DeclaredTable, declare_table
from rollview.tables.failures import statement_failures
from rollview.tables.resolving import resolved
from rollview.tables.staging import Effect, effect, settle, stage_changes
from rollview.tables.statements import inserted
from rollview.types.arrow import arrow_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructField

RowsOf = Callable[[exp.Query], "DataFrame"]

_CREATED = {"table": "created"}
_TEXT = ("CHAR(", "VARCHAR(")


def run_ddl(spark: SparkSession, root: Path, catalog: Catalog, tree: exp.Expr, rows_of: RowsOf) -> StatementResult:
    """``rows_of``: answers the query of a CREATE TABLE AS, as any other SELECT."""
    if isinstance(tree, exp.Create) and tree.kind == "TABLE":
        return create_table(spark, root, catalog, tree, rows_of)
    if isinstance(tree, exp.Drop) and tree.kind == "TABLE":
        return drop_table(catalog, tree)
    if isinstance(tree, exp.Command) and tree.name.upper() == "ALTER":
        raise Unsupported("This ALTER is not understood.", hint="Write one change of one table in a statement.")
    raise Unsupported(
        f"{render(tree).partition(' ')[0]} of this kind is not supported.",
        hint="Tables and materialized views can be created and dropped; rows inserted, updated, deleted and merged.",
    )


def create_table(
    spark: SparkSession, root: Path, catalog: Catalog, tree: exp.Create, rows_of: RowsOf
) -> StatementResult:
    declared = declare_table(tree)
    result = StatementResult("create table", render(tree), declared.name)
    snapshot = catalog.snapshot()
    present = snapshot.find(declared.name)
    if present is not None and present.kind is RelationKind.TABLE and declared.if_not_exists:
        return result
    if present is not None:
        raise AlreadyExists(str(present.kind), present.name)
    if declared.query is not None:
        moment, done = _create_filled(spark, root, catalog, declared, rows_of(declared.query), snapshot.moment.csn)
        return replace(result, csn=moment.csn, inserted=done.inserted)
    return replace(result, csn=_create_empty(spark, root, catalog, declared))


def table_to_drop(tree: exp.Drop) -> str:
    for option in ("purge", "cascade", "temporary", "restrict", "constraints", "force"):
        if tree.args.get(option):
            raise Unsupported(f"DROP TABLE with {option.upper()} is not supported.")
    targets = tree.args.get("tables") or [tree.this]
    if len(targets) != 1:
        raise Unsupported("DROP TABLE takes one table.")
    return relation_name(targets[0], "table")


def drop_table(catalog: Catalog, tree: exp.Drop) -> StatementResult:
    name = table_to_drop(tree)
    result = StatementResult("drop table", render(tree), name)
    if catalog.snapshot().find(name) is None and tree.args.get("exists"):
        return result
    with catalog.lease("definitions", "commit", f"relation:{name}") as lease, catalog.write(lease) as writer:
        snapshot = writer.snapshot()
        table = snapshot.get(name)
        if table.kind is not RelationKind.TABLE:
            raise UsageError(f"'{table.name}' is a view, not a table.", hint="Write DROP MATERIALIZED VIEW.")
        if table.source is not None:
            raise UsageError(
                f"Table '{table.name}' is captured from source '{table.source}'.",
                hint=f"Remove the source with all of its tables: rollview source remove {table.source}",
            )
        drop(writer, table)
    dropped()
    return replace(result, csn=snapshot.moment.csn)


def _create_empty(spark: SparkSession, root: Path, catalog: Catalog, declared: DeclaredTable) -> Csn:
    schema = _schema(spark, declared)
    home = _new_home()
    stored = Stored(declared.name, schema, root / home, {})
    with catalog.lease("definitions", f"relation:{declared.name}") as lease:
        at = catalog.snapshot().moment.csn
        with recorded(catalog, lease, root, declared.name, "create", Interval(at, at), (home,)) as step:
            state, delta = step.log(_first_versions(stored), _CREATED)
            with step.publish(lease) as publishing:
                at = _add(publishing.writer, declared, schema, home)
                publishing.show(state, at, at)
                publishing.show(delta, at, at)
    return at


def _create_filled(
    spark: SparkSession, root: Path, catalog: Catalog, declared: DeclaredTable, data: DataFrame, began: Csn
) -> tuple[Moment, Effect]:
    schema = _schema_of(declared.name, data.schema.fields)
    home = _new_home()
    table = Relation(0, declared.name, RelationKind.TABLE, schema, Constraints(), None, (), home, began, {}, (), None)
    interval = Interval(began, began + 1)
    with recorded(catalog, None, root, declared.name, "create", interval, (home,)) as step:
        moment, done = _fill(spark, root, catalog, declared, table, data, step)
    fold_if_it_pays(spark, root, catalog, declared.name)
    return moment, done


def _fill(
    spark: SparkSession,
    root: Path,
    catalog: Catalog,
    declared: DeclaredTable,
    table: Relation,
    data: DataFrame,
    step: RunningStep,
) -> tuple[Moment, Effect]:
    """The rows of the query, as the table's first unit of work."""
    home, schema, began = table.folder, table.schema, table.created
    folder = Stored(declared.name, schema, root / home, {}).folder(Part.DELTA)
    rows = inserted(data, schema, schema.names)
    staged = stage_changes(folder, rows, folder.new_folder(), began + 1, table, None)
    step.computed()
    with catalog.lease("definitions", "commit", f"relation:{declared.name}") as lease:
        csn = catalog.snapshot().moment.csn + 1
        settled = settle(spark, folder, (staged,), folder.new_folder(), csn, table)
        done = effect(spark, folder, settled.files, table)
        stored = Stored(declared.name, schema, root / home, {})
        state, delta = step.log(_first_versions(stored, settled.files), _CREATED)
        with step.publish(lease) as publishing:
            at = _add(publishing.writer, declared, schema, home)
            moment = _first_unit(publishing.writer, declared.name, csn, done)
            publishing.show(state, at, at)
            publishing.show(delta, at, moment.csn)
    return moment, done


def _add(writer: CatalogWriter, declared: DeclaredTable, schema: Schema, home: str) -> Csn:
    snapshot = writer.snapshot()
    constraints = resolved(snapshot, declared, schema)
    writer.add_relation(declared.name, RelationKind.TABLE, schema, constraints, None, (), home)
    return snapshot.moment.csn


def _first_unit(writer: CatalogWriter, name: str, csn: Csn, done: Effect) -> Moment:
    return writer.commit_unit(
        source="local",
        position=str(csn),
        transaction=str(uuid4()),
        source_time=datetime.now(UTC),
        changes=[(name, done.inserted, 0, None)],
        expect=csn,
    )


def _first_versions(stored: Stored, delta: tuple[DataFile, ...] = ()) -> tuple[NewVersion, NewVersion]:
    """An empty state, and a delta."""
    return (
        NewVersion(stored.name, Part.STATE, stored.folder(Part.STATE), None),
        NewVersion(stored.name, Part.DELTA, stored.folder(Part.DELTA), None, delta),
    )


def _new_home() -> str:
    return f"t-{uuid4().hex}"


def _schema(spark: SparkSession, declared: DeclaredTable) -> Schema:
    """Spark says what the types are; text of limited length stays as it was declared."""
    asked = ", ".join(f"CAST(NULL AS {type_}) AS c{place}" for place, type_ in enumerate(declared.types))
    with statement_failures(declared.name):
        fields = spark.sql(f"SELECT {asked}").schema.fields
    spelled = zip(declared.columns, declared.types, fields, strict=True)
    columns = [Column(name, _kept(type_) or field.dataType.simpleString()) for name, type_, field in spelled]
    return _checked(declared.name, columns)


def declared_column(spark: SparkSession, table: str, name: str, type_: str) -> Column:
    """A column with a type in its author's spelling."""
    (column,) = _schema(spark, DeclaredTable(table, (name,), (type_,), Constraints(), None, False))
    return column


def _kept(type_: str) -> str | None:
    return type_.lower() if type_.upper().startswith(_TEXT) else None


def _schema_of(table: str, fields: Iterable[StructField]) -> Schema:
    columns: list[Column] = []
    for field in fields:
        if any(same(field.name, other.name) for other in columns):
            raise SqlError(f"Table '{table}' would have two columns named '{field.name}'.", hint="Name one with AS.")
        if field.dataType.simpleString() == "void":
            raise SqlError(f"Column '{field.name}' of table '{table}' is NULL without a type.", hint="Cast it.")
        columns.append(Column(checked_name(field.name, "column"), field.dataType.simpleString()))
    return _checked(table, columns)


def _checked(table: str, columns: Iterable[Column]) -> Schema:
    schema = Schema(tuple(columns))
    for column in schema:
        arrow_type(column.type, column.name)
    return schema
