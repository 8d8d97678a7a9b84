"""No rows are kept where views read only changes, and every view is what the source was, at every csn."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.sources.harness import Bag, Write, account, capture, stored
from tests.sources.killing import killed
from tests.sources.postgres_harness import PostgresHarness
from tests.sources.sqlite_harness import SqliteHarness
from tests.sources.test_rows import change
from tests.spark.sources.test_needed import needed, read

from rollview.catalog import Part
from rollview.errors import OutOfReach, UsageError
from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


pytestmark = pytest.mark.spark

VIEWS: dict[str, tuple[str, Callable[[Bag, Bag], Bag]]] = {
    "sums": (
        "SELECT owner, COUNT(*) AS n, SUM(balance) AS s FROM account GROUP BY owner",
        lambda accounts, _: _sums(accounts),
    ),
    "rich": (
        "SELECT id, owner FROM account WHERE balance >= 10",
        lambda accounts, _: Counter((i, o) for i, o, b in accounts if b is not None and b >= 10),
    ),
    "own": (
        "SELECT a.id, a.owner FROM account a LEFT JOIN account b ON a.id = b.id",
        lambda accounts, _: Counter((i, o) for i, o, _ in accounts.elements()),
    ),
    "texts": (
        "SELECT owner AS x FROM account WHERE id < 6 UNION ALL SELECT text FROM note",
        lambda accounts, notes: Counter((o,) for i, o, _ in accounts.elements() if i < 6) + notes,
    ),
}
POOREST = "CREATE MATERIALIZED VIEW poorest AS SELECT owner, MIN(balance) AS m FROM account GROUP BY owner"


def _sums(accounts: Bag) -> Bag:
    found: dict[Any, list[Decimal | None]] = {}
    for _, owner, balance in accounts.elements():
        found.setdefault(owner, []).append(balance)
    known = {owner: [b for b in all_ if b is not None] for owner, all_ in found.items()}
    return Counter((owner, len(found[owner]), sum(known[owner]) if known[owner] else None) for owner in found)


class World:
    """A bank, a warehouse over it, and what each view had to be at each csn."""

    def __init__(self, bank: Any, warehouse: Warehouse) -> None:
        self.bank = bank
        self.warehouse = warehouse
        self.chance = random.Random(11)
        self.expected: dict[int, dict[str, Bag]] = {}

    def note(self) -> None:
        views = [view.name for view in self.warehouse.snapshot().views() if view.name in VIEWS]
        now = self.bank.rows("account"), self.bank.rows("note")
        self.expected[self.warehouse.snapshot().moment.csn] = {view: VIEWS[view][1](*now) for view in views}

    def move(self, times: int) -> None:
        for _ in range(times):
            change(self.bank, self.chance)
            capture(self.warehouse)
            self.note()

    def create(self, *names: str) -> None:
        for name in names:
            self.warehouse.create_view(f"CREATE MATERIALIZED VIEW {name} AS {VIEWS[name][0]}")
        self.note()

    def check(self) -> None:
        """All that was noted since the last time."""
        self.warehouse.refresh()
        for csn, views in self.expected.items():
            assert {view: read(self.warehouse, view, csn) for view in views} == views, csn
        self.expected.clear()

    def release(self) -> list[str | None]:
        done = self.warehouse.maintain(grace=timedelta(0))
        return [one.relation for one in done.actions if one.action == "release"]

    def files(self, table: str) -> int:
        home = self.warehouse.root / "data" / self.warehouse.snapshot().get(table).folder
        return len(list((home / Part.STATE).glob("s-*/**/*.parquet")))


@pytest.fixture(params=["sqlite"])
def bank(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    is_server = request.param == "postgres"
    made: Any = PostgresHarness(request.getfixturevalue("postgres_server")) if is_server else SqliteHarness(tmp_path)
    with closing(made):
        yield made


@pytest.fixture
def world(spark: SparkSession, bank: Any, tmp_path: Path) -> Iterator[World]:
    with Warehouse.create(tmp_path / "w") as made, closing(Warehouse.open(made.root, spark=spark)) as warehouse:
        warehouse.add_source("bank", needed(bank))
        yield World(bank, warehouse)


def test_views_over_changes_alone_are_exact_at_every_csn(world: World) -> None:
    warehouse = world.warehouse
    world.create("sums", "rich", "own")
    world.move(2)
    told = [one for one in warehouse.maintain(explain=True).actions if one.action == "release"]
    assert [(one.relation, one.reason) for one in told] == [
        ("account", "only its changes are read, by sums, rich, own")
    ]
    assert world.release() == ["account"]
    assert world.files("account") == 0
    assert warehouse.sources()[0].kept["account"] == "no rows kept: only changes are read, by sums, rich, own"
    world.move(3)
    world.check()
    for question in (
        lambda: warehouse.sql("SELECT COUNT(*) FROM account"),
        lambda: warehouse.read("account"),
        lambda: warehouse.verify("sums"),
        lambda: warehouse.refresh(["sums"], mode="recompute"),
    ):
        world.move(1)
        with pytest.raises(UsageError, match=r"(?i)no rows of table 'account' are kept") as refusal:
            question()
        assert "rollview source resnapshot bank" in (refusal.value.hint or "")
    # A view that reads rows comes: the table is copied anew, and what was there goes on through that csn.
    change(world.bank, world.chance)
    warehouse.create_view(POOREST)
    world.note()
    world.move(2)
    assert world.release() == []
    world.check()
    assert all(warehouse.verify(view).equal for view in ("sums", "rich", "poorest"))
    (anew,) = warehouse.snapshot().get("account").replaced
    with pytest.raises(OutOfReach):
        warehouse.read("account", anew - 1)
    with pytest.raises(OutOfReach):
        warehouse.delta("account", anew - 1)
    assert stored(warehouse, "account") == world.bank.rows("account")
    warehouse.drop_view("poorest")
    assert world.release() == ["account"]
    world.move(2)
    world.check()


@pytest.mark.parametrize("bank", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)], indirect=True)
def test_a_table_that_is_emptied_or_copied_again_gives_its_views_one_change(world: World) -> None:
    warehouse = world.warehouse
    world.create("sums", "texts")
    # Of two tables that a view reads together one is kept, so that the view can be recomputed from the other.
    assert world.release() == ["account"]
    world.move(2)
    world.bank.empty("account")
    world.bank.write(Write("account", None, account(5, "eve", "7.00")))
    capture(warehouse)
    world.note()
    world.move(1)
    world.check()
    assert world.release() == (["account"] if warehouse.snapshot().get("account").replaced else [])
    world.move(1)
    change(world.bank, world.chance)
    warehouse.resnapshot("bank")
    world.note()
    assert world.release() == []
    world.move(1)
    world.check()
    assert world.release() == ["account"]
    change(world.bank, world.chance)
    world.bank.lose()
    (lost,) = warehouse.capture().sources
    assert lost.problem is not None
    warehouse.resnapshot("bank")
    world.note()
    world.move(1)
    world.check()
    assert all(warehouse.verify(view).equal for view in ("sums", "texts"))


def test_killed_while_rows_go_and_while_they_come_again(world: World) -> None:
    warehouse, settings = world.warehouse, needed(world.bank)
    world.create("sums")
    killed("maintain", warehouse.root, settings, "release.published")
    assert not warehouse.snapshot().get("account").is_kept
    world.move(1)
    for step in ("widen.declared", "capture.computed", "capture.logged"):
        change(world.bank, world.chance)
        killed("widen", warehouse.root, settings, step)
        assert not warehouse.snapshot().get("account").is_kept
    killed("widen", warehouse.root, settings, "capture.published")
    assert stored(warehouse, "account") == world.bank.rows("account")
    capture(warehouse)
    world.note()
    world.move(1)
    world.check()
    assert warehouse.verify("sums").equal
    assert warehouse.catalog.steps(status="running") == ()
