from __future__ import annotations

import pytest
from sqlglot import exp

from rollview import errors
from rollview.algebra.text import parse_one
from rollview.core.schema import ForeignKey
from rollview.relations.references import free_tables
from rollview.tables.declaration import declare_table


def test_constraints_are_found_wherever_they_are_written() -> None:
    tree = parse_one(
        "CREATE TABLE t (Id INT, m STRING UNIQUE, p INT REFERENCES u, q INT NOT NULL,"
        " CONSTRAINT k PRIMARY KEY (id), FOREIGN KEY (P, q) REFERENCES w (x, y))"
    )
    assert isinstance(tree, exp.Create)
    found = declare_table(tree).constraints
    assert (found.primary_key, found.unique, found.not_null) == (("Id",), (("m",),), ("q", "Id"))
    assert found.foreign_keys == (ForeignKey(("p",), "u", ()), ForeignKey(("p", "q"), "w", ("x", "y")))


@pytest.mark.parametrize(
    ("query", "free"),
    [
        ("SELECT * FROM a JOIN b", ["a", "b"]),
        ("WITH a AS (SELECT * FROM a) SELECT * FROM a, b", ["a", "b"]),
        ("WITH a AS (SELECT 1), b AS (SELECT * FROM a) SELECT * FROM B", []),
        ("SELECT (WITH a AS (SELECT 1) SELECT * FROM a) FROM a", ["a"]),
        ("SELECT * FROM range(3)", []),
    ],
)
def test_a_cte_hides_a_table_only_where_it_reaches(query: str, free: list[str]) -> None:
    assert sorted(table.name for table in free_tables(parse_one(query))) == free


@pytest.mark.parametrize(
    "query", ["SELECT * FROM x.a", "SELECT * FROM csv.`/etc/passwd`", "SELECT * FROM a VERSION AS OF 3"]
)
def test_nothing_outside_the_warehouse_is_reached(query: str) -> None:
    with pytest.raises(errors.SqlError):
        list(free_tables(parse_one(query)))
