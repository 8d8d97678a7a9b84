"""The bit of a key is the same in this process and in Spark, whatever the key is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from rollview.core.schema import Column, Schema
from rollview.store.folder import frame
from rollview.store.key_bits import can_mark, key_bits, maybe_marked

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SCHEMA = Schema(
    (Column("a b", "int"), Column("n", "bigint"), Column("t", "string"), Column("d", "date"), Column("s", "smallint"))
)
NUMBERS = (0, 1, -1, 7, 2**31 - 1, -(2**31), None, 12345)
BIG = (0, 2**63 - 1, -(2**63), 2**22, None, -5, 99, 1 << 44)
TEXTS = ("", "é", None, "x" * 500, "\x00", "a", "b", "ab")


def rows_of(count: int) -> pa.Table:
    places = range(count)
    return pa.table(
        {
            "a b": pa.array([NUMBERS[i % 8] for i in places], pa.int32()),
            "n": pa.array([BIG[i // 8 % 8] for i in places], pa.int64()),
            "t": pa.array([TEXTS[i // 64 % 8] for i in places], pa.string()),
            "d": pa.array(list(places), pa.date32()),
            "s": pa.array([i % 1000 - 500 for i in places], pa.int16()),
        }
    )


@pytest.mark.parametrize("key", [("A B",), ("t",), ("n", "d"), ("a b", "n", "t", "d", "s")])
def test_the_bit_of_every_key_is_found_and_few_others_are(spark: SparkSession, key: tuple[str, ...]) -> None:
    rows = rows_of(512)
    some = rows.take(list(range(0, 512, 3)))
    assert can_mark(SCHEMA, key)
    names = [SCHEMA.find(name).name for name in key]  # type: ignore[union-attr]
    wanted = {tuple(row.values()) for row in some.select(names).to_pylist()}
    marked = frame(spark, rows, SCHEMA).where(maybe_marked(spark, key_bits(some, SCHEMA, key), SCHEMA, key))
    found = {tuple(row.values()) for row in marked.toArrow().select(names).to_pylist()}
    assert wanted <= found
    told_apart = {tuple(row[n] for n in names if n != "d") for row in some.to_pylist()}
    assert {tuple(v for v, n in zip(row, names, strict=True) if n != "d") for row in found} <= told_apart


def test_keys_without_a_number_or_text_have_no_bit() -> None:
    assert not can_mark(SCHEMA, ("d",))
