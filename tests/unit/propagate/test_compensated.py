"""Which rows of the view an algorithm has to know: those that can go, and one for each key that a new row points at."""

from __future__ import annotations

import pyarrow as pa
from tests.unit.propagate.test_conversation import joined

from rollview.consistency.history import Update
from rollview.core.schema import Column, Schema
from rollview.propagate.compensated import _rows_wanted, _RowsWanted

SHOWN = Schema(tuple(Column(name, "bigint") for name in ("id", "b", "c", "d")))


def test_all_rows_with_a_key_that_changes_and_one_for_each_that_is_pointed_at() -> None:
    rows = pa.table({"id": [1, 2, 3, 4], "b": [7, 7, 8, 9]})
    keys = frozenset({(7,), (8,)})
    assert _RowsWanted(SHOWN.only(["b"]), keys).among(rows)["id"].to_pylist() == [1, 2, 3]
    assert _RowsWanted(SHOWN.only(["b"]), keys, one_each=True).among(rows)["b"].to_pylist() == [7, 8]


def test_only_rows_that_come_point_at_others() -> None:
    updates = [Update("a", (1, 7), 1), Update("a", (2, 8), -1), Update("b", (9, 5), 1)]
    wanted = _rows_wanted(SHOWN, joined({"a": "x", "b": "y", "c": "y"}), updates)
    assert [(one.columns.names, set(one.keys), one.one_each) for one in wanted] == [
        (("id",), {(1,), (2,)}, False),
        (("id",), set(), True),
        (("b",), {(9,)}, False),
        (("b",), {(7,)}, True),
        (("c",), set(), False),
        (("c",), {(5,)}, True),
    ]
