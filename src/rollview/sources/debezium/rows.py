"""Rows of events, in the columns of their tables.

Law: rows that go are told whole, and every value is as it was at the source, or the source stops.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from rollview.core.schema import Column
from rollview.errors import BadValue, LostPosition, SchemaChanged
from rollview.sources.debezium.assembly import Whole
from rollview.sources.debezium.columns import lacks
from rollview.sources.debezium.reached import Places
from rollview.sources.debezium.records import Event, Operation
from rollview.sources.debezium.values import UNAVAILABLE, decode
from rollview.sources.protocol import Changes, Opening, Row, SourceTable, UnitOfWork
from rollview.types.arrow import arrow_type, constant

_REPAIR = "PostgreSQL: ALTER TABLE … REPLICA IDENTITY FULL; MySQL: SET GLOBAL binlog_row_image = FULL"


@dataclass(slots=True)
class _Collected:
    before: list[Row] = field(default_factory=list)
    after: list[Row] = field(default_factory=list)
    replaces: bool = False


class EventRows:
    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._options = opening.settings.options

    def unit(self, whole: Whole, tables: Mapping[str, SourceTable]) -> UnitOfWork:
        collected: dict[str, _Collected] = {}
        for placed in whole.events:
            assert isinstance(placed.record, Event)
            assert placed.remote is not None
            self._collect(collected, tables[placed.remote], placed.record)
        times = [placed.record.time for placed in whole.events if isinstance(placed.record, Event)]
        moment = max(times, default=datetime.fromtimestamp(0, UTC))
        changes = {remote: Changes(c.before, c.after, c.replaces) for remote, c in collected.items()}
        return UnitOfWork(places_text(whole.places), whole.transaction, moment, changes)

    def _collect(self, collected: dict[str, _Collected], table: SourceTable, event: Event) -> None:
        if event.operation is Operation.TRUNCATE:
            collected[table.name] = _Collected(replaces=True)
            return
        one = collected.setdefault(table.name, _Collected())
        if event.operation in (Operation.UPDATE, Operation.DELETE):
            one.before.append(self.row(table, event, self._before(table, event), None))
        if event.operation in (Operation.CREATE, Operation.UPDATE):
            one.after.append(self.row(table, event, event.after, event.before))

    def _before(self, table: SourceTable, event: Event) -> Mapping[str, Any]:
        old, names = event.before, [c.name for c in table.schema if not self._is_filled(table, c, event)]
        others = [name for name in names if name not in table.constraints.primary_key]
        if old is None or any(name not in old for name in names):
            raise LostPosition(self._opening.name, f"an old row of table '{table.name}' is not whole ({_REPAIR})")
        looks_bare = event.operation is Operation.DELETE and bool(others) and all(old[name] is None for name in others)
        if looks_bare and self._options.get("before_images") != "whole":
            what = f"an old row of table '{table.name}' has nothing but its key, so it may not be whole ({_REPAIR})"
            raise LostPosition(self._opening.name, f"{what}; if it is, set the option before_images: whole")
        return old

    def row(
        self, table: SourceTable, event: Event, image: Mapping[str, Any] | None, old: Mapping[str, Any] | None
    ) -> Row:
        values: list[Any] = []
        for column in table.schema:
            if image is not None and self._is_filled(table, column, event):
                values.append(filled(column))
                continue
            if image is None or column.name not in image:
                raise SchemaChanged(self._opening.name, table.name, f"a row has no column '{column.name}'")
            value = image[column.name]
            if value == UNAVAILABLE:
                value = (old or {}).get(column.name, UNAVAILABLE)
            values.append(self._value(table, column, event, value))
        return tuple(values)

    def _is_filled(self, table: SourceTable, column: Column, event: Event) -> bool:
        """Whether the event is older than a column, or newer, and rows have NULL there."""
        return table.name in self._opening.known and lacks(event, column)

    def _value(self, table: SourceTable, column: Column, event: Event, value: Any) -> Any:
        if value == UNAVAILABLE:
            raise LostPosition(
                self._opening.name, f"a large value of table '{table.name}' is not in its record ({_REPAIR})"
            )
        schema = event.schemas.get(column.name)
        try:
            return decode(value, column.type, schema, self._options)
        # A schema that is not as Connect writes it is met here, too.
        except (ValueError, ArithmeticError, LookupError, TypeError, AttributeError, RecursionError) as error:
            reason = str(error) or type(error).__name__
            raise BadValue(self._opening.name, table.name, column.name, reason, event.transaction) from None


def filled(column: Column) -> Any:
    """What rows have in a column that is newer than they are."""
    return None if column.fill is None else constant(column.fill, arrow_type(column.type, column.name)).as_py()


def places_text(places: Places) -> str:
    return json.dumps(places, sort_keys=True, separators=(",", ":"))
