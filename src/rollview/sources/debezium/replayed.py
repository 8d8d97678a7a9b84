"""Rows as bags, while the events of a copy are replayed.

Law: rows are in the columns that their table has after the last event. What an event's table does not have is NULL in
all rows that came until then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from rollview.errors import LostPosition
from rollview.sources.debezium.columns import lacks
from rollview.sources.debezium.records import Event
from rollview.sources.protocol import Row, SourceTable, UnitOfWork
from rollview.sources.values import as_rows


class ReplayedRows:
    """Rows as a bag, while events are replayed."""

    def __init__(self, source: str, tables: Mapping[str, SourceTable]) -> None:
        self.tables = tables
        self._source = source
        self.rows: dict[str, Counter[Row]] = {remote: Counter() for remote in tables}
        self._lacking: dict[str, set[int]] = {}

    def clear(self) -> None:
        for bag in self.rows.values():
            bag.clear()

    def reset(self, remote: str, event: Event) -> None:
        """All rows have NULL in a column that their table did not have until this event, or does not have any
        more: a name may have been that of several columns."""
        if not event.layout:
            return
        columns = self.tables[remote].schema.columns
        lacking = {place for place, column in enumerate(columns) if lacks(event, column)}
        changed = lacking ^ self._lacking.get(remote, set())
        self._lacking[remote] = lacking
        if not changed:
            return
        bag: Counter[Row] = Counter()
        for row, count in self.rows[remote].items():
            bag[tuple(None if place in changed else value for place, value in enumerate(row))] += count
        self.rows[remote] = bag

    def apply(self, unit: UnitOfWork) -> None:
        for remote, changes in unit.changes.items():
            bag = self.rows[remote]
            if changes.replaces:
                bag.clear()
            bag.update(as_rows(changes.after))
            bag.subtract(as_rows(changes.before))
            if any(count < 0 for count in bag.values()):
                what = f"a row of table '{remote}' goes that never came: the events do not begin with a snapshot"
                raise LostPosition(self._source, what)
            for row in [row for row, count in bag.items() if not count]:
                del bag[row]
