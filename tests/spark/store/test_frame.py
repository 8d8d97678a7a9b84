"""Rows of this process as Spark sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from rollview.core.schema import Column, Schema
from rollview.store.folder import frame

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = Schema((Column("id", "bigint"), Column("name", "string")))


@pytest.mark.parametrize("pieces", [[0], [0, 0], [2], [0, 2], [0, 0, 2], [0, 0, 3, 1], [1, 0, 2, 0], [0, 0, 0, 0, 5]])
def test_no_row_is_lost_behind_empty_pieces(spark: SparkSession, pieces: list[int]) -> None:
    tables = [pa.table({"id": pa.array(range(n), pa.int64()), "name": pa.array(["x"] * n)}) for n in pieces]
    rows = pa.concat_tables([table.cast(pa.schema([("id", pa.int64()), ("name", pa.string())])) for table in tables])
    assert [tuple(row) for row in frame(spark, rows, SCHEMA).collect()] == [(i, "x") for n in pieces for i in range(n)]
