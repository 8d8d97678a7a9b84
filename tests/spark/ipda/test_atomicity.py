"""Transactions are whole within a view and across views, and in their order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.sizes import times
from tests.spark.oracle.bags import Bag
from tests.spark.oracle.warehouses import PLAIN, assert_verified, fresh, rows

from rollview.catalog import Part
from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VIEWS = ("Withdrawals", "Deposits")
TRANSFERS = 8


@pytest.fixture
def bank(spark: SparkSession, tmp_path: Path) -> Iterator[Warehouse]:
    with fresh(spark, tmp_path / "bank") as warehouse:
        warehouse.sql("CREATE TABLE accounts (id STRING, amount INT)")
        for view, sign in zip(VIEWS, "<>", strict=True):
            warehouse.create_view(
                f"CREATE MATERIALIZED VIEW {view} AS "
                f"SELECT id, SUM(amount) AS amount FROM accounts WHERE amount {sign} 0 GROUP BY id"
            )
        yield warehouse


def transfer(warehouse: Warehouse, source: str, target: str, amount: int) -> None:
    warehouse.sql(
        f"INSERT INTO accounts VALUES ('{source}', {-amount})", f"INSERT INTO accounts VALUES ('{target}', {amount})"
    )


def total(found: Bag) -> int:
    return sum(amount * count for (_, amount), count in found.items())


def test_a_transfer_is_in_both_views_or_in_neither_while_all_run(bank: Warehouse, spark: SparkSession) -> None:
    """A writer commits transfers, a refresher publishes, a reader reads both views at one csn: never half of one."""
    written = threading.Event()
    seen: list[tuple[int, int, int]] = []
    published: list[set[int]] = []

    def write(own: Warehouse) -> None:
        for n in range(TRANSFERS):
            transfer(own, f"a{n % 3}", f"a{(n + 1) % 3}", 10 + n)
        written.set()

    def read(own: Warehouse) -> None:
        while not written.is_set() or len(seen) < 3:
            pins = [own.snapshot().get(view).pins for view in VIEWS]
            csn = min(pin[Part.DELTA].through for pin in pins)
            seen.append((csn, *(total(rows(own, view, csn)) for view in VIEWS)))
            published.append({own_view.pins[Part.EXTENT].through for own_view in own.snapshot().views()})

    def refresh(own: Warehouse) -> None:
        while not written.is_set():
            own.refresh()

    together(bank.root, spark, write, read, refresh)
    assert all(-withdrawn == deposited for _, withdrawn, deposited in seen), seen
    assert all(len(csns) == 1 for csns in published)
    bank.refresh()
    assert bank.snapshot().moment.csn == TRANSFERS
    totals = [[total(rows(bank, view, csn)) for view in VIEWS] for csn in range(TRANSFERS + 1)]
    assert totals == [[-moved, moved] for moved in (sum(range(10, 10 + n)) for n in range(TRANSFERS + 1))]
    assert_verified(bank)


def together(root: Path, spark: SparkSession, *work: Callable[[Warehouse], None]) -> None:
    """Each in a thread with a warehouse of its own on the same folder; the first error is raised here."""
    failures: list[BaseException] = []

    def run(one: Callable[[Warehouse], None]) -> None:
        try:
            with Warehouse.open(root, spark=spark) as own:
                for key, value in PLAIN.items():
                    own.spark.conf.set(key, value)
                one(own)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(one,)) for one in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=times(240, 3_600))
    if failures:
        raise failures[0]


def test_money_is_never_seen_in_a3_before_it_was_in_a2(bank: Warehouse) -> None:
    first, second = bank.transaction(), bank.transaction()
    x1, x2 = first.__enter__(), second.__enter__()
    x2.sql("INSERT INTO accounts VALUES ('a3', 100)")
    x1.sql("INSERT INTO accounts VALUES ('a1', -100)")
    x1.sql("INSERT INTO accounts VALUES ('a2', 100)")
    x2.sql("INSERT INTO accounts VALUES ('a2', -100)")
    first.__exit__(None, None, None)
    bank.propagate()
    second.__exit__(None, None, None)
    bank.propagate()
    assert (x1.csn, x2.csn) == (1, 2)
    deposits = {csn: {account for account, _ in rows(bank, "Deposits", csn)} for csn in (0, 1, 2)}
    assert deposits == {0: set(), 1: {"a2"}, 2: {"a2", "a3"}}
    for csn in (1, 2):
        bank.roll(VIEWS, csn)
        assert total(rows(bank, "Withdrawals")) == -total(rows(bank, "Deposits")) == -100 * csn
    assert_verified(bank)


def test_an_earlier_view_shows_a_part_of_what_a_later_one_shows(bank: Warehouse) -> None:
    for n in range(1, 4):
        transfer(bank, "a1", "a2", n)
    bank.propagate()
    bank.roll(["Withdrawals"], 1)
    bank.roll(["Deposits"], 3)
    assert (total(rows(bank, "Withdrawals")), total(rows(bank, "Deposits"))) == (-1, 6)
    assert rows(bank, "Deposits", 1) == {("a2", 1): 1}
