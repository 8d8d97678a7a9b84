"""Only rows that fulfil a condition are captured.

Law: a selection is linear: σ(R + Δ) = σ(R) + σ(Δ). So a captured table is the source's table, selected, at every csn,
if rows that go and rows that come are selected each by itself; an update that takes a row across the condition is then
an insert or a delete. (Chen et al., *Multiversion Based View Maintenance*, section 5.1.)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rollview.algebra.condition import AllOf, AnyOf, Compare, Condition, IsNull, Not, columns_of
from rollview.core.schema import Schema
from rollview.sources.protocol import Changes, Row, Rows, Spooled, UnitOfWork
from rollview.sources.restrict import condition_on_rows
from rollview.sources.sections import Section
from rollview.sources.settings import SourceSettings, TableSettings
from rollview.sources.values import UnfitError, as_table, unfit_places
from rollview.types.arrow import arrow_type

_EXACT = pa.decimal256(76, 38)
"""Holds every decimal of 38 digits and every constant that may be compared with it."""

_OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "=": pc.equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


@dataclass(frozen=True, slots=True)
class Restriction:
    """``schema``: the columns of the rows, in their order."""

    schema: Schema
    condition: Condition

    def rows(self, rows: Rows) -> Rows:
        """A row whose value in the condition has no representation stays, for whoever refuses it."""
        if isinstance(rows, Section):
            return Section.of(self.table(rows.table()))
        if isinstance(rows, pa.Table):
            return self.table(rows)
        named = set(columns_of(self.condition))
        places = [place for place, column in enumerate(self.schema) if column.name in named]
        told = [tuple(row[place] for place in places) for row in rows]
        unfit, fit = _fitting(told, Schema(tuple(self.schema.columns[place] for place in places)))
        kept = iter(self._kept(fit, len(rows) - len(unfit)).to_pylist())
        return [row for place, row in enumerate(rows) if place in unfit or next(kept)]

    def table(self, table: pa.Table) -> pa.Table:
        return table.filter(self._kept(table, table.num_rows))

    def changes(self, changes: Changes) -> Changes:
        spools = tuple(_Restricted(spool, self) for spool in changes.spools)
        return replace(changes, before=self.rows(changes.before), after=self.rows(changes.after), spools=spools)

    def _kept(self, table: pa.Table, count: int) -> Any:
        """True or false for each row: what is unknown is not fulfilled."""
        found = _evaluated(self.condition, table)
        return pa.array([found.as_py()] * count, pa.bool_()) if isinstance(found, pa.Scalar) else found.fill_null(False)


@dataclass(frozen=True, slots=True)
class _Restricted:
    """A spool's rows that fulfil the condition."""

    spool: Spooled
    restriction: Restriction

    def pieces(self) -> Iterator[pa.Table]:
        return map(self.restriction.table, self.spool.pieces())

    def add_counted(self, table: pa.Table) -> None:
        self.spool.add_counted(table)

    def empty_copy(self) -> Spooled:
        """Not restricted: what is put there was chosen before."""
        return self.spool.empty_copy()

    def close(self) -> None:
        self.spool.close()


Restrictions = Mapping[str, Restriction]
"""By the source's own names of its tables; a table that is not there is taken whole."""


def restriction(settings: TableSettings, schema: Schema) -> Restriction | None:
    """What the settings say of the table's rows; refused where the columns do not allow it."""
    found = condition_on_rows(settings, schema)
    return None if found is None else Restriction(schema, found)


def restrictions(settings: SourceSettings, schemas: Mapping[str, Schema]) -> Restrictions:
    """By the source's own names of its tables."""
    found = {remote: restriction(settings.table(remote), schema) for remote, schema in schemas.items()}
    return {remote: one for remote, one in found.items() if one is not None}


def restricted(unit: UnitOfWork, restrictions: Restrictions) -> UnitOfWork:
    if not restrictions:
        return unit
    changes = {
        remote: restrictions[remote].changes(change) if remote in restrictions else change
        for remote, change in unit.changes.items()
    }
    return replace(unit, changes=changes)


def _fitting(rows: Sequence[Row], schema: Schema) -> tuple[Collection[int], pa.Table]:
    """Places of rows that the columns cannot hold, and the others as a table."""
    try:
        return (), as_table(rows, schema)
    except UnfitError:
        unfit = unfit_places(rows, schema)
        return unfit, as_table([row for place, row in enumerate(rows) if place not in unfit], schema)


def _evaluated(what: Condition, table: pa.Table) -> Any:
    match what:
        case Compare():
            return _compared(what, table[what.column.name])
        case IsNull():
            return pc.is_null(table[what.column.name])
        case Not():
            return pc.invert(_evaluated(what.part, table))
        case AllOf() | AnyOf():
            connect = pc.and_kleene if isinstance(what, AllOf) else pc.or_kleene
            whole: Any = pa.scalar(isinstance(what, AllOf))
            for part in what.parts:
                whole = connect(whole, _evaluated(part, table))
            return whole


def _compared(what: Compare, values: Any) -> Any:
    type_ = arrow_type(what.column.type, what.column.name)
    if pa.types.is_integer(type_):
        type_ = pa.int64()
    elif pa.types.is_decimal(type_):
        type_ = _EXACT
    value = Decimal(what.value) if isinstance(what.value, int) and type_ == _EXACT else what.value
    return _OPERATORS[what.operator](values.cast(type_), pa.scalar(value, type_))
