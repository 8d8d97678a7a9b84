"""Queries beside writers and refreshes: every answer is one state of the tables, the one at the csn that it names."""

from __future__ import annotations

import threading
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from tests.sizes import times
from tests.spark.ipda.test_atomicity import transfer
from tests.spark.oracle.warehouses import fresh

from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERIES = times(6, full=2_000)
ASKED = (
    # Named by the query, each of them stored at a csn of its own.
    "SELECT d.amount + w.amount AS money, d.n - w.n AS more FROM deposits d CROSS JOIN withdrawals w",
    # One from views that hold it.
    "SELECT COALESCE(SUM(amount), 0) AS money, COUNT(*) % 2 AS more FROM accounts",
    # A view and the table below it.
    "SELECT d.amount + a.amount AS money, d.n - a.n AS more FROM deposits d CROSS JOIN "
    "(SELECT SUM(amount) AS amount, COUNT(*) AS n FROM accounts WHERE amount < 0) a",
)
BOUNDS = (None, "3 commits", "1 minute")


def test_no_answer_mixes_two_states(spark: SparkSession, tmp_path: Path) -> None:
    with fresh(spark, tmp_path / "bank") as bank:
        bank.sql("CREATE TABLE accounts (id STRING, amount INT)")
        transfer(bank, "a", "b", 1)
        for name, sign in (("deposits", ">"), ("withdrawals", "<")):
            text = f"SELECT SUM(amount) AS amount, COUNT(*) AS n FROM accounts WHERE amount {sign} 0"
            bank.create_view(f"CREATE MATERIALIZED VIEW {name} AS {text}")
        by_id = "SELECT id, SUM(amount) AS a, COUNT(*) AS n FROM accounts GROUP BY id"
        bank.create_view(f"CREATE MATERIALIZED VIEW by_id AS {by_id}")
        done, failed = threading.Event(), list[BaseException]()

        def beside(work: str) -> None:
            try:
                with Warehouse.open(bank.root, spark=spark) as own:
                    while not done.is_set():
                        if work == "refresh":
                            own.refresh([Random().choice(("deposits", "withdrawals", "by_id"))])
                        else:
                            transfer(own, "a", "b", Random().randint(1, 9))
            except BaseException as error:
                failed.append(error)
                raise

        threads = [threading.Thread(target=beside, args=(work,)) for work in ("write", "refresh")]
        for thread in threads:
            thread.start()
        try:
            answers = [_answered(bank, number) for number in range(QUERIES)]
        finally:
            done.set()
            for thread in threads:
                thread.join()
        assert failed == []
        assert answers == [(0, 0)] * QUERIES
        assert bank.snapshot().moment.csn > 1


def _answered(bank: Warehouse, number: int) -> tuple[int, int]:
    answer = bank.query(ASKED[number % len(ASKED)], max_staleness=BOUNDS[number // len(ASKED) % len(BOUNDS)])
    assert answer.fetch is not None
    (row,) = answer.fetch().rows.to_pylist()
    return int(row["money"]), int(row["more"])
