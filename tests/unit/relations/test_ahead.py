"""Delta, groups and rows at the end, read off one collected table."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.property.duck import Duck
from tests.property.schemas import BAGS

from rollview.algebra.accumulators import ROWS
from rollview.algebra.expressions import AT, UNTIL
from rollview.algebra.summary import SHOWN, Summary, seen_columns
from rollview.core.schema import Column, Schema
from rollview.relations.ahead import ahead_of, delta_of

VIEW = Schema((Column("a", "int"), Column("n", "bigint")))


def summary_of(query: str) -> Summary:
    summary = Duck(BAGS).compile("v", query).summary
    assert summary is not None
    return summary


@pytest.fixture
def summary() -> Summary:
    table = BAGS[0]
    key = table.schema.names[0]
    return summary_of(f"SELECT {key} AS a, COUNT(*) AS n FROM {table.name} GROUP BY {key}")


def collected(summary: Summary, *rows: tuple[object, ...]) -> pa.Table:
    """Rows of (key, rows, at, until)."""
    key, *sums = summary.schema.names
    assert sums == [ROWS]
    shown = [until is None and count != 0 for _, count, _, until in rows]
    keys, counts, ats, untils = zip(*rows, strict=True)
    seen = [[v if s else None for v, s in zip(vs, shown, strict=True)] for vs in (keys, counts)]
    columns = {key: keys, ROWS: counts, AT: ats, UNTIL: untils, SHOWN: shown}
    columns |= dict(zip(seen_columns(summary), seen, strict=True))
    return pa.table({name: pa.array(values) for name, values in columns.items()})


def test_a_group_that_comes_grows_and_goes(summary: Summary) -> None:
    table = collected(summary, ("x", 2, 0, 5), ("x", 3, 5, None), ("y", 1, 0, 6), ("y", 0, 6, None), ("z", 9, 0, None))
    key = summary.schema.names[0]
    delta = {(row[key], row[ROWS], row["_count"], row["_csn"]) for row in delta_of(summary, table).to_pylist()}
    assert delta == {("x", 3, 1, 5), ("x", 2, -1, 5), ("y", 1, -1, 6)}
    ahead = ahead_of(summary, VIEW, table, 6)
    assert {(row[key], row[ROWS]) for row in ahead.groups.to_pylist()} == {("x", 3), ("z", 9)}
    assert ahead.extent.to_pylist() == [{"a": "x", "n": 3}, {"a": "z", "n": 9}]
    assert ahead.csn == 6


def test_a_grand_total_is_there_without_rows() -> None:
    summary = summary_of(f"SELECT COUNT(*) AS n FROM {BAGS[0].name}")
    columns = {ROWS: [1, 0], AT: [0, 4], UNTIL: [4, None], SHOWN: [False, True], seen_columns(summary)[0]: [None, 0]}
    table = pa.table(columns)
    assert {(row[ROWS], row["_count"]) for row in delta_of(summary, table).to_pylist()} == {(0, 1), (1, -1)}
    assert ahead_of(summary, Schema((Column("n", "bigint"),)), table, 4).extent.to_pylist() == [{"n": 0}]
