"""The parts of a view that gets its next definition, where its rows are few: one query, the rest in this process.

Law: the same rows in each part as Spark would write there. A summary's groups and the rows that it shows are read off
one result; what changes with the definition is added up here only where Arrow compares values as Spark does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from rollview.algebra.summary import SHOWN, Summary, groups_with_rows, seen_columns
from rollview.catalog import Part, Relation
from rollview.core.interval import Csn
from rollview.core.names import CSN
from rollview.core.schema import Column, Schema
from rollview.engine.binding import run_query
from rollview.engine.meter import Meter
from rollview.propagate.create import LABEL, ViewToCreate
from rollview.relations.versions import GOES_ON_FROM
from rollview.store import small
from rollview.store.datafile import DataFile
from rollview.store.timed import Stored
from rollview.store.writing import BOUND, as_stored, collect, stage_table
from rollview.types.arrow import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TOLD_GROUPS = "_rv_told_groups"


@dataclass(frozen=True, slots=True)
class FewParts:
    """``groups``: of a summary."""

    extent: pa.Table
    groups: pa.Table | None = None

    def staged(self, stored: Stored, meter: Meter) -> dict[Part, tuple[DataFile, ...]]:
        """The extent's files first."""
        found = {Part.EXTENT: _staged(stored, Part.EXTENT, self.extent, meter)}
        if self.groups is not None:
            found[Part.GROUPS] = _staged(stored, Part.GROUPS, self.groups, meter)
        return {**found, Part.DELTA: ()}


def few_parts(view: ViewToCreate, told: DataFrame, expected: int, meter: Meter) -> FewParts | None:
    """None if they are many. ``told``: the view's rows, or a summary's groups. ``expected``: about how many."""
    if expected > BOUND // 2:
        return None
    summary = view.plan.summary
    if summary is None:
        rows = collect(as_stored(told, view.schema).limit(BOUND + 1), meter, LABEL)
        return None if rows is None else FewParts(rows)
    query = run_query(told.sparkSession, groups_with_rows(summary, _TOLD_GROUPS), {_TOLD_GROUPS: told})
    both = collect(as_stored(query, _both(summary, view.schema)).limit(BOUND + 1), meter, LABEL)
    if both is None:
        return None
    shown = both.filter(both[SHOWN]).select(list(seen_columns(summary)))
    return FewParts(shown.rename_columns(list(view.schema.names)), both.select(list(summary.schema.names)))


def _both(summary: Summary, schema: Schema) -> Schema:
    seen = (Column(name, shown.type) for name, shown in zip(seen_columns(summary), schema, strict=True))
    return Schema((*summary.schema.columns, Column(SHOWN, "boolean"), *seen))


def few_changes(before: pa.Table, new: Relation, extent: pa.Table, at: Csn) -> pa.Table | None:
    """V_new@s - π(V_old@(s-1)) at csn s; None where Spark has to tell it. ``before``: V_old@(s-1); ``extent``: V_new@s,
    both as rows of this process."""
    if not small.can_add_up(new.schema):
        return None
    change = small.difference(extent, _carried(before, new), new.schema)
    return change.append_column(CSN, pa.repeat(pa.scalar(at, pa.int64()), change.num_rows))


def _carried(rows: pa.Table, new: Relation) -> pa.Table:
    """π: rows of the definition before, in the columns of the new one."""
    assert new.definition is not None
    origin = new.definition.facts.get(GOES_ON_FROM, {})
    columns = [
        rows[origin[column.name]] if column.name in origin else pa.nulls(rows.num_rows, type_)
        for column, type_ in zip(new.schema, arrow_schema(new.schema).types, strict=True)
    ]
    return pa.Table.from_arrays(columns, names=list(new.schema.names))


def stage_changes(stored: Stored, change: pa.Table, meter: Meter) -> tuple[DataFile, ...]:
    return _staged(stored, Part.BRIDGE, change, meter)


def _staged(stored: Stored, part: Part, rows: pa.Table, meter: Meter) -> tuple[DataFile, ...]:
    folder = stored.folder(part)
    return stage_table(folder, rows, folder.new_folder(), meter, LABEL)
