"""An author's text with other tables in it, and nothing else changed."""

from __future__ import annotations

import pytest
from sqlglot import exp

from rollview.algebra.text import parse_one, parse_statements, render
from rollview.algebra.words import forget, in_place, in_words, spelled, words


def bound(text: str) -> str:
    tree = parse_one(text)
    found = words(tree, [(table, table.name) for table in tree.find_all(exp.Table)])
    assert found is not None
    return found.with_tables(lambda name: f"<{name}>")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT  a\n  -- why\n FROM t", "SELECT  a\n  -- why\n FROM (<t> AS `t`)"),
        ("SELECT * FROM `o d``d` x, T", "SELECT * FROM <o d`d> x, (<T> AS `T`)"),
        ("SELECT 't' AS t FROM t JOIN u AS t2 USING (k)", "SELECT 't' AS t FROM (<t> AS `t`) JOIN <u> AS t2 USING (k)"),
        (
            "SELECT a FROM t WHERE a IN (SELECT b FROM u)",
            "SELECT a FROM (<t> AS `t`) WHERE a IN (SELECT b FROM (<u> AS `u`))",
        ),
        ("SELECT 'é', '{x}' FROM t -- ü", "SELECT 'é', '{x}' FROM (<t> AS `t`)"),
    ],
)
def test_only_names_of_tables_change(text: str, expected: str) -> None:
    assert bound(text) == expected


def test_a_statement_of_many_keeps_its_own_words() -> None:
    one, two = parse_statements("SELECT 1 ;\n DELETE FROM t WHERE a=1  ;")
    assert (spelled(one), spelled(two)) == ("SELECT 1", "DELETE FROM t WHERE a=1")
    assert in_place(two) == "\n DELETE FROM t WHERE a=1"


def test_what_is_changed_is_no_longer_the_authors() -> None:
    tree = parse_one("SELECT a+b AS c, d FROM t")
    column = next(tree.find_all(exp.Column))
    column.set("table", exp.to_identifier("x"))
    forget(column)
    assert spelled(tree) is None
    assert render(in_words(tree, [])) == "SELECT (a+b) AS c, x.d FROM t"


def test_what_must_be_a_table_by_name_is_not_written_in_words() -> None:
    tree = parse_one("INSERT INTO TABLE t SELECT 1")
    assert words(tree, [(table, table.name) for table in tree.find_all(exp.Table)]) is None
