"""A captured column gets a wider type: views that follow go on with it, exact at every csn; others wait."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.sources.harness import Write, account, capture
from tests.sources.sqlite_harness import SqliteHarness

from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

VIEWS = {
    "plain": "SELECT id, balance FROM account WHERE balance > 1",
    "totals": "SELECT owner, SUM(balance) AS total, MAX(balance) AS most, COUNT(*) AS n FROM account GROUP BY owner",
    "above": "SELECT p.id, p.balance * 2 AS twice FROM plain p JOIN account a ON a.id = p.id",
    "other": "SELECT id, owner FROM account",
}
REBUILD = """
    CREATE TABLE new (id INTEGER PRIMARY KEY, owner TEXT, balance DECIMAL(14,3));
    INSERT INTO new SELECT id, owner, balance FROM account;
    INSERT INTO new VALUES (9, 'ann', 12345678901.125);
    DROP TABLE account; ALTER TABLE new RENAME TO account
"""


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[SqliteHarness]:
    with closing(SqliteHarness(tmp_path)) as harness:
        yield harness


@pytest.fixture
def warehouse(spark: SparkSession, tmp_path: Path) -> Iterator[Warehouse]:
    with Warehouse.create(tmp_path / "w") as made, Warehouse.open(made.root, spark=spark) as opened:
        yield opened


def test_views_follow_a_wider_type_of_a_column_that_has_another_name_by_then(
    warehouse: Warehouse, bank: SqliteHarness
) -> None:
    warehouse.add_source("bank", bank.settings())
    warehouse.sql(f"CREATE MATERIALIZED VIEW plain AS {VIEWS['plain']}")
    bank.connection.execute("ALTER TABLE account RENAME COLUMN balance TO amount")
    capture(warehouse)
    bank.connection.executescript(REBUILD.replace("balance", "amount"))
    capture(warehouse)
    assert warehouse.snapshot().get("plain").state is None
    warehouse.refresh()
    assert {c.name: c.type for c in warehouse.snapshot().get("plain").schema}["balance"] == "decimal(14,3)"
    assert warehouse.verify("plain").equal


def test_views_follow_a_wider_type(warehouse: Warehouse, bank: SqliteHarness) -> None:
    warehouse.add_source("bank", bank.settings())
    for name, query in VIEWS.items():
        warehouse.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    warehouse.sql(
        "CREATE MATERIALIZED VIEW asks TBLPROPERTIES ('rollview.on_schema_change' = 'ask') AS "
        "SELECT id, balance FROM account"
    )
    bank.write(Write("account", None, account(8, "eve", "1.50")))
    capture(warehouse)
    bank.connection.executescript(REBUILD)
    capture(warehouse)
    bank.connection.execute("UPDATE account SET balance = balance + 0.125")
    capture(warehouse)
    stopped = [view.name for view in warehouse.snapshot().views() if view.state is not None]
    assert stopped == ["asks"]
    warehouse.refresh(list(VIEWS))
    newest = warehouse.snapshot().moment.csn
    types = {c.name: c.type for name in VIEWS for c in warehouse.snapshot().get(name).schema}
    assert (types["balance"], types["most"]) == ("decimal(14,3)", "decimal(14,3)")
    for name in VIEWS:
        for csn in range(1, newest + 1):
            found = warehouse.verify(name, csn)
            assert found.equal, (name, csn, found)
    assert warehouse.decide_view("asks", 1).steps == ("as it is",)
    warehouse.refresh(["asks"])
    assert warehouse.verify("asks").equal
