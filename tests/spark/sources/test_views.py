"""Views over tables of several sources, refreshed and checked at every csn."""

from __future__ import annotations

import os
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rollview.errors import UsageError
from rollview.results import Captured, Refreshed
from rollview.sources import SourceSettings, TableSettings
from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

VIEW = """
    CREATE MATERIALIZED VIEW revenue AS
    SELECT p.region, SUM(o.amount) AS revenue, COUNT(*) AS orders
    FROM orders o JOIN places p ON o.state = p.state GROUP BY p.region
"""


def test_a_view_over_two_sources_is_right_at_every_csn(spark: SparkSession, tmp_path: Path) -> None:
    places = tmp_path / "inbox" / "places"
    places.mkdir(parents=True)

    def put(name: str, text: str) -> None:
        (places / name).write_text(text)
        os.utime(places / name, (1, 1))

    put("a.csv", "state,region\nCA,west\nWI,north\n")
    with (
        closing(sqlite3.connect(tmp_path / "shop.db", isolation_level=None)) as shop,
        Warehouse.create(tmp_path / "w") as made,
    ):
        shop.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, state TEXT, amount DECIMAL(12,2))")
        shop.execute("INSERT INTO orders VALUES (1, 'CA', 9.90), (2, 'WI', 5.00), (3, 'NY', 1.00)")
        warehouse = Warehouse.open(made.root, spark=spark)
        orders = TableSettings("orders", "orders")
        warehouse.add_source("shop", SourceSettings("sqlite", str(tmp_path / "shop.db"), (orders,)))
        types = {"state": "string", "region": "string"}
        inbox = TableSettings("places", "places", types, ("state",), "csv")
        warehouse.add_source("inbox", SourceSettings("files", str(tmp_path / "inbox"), (inbox,)))
        warehouse.create_view(VIEW)
        shop.execute("REPLACE INTO orders VALUES (2, 'WI', 7.50)")
        warehouse.capture()
        put("b.csv", "state,region\nNY,east\n")
        warehouse.capture()
        shop.execute("DELETE FROM orders WHERE id = 1")
        warehouse.capture()
        (places / "b.csv").unlink()
        *captured, refreshed = warehouse.run(0.1, threading.Event(), 1)
        assert all(isinstance(one, Captured) for one in captured)
        assert isinstance(refreshed, Refreshed)
        last = warehouse.snapshot().moment.csn
        assert last == 6
        for csn in range(2, last + 1):
            assert warehouse.verify("revenue", at=csn).equal
        rows = {tuple(row) for row in warehouse.read("revenue").collect()}
        assert {(region, str(amount), count) for region, amount, count in rows} == {("north", "7.50", 1)}
        with pytest.raises(UsageError, match="captured from source 'shop'"):
            warehouse.sql("INSERT INTO orders VALUES (9, 'CA', 1)")


def test_a_change_of_columns_stops_only_the_views_that_name_them(spark: SparkSession, tmp_path: Path) -> None:
    with (
        closing(sqlite3.connect(tmp_path / "shop.db", isolation_level=None)) as shop,
        Warehouse.create(tmp_path / "w") as made,
    ):
        shop.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, state TEXT, amount DECIMAL(12,2), note TEXT)")
        shop.execute("INSERT INTO orders VALUES (1, 'CA', 9.90, 'x'), (2, 'WI', 5.00, 'y')")
        warehouse = Warehouse.open(made.root, spark=spark)
        orders = TableSettings("orders", "orders")
        warehouse.add_source("shop", SourceSettings("sqlite", str(tmp_path / "shop.db"), (orders,)))
        warehouse.create_view(
            "CREATE MATERIALIZED VIEW by_state TBLPROPERTIES ('rollview.on_schema_change' = 'ask') AS "
            "SELECT state, SUM(amount) AS s FROM orders GROUP BY state"
        )
        warehouse.create_view("CREATE MATERIALIZED VIEW follows AS SELECT * FROM orders WHERE state <> 'WI'")
        warehouse.create_view("CREATE MATERIALIZED VIEW states AS SELECT state, s * 2 AS d FROM by_state")
        warehouse.create_view("CREATE MATERIALIZED VIEW counted AS SELECT COUNT(*) AS n, SUM(amount) AS s FROM orders")
        shop.execute("ALTER TABLE orders RENAME COLUMN note TO remark")
        shop.execute("UPDATE orders SET amount = 1 WHERE id = 1")
        (captured,) = warehouse.capture().sources
        assert "no view is affected" in captured.notes[0]
        warehouse.refresh()
        shop.execute("ALTER TABLE orders RENAME COLUMN state TO region")
        shop.execute("INSERT INTO orders VALUES (3, 'NY', 7, 'z')")
        (captured,) = warehouse.capture().sources
        assert "stopped: by_state, states" in captured.notes[0]
        warehouse.refresh()
        states = {view.name: (view.state, view.csn) for view in warehouse.status().views}
        # what SQLite shows at once, columns and rows, is one csn
        stopped, going_on = ("schema_changed", 2), ("ok", 3)
        assert states == {"by_state": stopped, "states": stopped, "counted": going_on, "follows": going_on}
        assert warehouse.read("orders").columns == ["id", "region", "amount", "remark"]
        assert warehouse.read("orders", 1).columns == ["id", "state", "amount", "note"]
        assert warehouse.read("follows").columns == ["id", "state", "amount", "note"]
        assert {row.note for row in warehouse.read("follows").collect()} == {"x", "z"}
        assert warehouse.verify("follows").equal
        assert warehouse.verify("follows", at=2).equal
        assert {(row.state, str(row.s)) for row in warehouse.read("by_state").collect()} == {
            ("CA", "1.00"),
            ("WI", "5.00"),
        }
        assert len(warehouse.read("by_state", as_of=1).collect()) == 2
        assert warehouse.verify("counted").equal
        assert warehouse.verify("counted", at=1).equal
        with pytest.raises(UsageError, match="'by_state' is stopped at csn 2"):
            warehouse.refresh(("by_state",))
        warehouse.drop_view("states")
        query = "SELECT id % 2 AS odd, SUM(amount) AS s FROM orders GROUP BY id % 2"
        warehouse.create_view(f"CREATE OR REPLACE MATERIALIZED VIEW by_state AS {query}")
        shop.execute("DELETE FROM orders WHERE id = 1")
        warehouse.capture()
        warehouse.refresh()
        assert warehouse.verify("by_state").equal
        assert all(view.state == "ok" for view in warehouse.status().views)
