"""Views of a warehouse before the judge of histories."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.spark.oracle.warehouses import fresh

from rollview.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOLD = """CREATE MATERIALIZED VIEW sold AS
SELECT c.state, SUM(o.amount) AS amount FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.state"""
LARGE = "CREATE MATERIALIZED VIEW large AS SELECT id, amount FROM orders WHERE amount > 4"


def test_a_view_is_complete_so_far_complete_and_after_maintenance_strong(spark: SparkSession, tmp_path: Path) -> None:
    shop = fresh(spark, tmp_path)
    shop.sql("CREATE TABLE customers (id BIGINT, state STRING)")
    shop.sql("CREATE TABLE orders (customer BIGINT, amount BIGINT)")
    shop.sql("CREATE TABLE other (id BIGINT)")
    shop.create_view(SOLD)
    begin = shop.snapshot().moment.csn
    shop.sql("INSERT INTO customers VALUES (1, 'CA'), (2, 'NY')")
    shop.sql("INSERT INTO orders VALUES (1, 5), (2, 7)")
    shop.sql("INSERT INTO other VALUES (1)")
    shop.sql("UPDATE customers SET state = 'NY' WHERE id = 1")
    shop.refresh()
    told = shop.check_history("sold")
    assert (told.level, told.so_far, told.reason) == ("complete", False, None)
    # The table that it does not read makes no state of its own.
    shown = {one.version - begin: one.rows for one in told.versions}
    assert shown == {0: "0 rows", 1: "0 rows", 2: "2 rows", 4: "1 rows"}
    some = shop.check_history("sold", after=begin + 2, through=begin + 3)
    assert [one.version - begin for one in some.versions] == [2, 3]
    with pytest.raises(UsageError, match="can be read together"):
        shop.check_history("sold", after=begin + 3, through=begin + 2)
    shop.sql("INSERT INTO orders VALUES (1, 1)")
    assert shop.check_history("sold", after=begin + 4).so_far
    shop.maintain(("sold",), compress_before=begin + 4)
    told = shop.check_history("sold")
    assert (told.level, told.breaks) == ("strong", "complete")
    assert "cannot be read" in str(told.reason)


def test_a_wrong_row_is_found(spark: SparkSession, tmp_path: Path) -> None:
    shop = fresh(spark, tmp_path)
    shop.sql("CREATE TABLE orders (id BIGINT, amount BIGINT)")
    shop.create_view(LARGE)
    shop.sql("INSERT INTO orders VALUES (1, 5), (2, 7)")
    shop.refresh()
    # In the extent and in the delta alike, so that the store's own checks of counts see nothing.
    for path in (shop.root / "data" / shop.snapshot().get("large").folder).rglob("*.parquet"):
        table = pq.read_table(path)
        if "amount" in table.column_names:
            place, field = table.column_names.index("amount"), table.schema.field("amount")
            wrong = pa.array([value + 1 for value in table.column("amount").to_pylist()], field.type)
            pq.write_table(table.set_column(place, field, wrong), path)
    told = shop.check_history("large")
    assert any(one.reflects is None for one in told.versions)
    assert told.level in ("convergent", "not convergent")
    assert "it is not what its definition gives" in str(told.reason)
    assert told.missing or told.surplus


def test_versions_that_readers_got_are_judged_in_their_order(spark: SparkSession, tmp_path: Path) -> None:
    shop = fresh(spark, tmp_path)
    shop.sql("CREATE TABLE orders (id BIGINT, amount BIGINT)")
    shop.create_view(LARGE)
    first = shop.snapshot().moment.csn
    shop.sql("INSERT INTO orders VALUES (1, 5)")
    shop.refresh()
    shop.sql("INSERT INTO orders VALUES (2, 1)")
    shop.sql("INSERT INTO orders VALUES (3, 6)")
    shop.refresh()
    # The commit between changes nothing that the view shows.
    told = shop.check_history("large", published=True)
    assert (told.level, told.reason) == ("complete", None)
    assert [one.version - first for one in told.versions] == [0, 1, 3]
    shop.sql("INSERT INTO orders VALUES (4, 7)")
    shop.sql("INSERT INTO orders VALUES (5, 8)")
    shop.refresh()
    told = shop.check_history("large", published=True)
    assert (told.level, told.reason) == ("strong", f"csn {first + 4} was passed, and not published")
    shop.roll(["large"], first + 3)
    shop.roll(["large"], "latest")
    told = shop.check_history("large", published=True)
    assert (told.level, told.breaks) == ("weak", "strong")
    assert told.reason == f"csn {first + 3} was published after csn {first + 5}"
    assert shop.check_history("large").level == "complete", "every one of them can be read"
