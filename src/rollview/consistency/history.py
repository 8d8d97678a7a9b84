"""What happened: units of work per source, in the order in which each source committed them, and what a view showed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from rollview.consistency.bags import Bag, Row, counted
from rollview.consistency.join_view import JoinView


@dataclass(frozen=True, slots=True)
class Update:
    """One row into a table (+1) or out of it (−1)."""

    table: str
    row: Row
    count: int

    @property
    def is_delete(self) -> bool:
        return self.count < 0

    def __str__(self) -> str:
        return f"{'delete' if self.is_delete else 'insert'}({self.table}, [{','.join(map(str, self.row))}])"


@dataclass(frozen=True, slots=True)
class HistoryUnit:
    """A unit of work at one source. Units of one ``transaction`` are parts of one global transaction. ``csn`` is its
    place in the total order, where there is one."""

    source: str
    updates: tuple[Update, ...]
    transaction: str | None = None
    csn: int | None = None

    def delta(self, table: str) -> Bag:
        return counted((one.row, one.count) for one in self.updates if one.table == table)


@dataclass(frozen=True, slots=True)
class PublishedVersion:
    """Rows that readers of the view saw. ``through`` is what it claims to reflect: units per source, or a csn."""

    rows: Bag
    through: Mapping[str, int] | int | None = None


@dataclass(frozen=True)
class History:
    """``versions`` begins with the first extent. At rest: nothing is on its way any more."""

    view: JoinView
    initial: Mapping[str, Bag]
    units: tuple[HistoryUnit, ...]
    versions: tuple[PublishedVersion, ...]
    at_rest: bool = True

    @cached_property
    def sources(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.view.sources, *(unit.source for unit in self.units))))

    @cached_property
    def by_source(self) -> Mapping[str, tuple[HistoryUnit, ...]]:
        return {name: tuple(unit for unit in self.units if unit.source == name) for name in self.sources}
