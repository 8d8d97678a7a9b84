"""The arithmetic of views where Spark's own rules decide, each promise with its figure.

The number in a test's name is the failure of other systems that it stands for, in the order of the reliability plan;
the others are in ``tests/property/test_arithmetic.py``.
"""

from __future__ import annotations

import math
import re
from decimal import Context, Decimal
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.spark.oracle.bags import bag
from tests.spark.oracle.checks import check_view
from tests.spark.oracle.model import Model, frame
from tests.spark.oracle.warehouses import assert_verified, fresh, rows
from tests.spark.oracle.writers import create_tables

from rollview import errors
from rollview.algebra.combining import average
from rollview.algebra.resolve import Known
from rollview.algebra.text import parse_one, render
from rollview.catalog import Part, Pin
from rollview.core.schema import Column, Constraints, Schema
from rollview.relations.reader import Reader
from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST = 10**38 - 1
EXACT = Context(prec=60)
STATEFUL = {
    "distinct_": "SELECT DISTINCT x FROM t",
    "groups": "SELECT x, COUNT(*) AS n, SUM(id) AS s FROM t GROUP BY x",
    "extremes": "SELECT x, MIN(id) AS l, MAX(id) AS h, COUNT(DISTINCT id) AS d FROM t GROUP BY x",
    "values_": "SELECT COUNT(DISTINCT x) AS d, MIN(x) AS l, MAX(x) AS h, SUM(x) AS s, AVG(x) AS a FROM t",
    "inner_": "SELECT a.id, b.id AS other FROM t a JOIN t b ON a.x = b.x",
    "left_": "SELECT a.id, b.x FROM t a LEFT JOIN t b ON a.x = b.x AND b.id > 2",
    "full_": "SELECT a.id, b.id AS other FROM t a FULL JOIN (SELECT * FROM t WHERE id > 3) b ON a.x = b.x",
    "united": "SELECT x FROM t WHERE id > 2 UNION SELECT x FROM t",
    "spelled": "SELECT id, CAST(x AS STRING) AS s FROM t",
}


@pytest.mark.parametrize("copies", [1, 3])
def test_39_one_retraction_too_many_is_caught_in_that_refresh(spark: SparkSession, tmp_path: Path, copies: int) -> None:
    """The row is named, the view stops, and its last good extent stays."""
    warehouse = fresh(spark, tmp_path / "warehouse")
    warehouse.sql("CREATE TABLE t (id INT)", f"INSERT INTO t VALUES {', '.join(['(7)'] * copies)}")
    warehouse.create_view("CREATE MATERIALIZED VIEW v AS SELECT id FROM t")
    warehouse.sql("INSERT INTO t VALUES (8)")
    warehouse.propagate()
    retract(warehouse, "v", 7, copies + 1)
    with pytest.raises(errors.Corrupt, match=r'"id":7'):
        warehouse.refresh()
    assert "7" in (warehouse.status().views[0].problem or "")
    assert sum(rows(warehouse, "v").values()) == copies


def retract(warehouse: Warehouse, view: str, value: int, times: int) -> None:
    """One bad delta, as a fault of the disk or of rollview would leave it."""
    snapshot = warehouse.snapshot()
    reader, pin = Reader(warehouse.spark, warehouse.root / "data", snapshot), snapshot.get(view).pins[Part.DELTA]
    folder = reader.stored(view).folder("delta")
    types = (pa.int32(), pa.int64(), pa.int64())
    columns = [pa.array([v] * times, t) for v, t in zip((value, -1, pin.through), types, strict=True)]
    bad = pa.table(columns, names=list(folder.schema.names))
    version = folder.commit(pin.version, folder.stage(bad, folder.new_folder()), (), {})
    with warehouse.catalog.write() as writer:
        writer.pin(view, Pin(Part.DELTA, version, pin.after, pin.through, pin.rows + times))


def test_41_nan_is_nan_and_minus_zero_is_zero_in_every_stateful_operator(spark: SparkSession, tmp_path: Path) -> None:
    table = Known("t", Schema((Column("id", "int"), Column("x", "double"))), Constraints())
    warehouse, model = fresh(spark, tmp_path / "warehouse"), Model(spark, (table,))
    create_tables(warehouse, (table,))
    history = (
        [((1, math.nan), 1), ((2, -0.0), 1), ((3, 0.0), 1), ((4, None), 1)],
        [((5, math.nan), 1), ((6, 0.0), 1), ((3, 0.0), -1)],
        [((1, math.nan), -1), ((2, -0.0), -1), ((7, -0.0), 1)],
        [((5, math.nan), -1), ((6, 0.0), -1), ((7, -0.0), -1), ((4, None), -1)],
        [((8, math.nan), 1), ((9, -0.0), 1)],
    )
    for step, changes in enumerate(history):
        with warehouse.transaction() as transaction:
            for sign, change in ((-1, transaction.delete), (1, transaction.insert)):
                chosen = [row for row, count in changes if count == sign]
                if chosen:
                    change("t", frame(warehouse.spark, table, chosen))
        model.commit({"t": changes})
        if step == 0:
            for name, query in STATEFUL.items():
                model.views[name] = query
                warehouse.create_view(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    warehouse.refresh(to=3)
    warehouse.refresh()
    for name in STATEFUL:
        check_view(warehouse, model, name)


def test_42_a_sum_beyond_38_digits_stops_its_view_and_comes_back(spark: SparkSession, tmp_path: Path) -> None:
    """±(10^38 - 1): exact at the edge, never NULL beyond it, and exact again when what was too much is deleted."""
    warehouse = fresh(spark, tmp_path / "warehouse")
    warehouse.sql("CREATE TABLE t (k INT, x DECIMAL(38,0))", f"INSERT INTO t VALUES (1, {MOST}), (2, -{MOST})")
    warehouse.create_view("CREATE MATERIALIZED VIEW v AS SELECT k, SUM(x) AS s FROM t GROUP BY k")
    edge = bag([(1, Decimal(MOST)), (2, Decimal(-MOST))])
    assert rows(warehouse, "v") == edge
    for k, one in ((1, 1), (2, -1)):
        warehouse.sql(f"INSERT INTO t VALUES ({k}, {one})")
        with pytest.raises(errors.RollviewError) as caught:
            warehouse.refresh()
        assert re.search("OVERFLOW|OUT_OF_RANGE", caught.value.message)
        assert caught.value.hint
        assert rows(warehouse, "v") == edge
        warehouse.sql(f"DELETE FROM t WHERE x = {one}")
        warehouse.refresh(mode="recompute")
        assert rows(warehouse, "v") == edge
    warehouse.sql(f"INSERT INTO t VALUES (1, -{MOST}), (2, {MOST})")
    warehouse.refresh()
    assert rows(warehouse, "v") == bag([(1, Decimal(0)), (2, Decimal(0))])
    assert_verified(warehouse, "v")


def test_sums_of_doubles_that_are_added_in_another_order_stop_no_view(spark: SparkSession, tmp_path: Path) -> None:
    """Tenths have other last digits in another order of adding: a row computed again is not the row that is there."""
    warehouse = fresh(spark, tmp_path / "warehouse")
    warehouse.sql(
        "CREATE TABLE t (id BIGINT, g INT, x DOUBLE)", "INSERT INTO t SELECT id, id % 2, id * 0.1D FROM range(20)"
    )
    for name, query in {
        "spread": "SELECT g, STDDEV(x) AS s FROM t GROUP BY g",
        "below": "SELECT s.g, s.s FROM (SELECT g, SUM(x) AS s FROM t GROUP BY g) s JOIN t ON t.id = s.g",
    }.items():
        warehouse.create_view(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    warehouse.sql("INSERT INTO t VALUES (100, 0, 0.7D), (200, 1, 0.3D)", "DELETE FROM t WHERE id = 3")
    warehouse.refresh()
    assert_verified(warehouse)


@pytest.mark.parametrize("type_", [(16, 2), (18, 2), (20, 0), (20, 6), (32, 0), (32, 4), (33, 1)])
def test_an_average_of_long_decimals_is_rounded_as_spark_rounds_it(spark: SparkSession, type_: tuple[int, int]) -> None:
    """From the sum and the count alone, which is all that a summary keeps; halves of the last digit included."""
    (precision, scale), random = type_, Random(str(type_))
    most = 10**precision - 1
    lists = [[most], [-most], [most] * 7, [1, 0], [-1, 0], [1, 0, 0], [2, 0, 0], [-2, 0, 0], [1] + [0] * 15]
    lists += [[1] + [0] * 19_999, [-1] + [0] * 19_999, [1] + [0] * 20_000, [9_999] + [0] * 19_999]
    lists += [
        [random.randint(-most, most) >> random.randrange(100) for _ in range(random.randint(1, 40))] for _ in range(150)
    ]
    values = [(place, Decimal(value).scaleb(-scale, EXACT)) for place, one in enumerate(lists) for value in one]
    typed = pa.schema([("g", pa.int32()), ("x", pa.decimal128(precision, scale))])
    data = spark.createDataFrame(pa.Table.from_pylist([{"g": g, "x": x} for g, x in values], typed))
    result = f"decimal({precision + 4},{scale + 4})"
    ours = average(parse_one("s"), parse_one("n"), f"decimal({precision},{scale})", result)
    assert ours is not None
    sums = "SELECT g, AVG(x) AS a, SUM(x) AS s, COUNT(x) AS n FROM {data} GROUP BY g"
    told = spark.sql(f"SELECT *, {render(ours)} AS ours FROM ({sums})", data=data)
    assert told.schema["a"].dataType == told.schema["ours"].dataType
    assert told.where("NOT (a <=> ours)").collect() == []
    assert told.count() == len(lists)


def test_a_view_with_an_average_of_money_keeps_sums(spark: SparkSession, tmp_path: Path) -> None:
    warehouse = fresh(spark, tmp_path / "warehouse")
    warehouse.sql("CREATE TABLE t (g INT, price DECIMAL(15,2), discount DECIMAL(15,2), paid DECIMAL(18,2))")
    warehouse.create_view(
        "CREATE MATERIALIZED VIEW v AS SELECT g, AVG(price * (1 - discount)) AS a, AVG(paid) AS p FROM t GROUP BY g"
    )
    assert warehouse.snapshot().get("v").pins.keys() >= {Part.GROUPS}
    for number in range(3):
        warehouse.sql(f"INSERT INTO t VALUES (1, {number}.37, 0.0{number}, 10.01), (2, 5.55, 0.5, -{number}.99)")
        warehouse.sql(f"DELETE FROM t WHERE discount = 0.0{number - 1}" if number else "DELETE FROM t WHERE g = 3")
        warehouse.refresh()
        assert_verified(warehouse, "v")
