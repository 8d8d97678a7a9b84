"""A view from nothing: its types told by Spark, its first extent at one csn, its delta empty from there.

Law: the csn is chosen first and everything is read at it, so commits that happen meanwhile are simply the view's
first delta.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from rollview.algebra.definition import Declared
from rollview.algebra.resolve import ROWS_SUFFIX
from rollview.algebra.view import (
    CHOICES,
    MISREAD,
    PROBED,
    Outline,
    Propagation,
    ViewPlan,
    authors_query,
    outline,
    plan,
)
from rollview.catalog import Catalog, CatalogWriter, Definition, Lease, Part, Relation, RelationKind, Snapshot
from rollview.core.interval import Csn, Interval
from rollview.core.schema import Column, Constraints, Schema
from rollview.costs.refreshing import TOOK
from rollview.engine.binding import run_query
from rollview.engine.failures import spark_analysis
from rollview.engine.meter import Meter
from rollview.errors import AlreadyExists, Retryable, SqlError
from rollview.propagate.choice import RefreshMode, check_strict, refresh_mode
from rollview.propagate.copies import is_copy
from rollview.propagate.reading import misread, unseen
from rollview.propagate.renaming import told_before
from rollview.publish.step import LoggedVersion, NewVersion, RunningStep, recorded
from rollview.relations.algorithm import needs_keys
from rollview.relations.plans import DETAIL, REFRESH_MODE, covered, high_water_mark, known_as
from rollview.relations.reader import Reader, prepare_author
from rollview.relations.shared import SHARES
from rollview.relations.versions import check_defined
from rollview.store.datafile import DataFile
from rollview.store.folder import DeltaFolder
from rollview.store.multiset import signed
from rollview.store.timed import Stored
from rollview.store.writing import BOUND, stage
from rollview.types.arrow import arrow_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LABEL = "create"
_HINT = "rollview goes on where an order leaves ties. Write an ORDER BY that leaves none."
_FIRST_GROUPS = "_rv_first_groups"


@dataclass(frozen=True, slots=True)
class ViewToCreate:
    """A checked definition with its plan, and the csn at which the view begins."""

    declared: Declared
    plan: ViewPlan
    schema: Schema
    facts: Mapping[str, Any]
    at: Csn
    replaces: bool

    @property
    def notes(self) -> tuple[str, ...]:
        """What its author should know of it."""
        said = [self.facts[MISREAD]] if MISREAD in self.facts else []
        return tuple(f"View '{self.declared.name}': {note}." for note in (*said, *self.facts.get(CHOICES, ())))

    @property
    def depends_on(self) -> tuple[str, ...]:
        return tuple(relation.name for relation in self.plan.reads)


def plan_create(
    spark: SparkSession, snapshot: Snapshot, declared: Declared, *, over_the_same: bool = False
) -> ViewToCreate:
    """Refuses what is wrong in the text; changes nothing. ``over_the_same``: what a view that is there reads is what it
    was when it was defined, so what Spark told of its text holds still."""
    existing = snapshot.find(declared.name)
    _check_name_is_free(declared, existing)
    known = {name.lower(): known_as(relation) for name, relation in snapshot.relations.items()}
    if existing is not None:
        known.pop(existing.name.lower(), None)
    made = outline(declared, known, keeps_keys=needs_keys(declared.properties))
    renames = over_the_same and not declared.columns
    told = told_before(snapshot, existing, made, declared.query) if renames else None
    schema, facts = told or _told_by_spark(spark, declared, made)
    facts = {**facts, **made.facts}
    if existing is None and _shares(snapshot, declared, made, schema, facts):
        facts = {**facts, SHARES: True}
    made_plan = plan(made, facts)
    wanted = refresh_mode(declared.properties.get(REFRESH_MODE, RefreshMode.AUTO))
    check_strict(declared.name, made_plan, wanted)
    reads = [snapshot.get(relation.name) for relation in made.resolved.reads]
    for lower in reads:
        check_defined(lower, sys.maxsize)
    at = min([snapshot.moment.csn, *(high_water_mark(snapshot, relation) for relation in reads)])
    return ViewToCreate(declared, made_plan, schema, facts, at, existing is not None)


def _told_by_spark(spark: SparkSession, declared: Declared, made: Outline) -> tuple[Schema, dict[str, Any]]:
    """The view's columns, and what else only Spark knows of its text."""
    tables = unseen(spark, made.resolved.reads)
    author = _authors(spark, declared, made, tables)
    return _schema(made, author), dict(misread(made, author, tables) or _facts(spark, made, tables))


def _shares(snapshot: Snapshot, declared: Declared, made: Outline, schema: Schema, facts: Mapping[str, Any]) -> bool:
    """Whether another view's delta is this one's: unless its author wants it recomputed, or fewer csns."""
    own = {REFRESH_MODE, DETAIL}.intersection(declared.properties)
    return not own and MISREAD not in facts and is_copy(made, schema, snapshot)


def run_create(reader: Reader, catalog: Catalog, lease: Lease, view: ViewToCreate, meter: Meter) -> int:
    """Returns the number of rows of the first extent."""
    name, at = view.declared.name, Interval(view.at, view.at)
    home = f"v-{uuid4().hex}"
    stored = Stored(name, view.schema, reader.root / home, {}, view.plan.hidden)
    began = time.monotonic()
    with recorded(catalog, lease, reader.root, name, "create", at, (home,)) as step:
        logged = _log_first_parts(reader, view, stored, meter, step)
        told = {"mode": view.plan.mode.value, "read_rows": read_rows(reader, view), TOOK: time.monotonic() - began}
        profile = {**told, **meter.of(LABEL).to_json()}
        with step.publish(lease, profile) as publishing:
            _check_still_told(publishing.writer.snapshot(), view)
            _add(publishing.writer, view, home)
            for one in logged:
                publishing.show(one, view.at, view.at)
    return logged[0].rows


def _log_first_parts(
    reader: Reader, view: ViewToCreate, stored: Stored, meter: Meter, step: RunningStep
) -> tuple[LoggedVersion, ...]:
    parts = computed_parts(reader, view, stored, meter)
    step.computed()
    name = view.declared.name
    new = [NewVersion(name, part, stored.folder(part), None, files) for part, files in parts.items()]
    return step.log(new, {"csn": str(view.at)})


def computed_parts(
    reader: Reader, view: ViewToCreate, stored: Stored, meter: Meter, told: DataFrame | None = None
) -> dict[Part, tuple[DataFile, ...]]:
    """The extent's first. A summary's rows are read off its groups, so that what it reads is read once. ``told``: its
    rows, or a summary's groups, where they need not be computed from what it reads."""
    parts: dict[Part, tuple[DataFile, ...]] = {}
    if view.plan.summary is None:
        rows = told if told is not None else reader.run_at(view.plan.recomputation(), view.at)
    else:
        first = told if told is not None else reader.run_at(view.plan.first_groups(), view.at)
        groups = _staged(reader, view, stored.folder("groups"), first, meter)
        parts[Part.GROUPS] = groups
        held = stored.folder("groups").read(reader.spark, groups)
        rows = run_query(reader.spark, view.plan.visible(_FIRST_GROUPS), {_FIRST_GROUPS: held})
    return {Part.EXTENT: _staged(reader, view, stored.folder("extent"), rows, meter), **parts, Part.DELTA: ()}


def _staged(
    reader: Reader, view: ViewToCreate, folder: DeltaFolder, data: DataFrame, meter: Meter
) -> tuple[DataFile, ...]:
    expected = min(10 * BOUND, read_rows(reader, view))
    return stage(folder, data, folder.new_folder(), meter, LABEL, expected=expected)


def read_rows(reader: Reader, view: ViewToCreate) -> int:
    """All that is stored of what the view reads. A view is rarely larger."""
    relations = [reader.snapshot.get(name) for name in view.depends_on]
    return sum(pin.rows for relation in relations for pin in relation.pins.values())


def _check_still_told(snapshot: Snapshot, view: ViewToCreate) -> None:
    """A view below may have been recomputed, and its changes from where this one begins be gone."""
    for lower in map(snapshot.get, view.depends_on):
        if lower.kind is RelationKind.VIEW and covered(snapshot, lower).after > view.at:
            raise Retryable(
                f"View '{lower.name}', which '{view.declared.name}' reads, was recomputed meanwhile.",
                hint="Run it again.",
                view=lower.name,
            )


def _add(writer: CatalogWriter, view: ViewToCreate, home: str) -> None:
    name = view.declared.name
    definition = Definition(
        view.declared.query.strip(),
        view.declared.columns,
        view.declared.comment,
        dict(view.declared.properties),
        view.facts,
    )
    if view.replaces:
        writer.replace_definition(name, view.schema, definition, view.depends_on, home)
    else:
        about = (view.schema, Constraints(), definition, view.depends_on, home)
        writer.add_relation(name, RelationKind.VIEW, *about, since=view.at)


def _check_name_is_free(declared: Declared, existing: Relation | None) -> None:
    if existing is None:
        return
    if existing.kind is RelationKind.TABLE:
        raise AlreadyExists("table", existing.name)
    if not declared.replace:
        raise AlreadyExists("view", existing.name, hint="Write CREATE OR REPLACE MATERIALIZED VIEW to change it.")


def _authors(spark: SparkSession, declared: Declared, made: Outline, tables: Mapping[str, DataFrame]) -> DataFrame:
    """The author's own text, analysed by Spark over tables that it cannot see through."""
    resolved = made.resolved
    query = prepare_author(authors_query(resolved))
    with spark_analysis(f"the query of view '{declared.name}'", hint=_HINT if made.settled.notes else None):
        # The tables have no other columns than those that it may see.
        found = replace(query, columns={}, outputs=None).run(spark, tables)
        names = tuple(field.name for field in found.schema.fields)
    if len(names) != len(resolved.outputs):
        raise SqlError(f"View '{declared.name}' has {len(names)} columns for Spark, {len(resolved.outputs)} here.")
    return found


def _schema(made: Outline, author: DataFrame) -> Schema:
    """The output types, as Spark sees the author's own query."""
    fields = author.schema.fields
    columns = tuple(
        Column(name, field.dataType.simpleString()) for name, field in zip(made.resolved.outputs, fields, strict=True)
    )
    for column in columns:
        arrow_type(column.type, column.name)
    return Schema(columns)


def _facts(spark: SparkSession, made: Outline, tables: Mapping[str, DataFrame]) -> dict[str, Any]:
    probes = made.probes
    if probes is None:
        return {}
    inputs = _analysed(spark, probes[0], tables)
    results = run_query(spark, probes[1], {PROBED: inputs})
    return {"input": _types(inputs), "results": _types(results)}


def _types(data: DataFrame) -> dict[str, str]:
    return {field.name: field.dataType.simpleString() for field in data.schema.fields}


def _analysed(spark: SparkSession, propagation: Propagation, tables: Mapping[str, DataFrame]) -> DataFrame:
    signs = {name: signed(tables[name + ROWS_SUFFIX]) for name, what in propagation.inputs if what != "rows"}
    inputs = {
        f"{name}@{what}": tables[name + ROWS_SUFFIX] if what == "rows" else signs[name]
        for name, what in propagation.inputs
    }
    return run_query(spark, propagation.query, inputs)
