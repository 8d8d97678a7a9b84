"""A small shop whose rows at every csn are also kept in Python, and what plain readers see of it."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable
from tests.faults.crew import Place
from tests.sizes import times
from tests.spark.oracle.bags import Bag, assert_same, bag
from tests.spark.oracle.warehouses import PLAIN

from rollview.catalog import Part, Relation, Snapshot
from rollview.store.log import DeltaLog
from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = (
    "CREATE TABLE customer (id INT PRIMARY KEY, state STRING)",
    "CREATE TABLE orders (id INT PRIMARY KEY, customer INT REFERENCES customer (id), amount INT)",
    "CREATE TABLE visit (customer INT, page STRING)",
)
VIEWS = {
    "sales": "SELECT c.state, o.id, o.amount FROM orders o JOIN customer c ON o.customer = c.id",
    "by_state": "SELECT state, COUNT(*) AS n, SUM(amount) AS total FROM sales GROUP BY state",
    "visitors": "SELECT customer, MAX(page) AS furthest, COUNT(*) AS n FROM visit GROUP BY customer",
}
CUSTOMERS = {0: "CA", 1: "NY", 2: None}
STAGED = re.compile(r"s-[0-9a-f]{32}")

State = dict[str, Bag]


def statements(n: int) -> tuple[str, ...]:
    """The n-th transaction: several tables, inserts, updates and deletes, and rows that are there twice."""
    page = f"'p{n % 4}'"
    found = [
        f"INSERT INTO orders VALUES ({n}, {n % 3}, {10 * n})",
        f"INSERT INTO visit VALUES ({n % 3}, {page}), ({n % 3}, {page})",
        f"UPDATE orders SET amount = amount + 1 WHERE customer = {(n + 1) % 3}",
    ]
    return (*found, f"DELETE FROM visit WHERE page = 'p{(n + 1) % 4}'") if n % 3 == 0 else tuple(found)


def changed(state: State, n: int) -> State:
    """What the n-th transaction makes of the tables."""
    orders = Counter({(i, c, a + (c == (n + 1) % 3)): k for (i, c, a), k in state["orders"].items()})
    orders[n, n % 3, 10 * n + (n % 3 == (n + 1) % 3)] += 1
    visits = Counter(state["visit"])
    visits[n % 3, f"p{n % 4}"] += 2
    if n % 3 == 0:
        visits = Counter({row: k for row, k in visits.items() if row[1] != f"p{(n + 1) % 4}"})
    return {**state, "orders": orders, "visit": visits}


def view(name: str, state: State) -> Bag:
    if name == "sales":
        states = dict(state["customer"].keys())
        return bag((states[c], i, a) for i, c, a in state["orders"].elements())
    groups: dict[Any, list[Any]] = defaultdict(list)
    if name == "by_state":
        for group, _, amount in view("sales", state).elements():
            groups[group].append(amount)
        return bag((group, len(amounts), sum(amounts)) for group, amounts in groups.items())
    for customer, page in state["visit"].elements():
        groups[customer].append(page)
    return bag((customer, max(pages), len(pages)) for customer, pages in groups.items())


@dataclass
class Shop:
    """``states``: the tables at every csn. ``count``: transactions so far, tried or done."""

    place: Place
    spark: SparkSession
    states: list[State] = field(default_factory=list)
    count: int = 0

    @classmethod
    def founded(cls, place: Place, spark: SparkSession, first: int = 0) -> Shop:
        """``first``: how many transactions are left out, so that others follow."""
        Warehouse.create(place.root, place.url).close()
        shop = cls(place, spark, [{"customer": Counter(), "orders": Counter(), "visit": Counter()}], first)
        with shop.opened() as warehouse:
            warehouse.sql(*TABLES)
            values = ", ".join(f"({i}, {'NULL' if s is None else repr(s)})" for i, s in CUSTOMERS.items())
            warehouse.sql(f"INSERT INTO customer VALUES {values}")
            shop.states.append({**shop.states[0], "customer": bag(CUSTOMERS.items())})
            for name, query in VIEWS.items():
                warehouse.create_view(f"CREATE MATERIALIZED VIEW {name} AS {query}")
            shop.commit(warehouse)
            warehouse.refresh()
        return shop

    def opened(self) -> Warehouse:
        """As the next command would: a new object that knows nothing of what was before."""
        DeltaLog._known.clear()
        warehouse = self.place.open(self.spark)
        for key, value in PLAIN.items():
            warehouse.spark.conf.set(key, value)
        return warehouse

    def next(self) -> int:
        self.count += 1
        return self.count

    def commit(self, warehouse: Warehouse, n: int | None = None) -> None:
        number = self.next() if n is None else n
        warehouse.sql(*statements(number))
        self.committed(number)

    def committed(self, n: int) -> None:
        self.states.append(changed(self.states[-1], n))

    @property
    def csn(self) -> int:
        return len(self.states) - 1

    def rows(self, name: str, csn: int) -> Bag:
        state = self.states[csn]
        return state[name] if name in state else view(name, state)


def part(root: Path, relation: Relation, which: Part) -> list[tuple[Any, ...]]:
    """The rows of a pinned version, without rollview and without Spark."""
    folder = root / "data" / relation.folder / which
    data = DeltaTable(folder, version=relation.pins[which].version).to_pyarrow_table()
    return list(zip(*(column.to_pylist() for column in data.columns), strict=True))


def table_at_each(root: Path, table: Relation, csns: Iterable[int]) -> Iterator[tuple[int, Bag]]:
    """State and delta, read once, added up in Python."""
    state, at = bag(part(root, table, Part.STATE)), table.pins[Part.STATE].through
    delta = part(root, table, Part.DELTA)
    for csn in csns:
        rows = Counter(state)
        for *row, count, when in delta:
            sign = 1 if at < when <= csn else -1 if csn < when <= at else 0
            rows[tuple(row)] += sign * count
        assert all(count >= 0 for count in rows.values()), f"{table.name} at {csn}: {rows}"
        yield csn, +rows


def published(root: Path, snapshot: Snapshot, names: Iterable[str] = VIEWS) -> dict[str, tuple[int, Bag]]:
    views = [snapshot.get(name) for name in names]
    return {v.name: (v.pins[Part.EXTENT].through, bag(part(root, v, Part.EXTENT))) for v in views}


def check_stored(shop: Shop, snapshot: Snapshot, newest: int | None = None) -> None:
    """Tables at every csn, or at so many of the newest, and extents at theirs, as they lie on the disk."""
    root = shop.place.root
    assert snapshot.moment.csn == shop.csn
    for name in shop.states[0]:
        oldest = max(snapshot.get(name).created, 0 if newest is None else shop.csn + 1 - newest)
        for csn, rows in table_at_each(root, snapshot.get(name), range(oldest, shop.csn + 1)):
            assert_same(rows, shop.rows(name, csn), f"{name} at {csn}")
    for name, (csn, rows) in published(root, snapshot).items():
        assert_same(rows, shop.rows(name, csn), f"extent of {name} at {csn}")


def check_ledger(shop: Shop, warehouse: Warehouse) -> None:
    """Every transaction from the horizon on once, without a hole, with the rows it changed, at times that grow."""
    entries, horizon = warehouse.catalog.ledger(), warehouse.catalog.horizon().csn
    assert [entry.csn for entry in entries if entry.csn > horizon] == list(range(horizon + 1, shop.csn + 1))
    assert len({entry.transaction for entry in entries}) == len(entries)
    times = [entry.ledger_time for entry in entries]
    assert times == sorted(set(times))
    for entry in entries:
        before, after = shop.states[entry.csn - 1], shop.states[entry.csn]
        told = {change.relation: (change.inserted, change.deleted) for change in entry.changes}
        for name in before:
            inserted, deleted = after[name] - before[name], before[name] - after[name]
            assert told.get(name, (0, 0)) == (inserted.total(), deleted.total()), (entry.csn, name)


def check_every_csn(shop: Shop, warehouse: Warehouse, verify: int = 2) -> int:
    """The first rows with the changes at every csn in reach, rows as rollview reads them at every fourth, and as it
    recomputes them at some. Returns how many.
    """
    from tests.spark.oracle.model import by_csn

    verified = 0
    for name in VIEWS:
        view = warehouse.snapshot().get(name)
        csns = range(view.pins[Part.DELTA].after, view.pins[Part.DELTA].through + 1)
        rows = bag(warehouse.read(name, as_of=csns[0]).collect())
        changes = [tuple(row) for row in warehouse.delta(name, csns[0], csns[-1]).collect()]
        for csn in csns:
            for *row, count, when in changes:
                rows[tuple(row)] += count * (when == csn)
            assert_same(Counter({row: n for row, n in rows.items() if n}), shop.rows(name, csn), f"changes to {csn}")
        found = by_csn({csn: warehouse.read(name, as_of=csn) for csn in csns[:: times(4, full=1)]})
        for csn in found:
            assert_same(found[csn], shop.rows(name, csn), f"{name} at {csn}")
        for csn in csns[:: max(1, len(csns) // verify)]:
            verification = warehouse.verify(name, csn)
            assert verification.equal, verification
            verified += 1
    return verified


def folders(root: Path) -> set[str]:
    """Homes of relations and staging folders in them."""
    homes = [home for home in (root / "data").iterdir() if home.is_dir()]
    staged = [place for home in homes for place in home.glob("*/s-*")]
    return {str(place.relative_to(root / "data")) for place in (*homes, *staged)}


def pinned_folders(root: Path, snapshot: Snapshot, back: int = 0) -> set[str]:
    """Folders of the files that pinned versions name, or versions so many before them."""
    found = set()
    for relation in snapshot.relations.values():
        found.add(relation.folder)
        for which, pin in relation.pins.items():
            version = max(pin.version - back, 0)
            files = DeltaTable(root / "data" / relation.folder / which, version=version).file_uris()
            found |= {f"{relation.folder}/{which}/{place}" for file in files for place in STAGED.findall(file)}
    return found


def check_newest_is_pinned(shop: Shop, snapshot: Snapshot) -> None:
    """Who reads the newest version of a Delta table finds what rollview shows."""
    for relation in snapshot.relations.values():
        for part, pin in relation.pins.items():
            newest = DeltaTable(shop.place.root / "data" / relation.folder / part)
            named = set(newest.file_uris())
            newest.load_as_version(pin.version)
            assert named == set(newest.file_uris()), (relation.name, part)


def check_newest_is_readable(shop: Shop, snapshot: Snapshot) -> None:
    """Who reads the newest version of a Delta table finds its files, whether it is the published one or not."""
    for relation in snapshot.relations.values():
        for part in relation.pins:
            DeltaTable(shop.place.root / "data" / relation.folder / part).to_pyarrow_table()
