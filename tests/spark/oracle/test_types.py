"""Every type a table can hold, with the values at its edges: in rows, as keys of groups and joins, in aggregates."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from tests.property.histories import Row
from tests.spark.oracle.checks import check_view
from tests.spark.oracle.model import Model, frame
from tests.spark.oracle.warehouses import fresh
from tests.spark.oracle.writers import create_tables

from rollview.algebra.resolve import Known
from rollview.core.schema import Column, Constraints, Schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MANY = Decimal(10**32)
VALUES: dict[str, tuple[Any, ...]] = {
    "boolean": (True, False),
    "tinyint": (-128, 0, 127),
    "smallint": (-(2**15), 0, 2**15 - 1),
    "int": (-(2**31), 0, 2**31 - 1),
    "bigint": (-(2**53) - 1, 0, 2**53 + 1),
    "float": (0.5, -0.0, 0.0, math.nan, math.inf, -math.inf, 2.0**100, 2.0**-149),
    "double": (0.1, -0.0, 0.0, math.nan, math.inf, -math.inf, 1.5e300, 5e-324),
    "decimal(38,0)": (MANY - 1, 1 - MANY, Decimal(0)),
    "decimal(38,38)": (Decimal(1).scaleb(-38), Decimal("-0.03"), Decimal(0)),
    "decimal(38,18)": (Decimal("12345678901234567.890123456789012345"), Decimal("-0.000000000000000001")),
    "decimal(5,2)": (Decimal("999.99"), Decimal("-999.99"), Decimal("0.01")),
    "string": ("", "a", "A", "é", "e\u0301", "🙂", "\0", "a "),
    "binary": (b"", b"\0", b"\xff\xfe", b"a"),
    "date": (date(1, 1, 1), date(1969, 12, 31), date(2024, 2, 29), date(9999, 12, 31)),
    "timestamp": (datetime(1900, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(2026, 3, 29, 2, 30)),
    "timestamp_ntz": (datetime(1, 1, 1), datetime(2026, 10, 25, 2, 30, 0, 1)),
    "array<int>": ((), (1, None), (None,), (1, 2)),
    "array<double>": ((math.nan,), (-0.0,), (0.0,), ()),
    "struct<x:int,y:struct<z:string>>": ((1, ("a",)), (None, None), (1, (None,))),
    "map<string,int>": ((), (("a", 1),), (("a", None), ("b", 2))),
}
NUMBERS = "SUM({0}) AS s{0}, AVG({0}) AS a{0}, MIN({0}) AS l{0}, MAX({0}) AS h{0}, COUNT(DISTINCT {0}) AS d{0}"
LINEAR = "SUM({0}) AS s{0}, AVG({0}) AS a{0}, COUNT({0}) AS n{0}"
ORDERED = "MIN({0}) AS l{0}, MAX({0}) AS h{0}, COUNT(DISTINCT {0}) AS d{0}, COUNT({0}) AS n{0}"

CASES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "whole numbers": (("tinyint", "smallint", "int", "bigint", "boolean"), ("sums", "numbers", "groups", "joined")),
    "floating point": (("float", "double"), ("sums", "numbers", "groups", "joined", "keys")),
    "decimals": (
        ("decimal(38,0)", "decimal(38,38)", "decimal(38,18)", "decimal(5,2)"),
        ("sums", "numbers", "groups", "joined"),
    ),
    "text and time": (
        ("string", "binary", "date", "timestamp", "timestamp_ntz"),
        ("rows", "ordered", "groups", "joined", "keys"),
    ),
    "nested": (
        ("array<int>", "array<double>", "struct<x:int,y:struct<z:string>>"),
        ("rows", "groups", "joined", "keys"),
    ),
    "maps": (("map<string,int>", "struct<x:int,y:struct<z:string>>"), ("rows",)),
}


def queries(types: tuple[str, ...]) -> dict[str, str]:
    columns = [f"c{place}" for place in range(len(types))]
    listed, first = ", ".join(columns), columns[0]
    numbers = [name for name, type_ in zip(columns, types, strict=True) if type_ != "boolean"]
    return {
        "rows": f"SELECT {listed}, id FROM t WHERE id <> 1",
        "groups": f"SELECT {listed}, COUNT(*) AS n FROM t GROUP BY {listed}",
        "keys": f"SELECT DISTINCT {columns[-1]} AS k FROM t",
        "joined": f"SELECT l.id, l.{first}, r.{columns[-1]} "
        f"FROM t l LEFT JOIN t r ON l.{first} = r.{first} AND r.id = 1",
        "sums": f"SELECT id, {', '.join(LINEAR.format(name) for name in numbers)} FROM t GROUP BY id",
        "numbers": f"SELECT {', '.join(NUMBERS.format(name) for name in numbers)} FROM t WHERE id < 2",
        "ordered": f"SELECT id, {', '.join(ORDERED.format(name) for name in columns)} FROM t GROUP BY id",
    }


@pytest.fixture
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """PySpark hands out timestamps in the process's zone, other readers in UTC."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("utc")
@pytest.mark.parametrize("case", CASES)
def test_types_and_values_are_sparks_own_at_every_csn(spark: SparkSession, tmp_path: Path, case: str) -> None:
    types, wanted = CASES[case]
    columns = (Column("id", "int"), *(Column(f"c{place}", type_) for place, type_ in enumerate(types)))
    table = Known("t", Schema(columns), Constraints())
    warehouse, model, random = fresh(spark, tmp_path / "warehouse"), Model(spark, (table,)), Random(case)
    create_tables(warehouse, (table,))
    held: list[Row] = []
    for step in range(4):
        gone = random.sample(held, len(held) // 2)
        come = [random_row(random, types) for _ in range(4)] + random.sample(held, len(held) // 4)
        with warehouse.transaction() as transaction:
            if gone:
                transaction.delete("t", frame(warehouse.spark, table, gone))
            transaction.insert("t", frame(warehouse.spark, table, come))
        model.commit({"t": [*((row, -1) for row in gone), *((row, 1) for row in come)]})
        held = list(model.states[-1]["t"].elements())
        if step == 0:
            for name in wanted:
                model.views[name] = queries(types)[name]
                warehouse.create_view(f"CREATE MATERIALIZED VIEW {name} AS {model.views[name]}")
    assert warehouse.snapshot().moment.csn == model.csn
    # A MAX beside sums of floating numbers is recomputed whole, which tells several commits at once as one; so is one
    # beside an average of big numbers.
    for csn in (2, 3) if case in ("floating point", "whole numbers") else (3,):
        warehouse.propagate(to=csn)
    warehouse.roll(wanted, 2)
    warehouse.propagate()
    for name in wanted:
        check_view(warehouse, model, name)


def random_row(random: Random, types: tuple[str, ...]) -> Row:
    values = (None if random.random() < 0.2 else random.choice(VALUES[type_]) for type_ in types)
    return (random.randint(0, 2), *values)
