"""Rows added up in this process are the multiset that Spark would give; what it would tell apart is left to it."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from random import Random

import pyarrow as pa
import pytest

from rollview.core.schema import Column, Schema
from rollview.errors import Corrupt
from rollview.store.small import add_up, can_add_up, in_order
from rollview.types.arrow import arrow_type

SCHEMA = Schema((Column("k", "int"), Column("na.me", "string"), Column("price", "decimal(10,2)")))


def table(rows: list[tuple[object, ...]], columns: tuple[Column, ...]) -> pa.Table:
    types = [arrow_type(column.type, column.name) for column in columns]
    arrays = [pa.array([row[i] for row in rows], type_) for i, type_ in enumerate(types)]
    return pa.table(arrays, names=[column.name for column in columns])


def after(state: list[tuple[object, ...]], changes: list[tuple[object, ...]]) -> Counter[tuple[object, ...]]:
    signed = (*SCHEMA.columns, Column("_count", "bigint"))
    added = add_up(table(state, SCHEMA.columns), table(changes, signed), SCHEMA)
    return Counter(zip(*(column.to_pylist() for column in added.columns), strict=True))


@pytest.mark.parametrize("seed", range(20))
def test_a_random_state_and_its_changes(seed: int) -> None:
    random = Random(seed)

    def row() -> tuple[object, ...]:
        return random.choice([None, 1, 2]), random.choice([None, "", "a"]), random.choice([None, Decimal("1.50")])

    state = [row() for _ in range(30)]
    gone = random.sample(state, 10)
    changes = [(*r, -1) for r in gone] + [(*row(), random.randint(1, 3)) for _ in range(10)]
    expected = Counter(state)
    expected.subtract(gone)
    for *values, count in changes[10:]:
        expected[tuple(values)] += count
    assert after(state, changes) == +expected


def test_the_order_of_rows_is_their_own() -> None:
    random = Random(7)
    rows: list[tuple[object, ...]] = [
        (k, name, None if k is None else Decimal(k)) for k in (None, 3, 1, 2) for name in ("b", None, "a.c", "a.c")
    ]
    nested = pa.array([[i] for i in range(len(rows))])
    expected = None
    for _ in range(20):
        random.shuffle(rows)
        found = in_order(table(rows, SCHEMA.columns).append_column("list", nested)).drop_columns(["list"]).to_pylist()
        assert found == (expected := expected or found)
    assert in_order(pa.table({"list": nested}))["list"].to_pylist() == nested.to_pylist()


def test_a_row_deleted_more_often_than_it_was_there_is_named() -> None:
    with pytest.raises(Corrupt, match=r'deleted more often than it was there.*"na.me":"only"'):
        after([(1, "only", None)], [(1, "only", None, -2)])


@pytest.mark.parametrize(
    ("type_", "can"),
    [("decimal(38,6)", True), ("timestamp", True), ("binary", True), ("double", False), ("array<int>", False)],
)
def test_types_that_arrow_and_spark_compare_alike(type_: str, can: bool) -> None:
    assert can_add_up(Schema((Column("a", "int"), Column("b", type_)))) is can
