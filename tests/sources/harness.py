"""A source that a test can write to, whatever its kind.

The tables are ``account`` (id, owner, balance; id is the key) and ``note`` (text; no key, rows may repeat).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol

import pyarrow.compute as pc

from rollview.capture.stored_rows import load_rows
from rollview.catalog import Part
from rollview.core.interval import Csn
from rollview.core.names import CSN
from rollview.relations.folders import delta_folder, state_folder
from rollview.sources import SourceSettings
from rollview.sources.protocol import Capability
from rollview.warehouse import Warehouse

NAN = float("nan")

Row = tuple[Any, ...]
Bag = Counter[Row]


@dataclass(frozen=True, slots=True)
class Write:
    """Insert ``after``, delete ``before``, or both: an update."""

    table: str
    before: Row | None = None
    after: Row | None = None


class Harness(Protocol):
    kind: str
    capabilities: frozenset[Capability]

    def settings(self) -> SourceSettings: ...
    def write(self, *writes: Write) -> None:
        """One committed transaction."""

    def rows(self, table: str) -> Bag: ...
    def empty(self, table: str) -> None:
        """All rows at once, in one transaction."""

    def lose(self) -> None:
        """Make the source forget what capture has not read yet."""

    def leftovers(self) -> list[str]:
        """What capture has put into the source."""

    def close(self) -> None: ...


def account(number: int, owner: str | None, balance: str | None) -> Row:
    return (number, owner, None if balance is None else Decimal(balance))


def stored(warehouse: Warehouse, table: str, at: Csn | None = None) -> Bag:
    """The table's rows as the warehouse holds them, read from its files."""
    (bag,) = stored_at_each(warehouse, table, [warehouse.snapshot().moment.csn if at is None else at])
    return bag


def stored_at_each(warehouse: Warehouse, table: str, csns: Iterable[Csn]) -> list[Bag]:
    """The same at several csns; files are read once."""
    relation = warehouse.snapshot().get(table)
    root = warehouse.root / "data"
    state, delta = relation.pins[Part.STATE], relation.pins[Part.DELTA]
    rows: Bag = Counter(tuples(load_rows(state_folder(root, relation), state.version)))
    changes = load_rows(delta_folder(root, relation), delta.version)
    return [_rolled(rows, state.through, changes, csn, table) for csn in csns]


def _rolled(rows: Bag, through: Csn, changes: Any, at: Csn, table: str) -> Bag:
    bag, first, last = Counter(rows), min(through, at), max(through, at)
    changes = changes.filter(pc.and_(pc.greater(changes[CSN], first), pc.less_equal(changes[CSN], last)))
    for *row, count in tuples(changes.drop([CSN])):
        bag[tuple(row)] += count if at >= through else -count
    assert all(count >= 0 for count in bag.values()), f"negative multiplicity in {table} at {at}"
    return +bag


def tuples(table: Any) -> Iterator[Row]:
    """NaN is one value here, as in Spark."""
    columns = [[NAN if value != value else value for value in column.to_pylist()] for column in table.columns]
    return zip(*columns, strict=True) if columns else iter(())


@contextmanager
def new_warehouse(folder: Path) -> Iterator[Warehouse]:
    with Warehouse.create(folder) as warehouse:
        yield warehouse


def capture(warehouse: Warehouse) -> Any:
    (done,) = warehouse.capture().sources
    assert done.problem is None, done.problem
    return done


ACCOUNTS: Sequence[Row] = (
    account(1, "ann", "10.00"),
    account(2, "bob", "20.50"),
    account(3, None, None),
)
NOTES: Sequence[Row] = (("same",), ("same",), ("",))
