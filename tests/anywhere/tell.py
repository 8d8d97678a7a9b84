"""The demo's story, small, in a process of its own: ``python -m tests.anywhere.tell KIND FOLDER [SERVER]``.

Whatever the session, every step ends in the same rows; those of views are compared by others afterwards.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from demo import story

import rollview
from rollview import Warehouse
from rollview.engine import java
from rollview.errors import RollviewError
from rollview.project import load_project
from tests.servers.java import SMALL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VIEWS = ("revenue_by_state", "sales", "large_sales_by_state")
FOREIGN = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "3",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "Asia/Tokyo",
    "spark.sql.caseSensitive": "true",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.parquet.outputTimestampType": "INT96",
}
"""Settings of a user that differ from ours in everything that matters."""


def main() -> None:
    kind, folder, *server = sys.argv[1:]
    story.CUSTOMERS, story.ORDERS, story.LINES = 200, 1_200, 4_000
    if kind == "configured":
        with load_project(Path(folder)).open() as wh:
            tell(wh)
    else:
        with users_session(Path(folder), *server) as spark, rollview.open(Path(folder) / "w", spark=spark) as wh:
            if kind == "given":
                tell(wh)
            add_rows_of_the_users_session(wh, spark)


def tell(wh: Warehouse) -> None:
    story.fill(wh)
    story.create_views(wh)
    first = {name: bag(wh, name) for name in VIEWS}
    story.change_things_at_once(wh)
    story.refresh_beside_recomputation(wh)
    newest = {name: bag(wh, name) for name in VIEWS}
    story.roll_back_in_time(wh)
    story.prove_it(wh)
    wh.sql(
        "MERGE INTO lines AS l USING (SELECT 1000002 AS o) AS n ON l.order_id = n.o AND l.product = 'product 1' "
        "WHEN MATCHED THEN UPDATE SET amount = 9998.5 WHEN NOT MATCHED THEN INSERT (order_id) VALUES (n.o)"
    )
    assert all(bag(wh, name) == newest[name] for name in VIEWS)
    assert all(bag(wh, name, 1) == first[name] for name in VIEWS)
    with pytest.raises(RollviewError, match="DIVIDE_BY_ZERO"):
        wh.sql("INSERT INTO lines SELECT order_id, product, amount / (order_id - 5) FROM lines")
    refreshed = wh.refresh()
    touched = {view.name for view in refreshed.views if view.delta_rows and view.files_read and view.bytes_read}
    assert touched == {"revenue_by_state", "sales"} == {name for name in VIEWS if bag(wh, name) != newest[name]}
    for name in VIEWS:
        for csn in (3, refreshed.csn):
            assert wh.verify(name, csn).equal, (name, csn)


def bag(wh: Warehouse, name: str, at: int | None = None) -> Counter[tuple[Any, ...]]:
    return Counter(map(tuple, wh.read(name, at).collect()))


@contextmanager
def users_session(folder: Path, server: str | None = None) -> Iterator[SparkSession]:
    """A session that is nothing like ours, and stays as it is."""
    from pyspark.sql import SparkSession

    java.prepare()
    builder = SparkSession.builder if server is None else SparkSession.builder.remote(server)
    if server is None:
        places = {"spark.sql.warehouse.dir": str(folder / "theirs"), "spark.ui.enabled": "false"}
        builder = builder.master("local[2]").config(map={**SMALL, **places})
    spark = builder.getOrCreate()
    for key, value in FOREIGN.items():
        spark.conf.set(key, value)
    before = spark.conf.getAll
    spark.range(1).createOrReplaceTempView("lines")
    try:
        yield spark
        assert spark.conf.getAll == before
        assert spark.table("lines").count() == 1
    finally:
        spark.stop()


def add_rows_of_the_users_session(wh: Warehouse, spark: SparkSession) -> None:
    """What their session computes keeps its meaning; what is stored follows ours."""
    wh.sql("CREATE TABLE seen (at TIMESTAMP, size INT, Size2 STRING)")
    theirs = spark.sql("SELECT CAST('2026-01-01 09:00:00' AS TIMESTAMP_LTZ) AS at, 1 AS size, CAST('x' AS INT) AS n")
    with wh.transaction() as tx:
        tx.insert("seen", theirs.withColumnRenamed("n", "Size2"))
    found = wh.sql("SELECT CAST(at AS STRING) AS at, size, size2 FROM seen")[0].rows
    assert found is not None
    assert list(map(tuple, found.collect())) == [("2026-01-01 00:00:00", 1, None)]
    with pytest.raises(RollviewError, match="CAST_OVERFLOW"), wh.transaction() as tx:
        tx.insert("seen", spark.sql("SELECT 3000000000 AS size"))
    with wh.transaction() as tx:
        tx.delete("seen", theirs.withColumnRenamed("n", "Size2"))
    assert wh.read("seen").count() == 0
    assert wh.read("seen", tx.csn - 1 if tx.csn else None).first().at.astimezone(UTC) == datetime(
        2026, 1, 1, tzinfo=UTC
    )  # type: ignore[union-attr]


if __name__ == "__main__":
    main()
