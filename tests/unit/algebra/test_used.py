from __future__ import annotations

import pytest

from rollview.algebra.resolve import Known, resolve
from rollview.algebra.used import columns_used
from rollview.core.schema import Column, Schema


def known(name: str, *columns: str) -> Known:
    return Known(name, Schema(tuple(Column(column, "int") for column in columns)))


TABLES = {"t": known("t", "id", "a", "B", "c"), "u": known("U", "id", "x", "y")}


@pytest.mark.parametrize(
    ("query", "used"),
    [
        ("SELECT a FROM t", {"t": {"a"}}),
        ("SELECT * FROM t", {"t": {"id", "a", "b", "c"}}),
        ("SELECT COUNT(*) AS n FROM t", {"t": set()}),
        ("SELECT t.a FROM t JOIN u USING (id) WHERE u.x > 1", {"t": {"a", "id"}, "u": {"id", "x"}}),
        ("SELECT q.a FROM (SELECT a, b FROM t) q", {"t": {"a", "b"}}),
        ("WITH q AS (SELECT id, SUM(c) AS s FROM t GROUP BY id) SELECT s FROM q", {"t": {"id", "c"}}),
        ("SELECT a FROM t UNION ALL SELECT y FROM u", {"t": {"a"}, "u": {"y"}}),
        ("SELECT a, ROW_NUMBER() OVER (ORDER BY c) AS r FROM t", {"t": {"a", "c"}}),
    ],
)
def test_the_columns_that_a_query_names(query: str, used: dict[str, set[str]]) -> None:
    found = columns_used(resolve(query, TABLES))
    assert {name: set(columns) for name, columns in found.items()} == used


def test_a_correlated_column_is_used() -> None:
    query = "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.x = t.c)"
    found = columns_used(resolve(query, TABLES))
    assert {"a", "c"} <= found["t"]
    assert "x" in found["u"]
