"""The six properties of Beyer et al., section 3, under every policy, and with all policies side by side.

1. nothing is lost; 2. nothing counts twice; 3. a transaction is whole in a view; 4. and across views; 5. order is kept;
6. a moment gives exactly what was committed by then.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.sizes import times
from tests.spark.ipda.test_atomicity import together, total, transfer
from tests.spark.oracle.warehouses import assert_verified, extent, fresh, rows

from rollview.catalog import Part
from rollview.core.names import COUNT, CSN
from rollview.core.states import Policy
from rollview.errors import LostLease, NotPassed, OutOfReach
from rollview.schedule import ViewsInCommits
from rollview.sources import SourceSettings, TableSettings
from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SIGNS = {"withdrawals": "<", "deposits": ">"}
ROLLED = (Policy.IPDA, Policy.DPDA)


class SteppingBack:
    """A wall clock that goes back by an hour whenever it is asked."""

    def __init__(self) -> None:
        self.now = datetime(2026, 6, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now -= timedelta(hours=1)
        return self.now


@pytest.fixture
def bank(spark: SparkSession, tmp_path: Path) -> Iterator[Warehouse]:
    with fresh(spark, tmp_path / "bank", wall_clock=SteppingBack()) as warehouse:
        warehouse.sql("CREATE TABLE accounts (id STRING, amount INT)")
        for policy in Policy:
            make_views(warehouse, policy)
        yield warehouse


def make_views(warehouse: Warehouse, policy: Policy) -> None:
    for kind, sign in SIGNS.items():
        warehouse.create_view(
            f"CREATE MATERIALIZED VIEW {kind}_{policy} TBLPROPERTIES ('rollview.policy' = '{policy}') AS "
            f"SELECT id, SUM(amount) AS amount FROM accounts WHERE amount {sign} 0 GROUP BY id"
        )


def check_one_state(warehouse: Warehouse) -> None:
    """Both views of a policy are stored at one csn."""
    snapshot = warehouse.snapshot()
    for policy in Policy:
        assert len({snapshot.get(f"{kind}_{policy}").pins[Part.EXTENT].through for kind in SIGNS}) == 1, policy


def check_published(warehouse: Warehouse) -> None:
    """What any reader of the stored rows sees is one state of the tables, in both views of a policy (3, 4)."""
    check_one_state(warehouse)
    for policy in Policy:
        names = [f"{kind}_{policy}" for kind in SIGNS]
        assert total(extent(warehouse, names[0])) == -total(extent(warehouse, names[1]))


def test_the_six_properties_under_all_policies_side_by_side(bank: Warehouse) -> None:
    first, second = bank.transaction(), bank.transaction()
    x1, x2 = first.__enter__(), second.__enter__()
    x2.sql("INSERT INTO accounts VALUES ('a3', 100)")
    x1.sql("INSERT INTO accounts VALUES ('a1', -100)")
    bank.refresh()
    x1.sql("INSERT INTO accounts VALUES ('a2', 100)")
    x2.sql("INSERT INTO accounts VALUES ('a2', -100)")
    first.__exit__(None, None, None)
    check_published(bank)
    bank.propagate()
    second.__exit__(None, None, None)
    check_published(bank)
    for again in (bank.propagate, bank.refresh, bank.refresh):
        again()
        check_published(bank)
    money = {0: {}, 1: {("a2", 100): 1}, 2: {("a2", 100): 1, ("a3", 100): 1}}
    moments = {entry.csn: entry.ledger_time for entry in bank.catalog.ledger()}
    assert moments[1] < moments[2], "ledger time grows although the clock went back"
    for policy in (Policy.IMMEDIATE, *ROLLED):
        for csn, expected in money.items():
            assert rows(bank, f"deposits_{policy}", csn) == expected, (policy, csn)
        assert rows(bank, f"deposits_{policy}", moments[1]) == money[1]
        assert rows(bank, f"deposits_{policy}", moments[2]) == money[2]
    for policy in ROLLED:
        names = [f"{kind}_{policy}" for kind in SIGNS]
        for csn in (1, 0, 2, 1, 2):
            bank.roll(names, csn)
            assert rows(bank, names[1]) == money[csn]
            check_published(bank)
    assert rows(bank, "deposits_snapshot") == money[2]
    with pytest.raises(OutOfReach):
        rows(bank, "deposits_snapshot", 1)
    assert_verified(bank)


def test_writers_who_meet_in_a_group_wait_and_never_conflict(spark: SparkSession, tmp_path: Path) -> None:
    writers, each = times(3, 8), times(2, 200)
    with fresh(spark, tmp_path / "bank") as bank:
        bank.sql("CREATE TABLE accounts (id STRING, amount INT)")
        for policy in Policy:
            make_views(bank, policy)
        done = threading.Semaphore(0)

        def write(own: Warehouse) -> None:
            try:
                for n in range(each):
                    transfer(own, "a", "b", n + 1)
            finally:
                done.release()

        def refresh(own: Warehouse) -> None:
            ended = 0
            while ended < writers:
                own.refresh()
                check_one_state(own)
                ended += done.acquire(timeout=1)

        together(bank.root, spark, *[write] * writers, refresh)
        newest = bank.snapshot().moment.csn
        assert newest == writers * each
        assert {bank.snapshot().get(f"{kind}_immediate").pins[Part.EXTENT].through for kind in SIGNS} == {newest}
        bank.refresh()
        check_published(bank)
        for policy in (Policy.IMMEDIATE, *ROLLED):
            moved = [moved_at_each_csn(bank, f"{kind}_{policy}") for kind in SIGNS]
            assert moved[0] == {csn: -amount for csn, amount in moved[1].items()}
            assert moved[1].keys() == set(range(1, newest + 1))
            for csn in range(0, newest + 1, max(1, newest // 50)):
                withdrawn, deposited = (total(rows(bank, f"{kind}_{policy}", csn)) for kind in SIGNS)
                assert deposited == -withdrawn == sum(moved[1][before] for before in range(1, csn + 1)), (policy, csn)
        assert_verified(bank)


def moved_at_each_csn(warehouse: Warehouse, name: str) -> dict[int, int]:
    """How much a view's total grew, by csn."""
    moved: dict[int, int] = {}
    for row in warehouse.delta(name, 0).collect():
        moved[row[CSN]] = moved.get(row[CSN], 0) + row["amount"] * row[COUNT]
    return moved


def test_debits_and_credits_are_never_taken_for_one_state(spark: SparkSession, tmp_path: Path) -> None:
    """Beyer et al., section 6: valid times from commits do not let an old view go with new debits."""
    with fresh(spark, tmp_path / "books") as books:
        books.sql("CREATE TABLE debits (value INT)", "CREATE TABLE credits (value INT)")
        books.create_view("CREATE MATERIALIZED VIEW total_credits AS SELECT SUM(value) AS total FROM credits")
        with books.transaction() as entry:
            entry.sql("INSERT INTO debits VALUES (1)")
            books.refresh()
            entry.sql("INSERT INTO credits VALUES (1)")
        debits, credited, totals = (books.valid_time(name) for name in ("debits", "credits", "total_credits"))
        assert (totals.first, totals.through) == (0, 0)
        assert (debits.first, credited.first) == (1, 1)
        assert debits.since == credited.since == totals.until
        books.refresh()
        totals = books.valid_time("total_credits")
        assert (totals.first, totals.through, totals.since) == (1, 1, debits.since)


def test_views_over_captured_tables_follow_and_hold_up_no_source(spark: SparkSession, tmp_path: Path) -> None:
    with (
        closing(sqlite3.connect(tmp_path / "shop.db", isolation_level=None)) as shop,
        fresh(spark, tmp_path / "w") as warehouse,
    ):
        shop.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, state TEXT, amount INTEGER)")
        shop.execute("INSERT INTO orders VALUES (1, 'CA', 10), (2, 'WI', 5)")
        tables = (TableSettings("orders", "orders"),)
        warehouse.add_source("shop", SourceSettings("sqlite", str(tmp_path / "shop.db"), tables))
        for name, policy, query in (
            ("totals", "immediate", "SELECT state, SUM(amount) AS amount FROM orders GROUP BY state"),
            ("shares", "immediate", "SELECT id, 100 / amount AS share FROM orders"),
            ("listed", "ipda", "SELECT id, state FROM orders"),
        ):
            properties = f"TBLPROPERTIES ('rollview.policy' = '{policy}')"
            warehouse.create_view(f"CREATE MATERIALIZED VIEW {name} {properties} AS {query}")
        shop.execute("UPDATE orders SET amount = 7 WHERE id = 2")
        shop.execute("INSERT INTO orders VALUES (3, 'CA', 1)")
        done = warehouse.capture()
        assert {marks(warehouse, name) for name in ("totals", "shares")} == {(done.csn, done.csn)}
        assert marks(warehouse, "listed") == (done.csn, done.csn - 1)
        assert_verified(warehouse)
        shop.execute("INSERT INTO orders VALUES (4, 'CA', 0)")
        done = warehouse.capture()
        assert done.sources[0].problem is None
        assert marks(warehouse, "totals") == (done.csn, done.csn)
        assert marks(warehouse, "shares") == (done.csn - 1, done.csn - 1)
        status = {view.name: view for view in warehouse.status().views}
        assert status["shares"].state == "stopped"
        assert "DIVIDE_BY_ZERO" in (status["shares"].problem or "")
        assert_verified(warehouse, "totals", "listed")
        assert warehouse.catalog.steps(status="running") == ()


def test_a_moment_gives_what_two_sources_had_committed_by_then(spark: SparkSession, tmp_path: Path) -> None:
    """Property 6 under each policy; and views that follow come along with a source that is copied again."""
    files = {name: tmp_path / f"{name}.db" for name in ("north", "south")}
    with ExitStack() as stack:
        shops = {
            name: stack.enter_context(closing(sqlite3.connect(file, isolation_level=None)))
            for name, file in files.items()
        }
        warehouse = stack.enter_context(fresh(spark, tmp_path / "w"))
        for name, shop in shops.items():
            shop.execute(f"CREATE TABLE {name} (id INTEGER PRIMARY KEY, amount INTEGER)")
            warehouse.add_source(name, SourceSettings("sqlite", str(files[name]), (TableSettings(name, name),)))
        policies = (Policy.IMMEDIATE, *ROLLED)
        for policy in policies:
            properties = f"TBLPROPERTIES ('rollview.policy' = '{policy}')"
            query = "SELECT amount FROM north UNION ALL SELECT amount FROM south"
            warehouse.create_view(f"CREATE MATERIALIZED VIEW all_{policy} {properties} AS {query}")
        for number, name in enumerate(("north", "south", "north"), 1):
            shops[name].execute(f"INSERT INTO {name} VALUES ({number}, {number})")
            warehouse.capture()
        moments = [entry.effective for entry in warehouse.catalog.ledger()][-3:]
        while min(one.known or datetime.min.replace(tzinfo=UTC) for one in warehouse.sources()) <= moments[-1]:
            warehouse.capture()
        warehouse.refresh()
        for policy in policies:
            for count, moment in enumerate(moments, 1):
                assert rows(warehouse, f"all_{policy}", moment) == {(n,): 1 for n in range(1, count + 1)}
        shops["south"].execute("INSERT INTO south VALUES (9, 9)")
        warehouse.capture(["south"])
        with pytest.raises(NotPassed, match="'north'"):
            rows(warehouse, "all_immediate", datetime.now(UTC))
        shops["north"].execute("DELETE FROM north")
        warehouse.resnapshot("north")
        newest = warehouse.snapshot().moment.csn
        assert marks(warehouse, "all_immediate") == (newest, newest)
        assert marks(warehouse, "all_ipda")[0] == newest
        assert marks(warehouse, "all_dpda")[0] < newest
        assert rows(warehouse, "all_immediate") == {(2,): 1, (9,): 1}


def marks(warehouse: Warehouse, name: str) -> tuple[int, int]:
    pins = warehouse.snapshot().get(name).pins
    return pins[Part.DELTA].through, pins[Part.EXTENT].through


def test_a_view_that_another_holds_is_waited_for_or_left_behind(bank: Warehouse) -> None:
    """An immediate view is waited for; one that may follow later is not, and comes along with the next commit."""
    for kind in SIGNS:
        bank.drop_view(f"{kind}_immediate")
    with bank.catalog.lease("relation:deposits_ipda"):
        writing = threading.Thread(target=lambda: transfer(bank, "a", "b", 1))
        writing.start()
        writing.join(120)
    assert marks(bank, "deposits_ipda")[0] == 0
    assert bank.snapshot().moment.csn == 1
    transfer(bank, "a", "b", 2)
    assert marks(bank, "deposits_ipda")[0] == 2
    assert rows(bank, "deposits_ipda", 1) == {("b", 1): 1}


def test_a_capture_that_loses_its_views_leaves_no_step(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        closing(sqlite3.connect(tmp_path / "shop.db", isolation_level=None)) as shop,
        fresh(spark, tmp_path / "w") as warehouse,
    ):
        shop.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, amount INTEGER)")
        tables = (TableSettings("orders", "orders"),)
        warehouse.add_source("shop", SourceSettings("sqlite", str(tmp_path / "shop.db"), tables))
        properties = "TBLPROPERTIES ('rollview.policy' = 'ipda')"
        warehouse.create_view(f"CREATE MATERIALIZED VIEW listed {properties} AS SELECT id FROM orders")
        shop.execute("INSERT INTO orders VALUES (1, 10)")

        def lost(*about: Any) -> Any:
            raise LostLease("view 'listed'")

        with monkeypatch.context() as patched:
            patched.setattr(ViewsInCommits, "along", lost)
            assert warehouse.capture().sources[0].problem is not None
        assert warehouse.catalog.steps(status="running") == ()
        warehouse.capture()
        assert rows(warehouse, "orders") == {(1, 10): 1}
        assert_verified(warehouse)
