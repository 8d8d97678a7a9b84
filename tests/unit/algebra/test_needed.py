from __future__ import annotations

import pytest

from rollview.algebra.needed import is_covered, names_in, needs, rows_of, rows_text
from rollview.algebra.resolve import Known, resolve
from rollview.core.schema import Column, Schema


def known(name: str, **columns: str) -> Known:
    return Known(name, Schema(tuple(Column(column, type_) for column, type_ in columns.items())))


TABLES = {
    "t": known("t", id="int", a="int", S="string", f="double", d="date"),
    "u": known("u", id="int", x="int"),
}


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT a FROM t WHERE a > 1", "`a` > 1"),
        ("SELECT a FROM t q WHERE q.a > 1 AND (s = 'x')", "`S` = 'x' AND `a` > 1"),
        ("SELECT a FROM t WHERE a = 1 OR a = 2", "`a` = 1 OR `a` = 2"),
        ("SELECT a FROM t WHERE s = 'x' AND (a = 1 OR a = 2)", "(`S` = 'x' AND `a` = 1) OR (`S` = 'x' AND `a` = 2)"),
        ("SELECT COUNT(*) AS n FROM t JOIN u ON t.id = u.id AND t.a = 3 WHERE u.x = 1", "`a` = 3"),
        ("SELECT t.a FROM t LEFT JOIN u ON t.id = u.id AND t.a = 3 WHERE t.s <> 'x'", "`S` <> 'x'"),
        ("SELECT u.x FROM u JOIN t ON t.id = u.id WHERE t.a = 1", "`a` = 1"),
        ("SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.id = t.id) AND a IS NULL", "`a` IS NULL"),
        ("SELECT a FROM t WHERE a = 1 UNION ALL SELECT a FROM t WHERE a = 2", "`a` = 1 OR `a` = 2"),
        ("SELECT a FROM t WHERE a = 1 UNION ALL SELECT id FROM t WHERE a = 1 AND s = 'x'", "`a` = 1"),
        ("WITH q AS (SELECT * FROM t WHERE d >= '2026-01-01') SELECT a FROM q", "`d` >= '2026-01-01'"),
        ("SELECT a, RANK() OVER (ORDER BY a) AS r FROM t WHERE a BETWEEN 1 AND 5", "`a` BETWEEN 1 AND 5"),
        ("SELECT id FROM t WHERE a = 1 AND s IN (SELECT 'x')", "`a` = 1"),
        # What is not understood, or does not throw the row away, restricts nothing.
        ("SELECT a FROM t", ""),
        ("SELECT a FROM t WHERE f > 1.0 AND s LIKE 'x%'", ""),
        ("SELECT a FROM t WHERE a = 1 OR f > 1.0", ""),
        ("SELECT t.a FROM t JOIN u ON t.a = u.x WHERE u.id = 5", ""),
        ("SELECT a FROM t WHERE s = 1", ""),
        ("SELECT u.x FROM u LEFT JOIN t ON t.id = u.id AND t.a = 1 WHERE t.a IS NULL", ""),
        ("SELECT u.x FROM u FULL JOIN t ON t.id = u.id WHERE t.a = 1", ""),
        ("SELECT t.a FROM t RIGHT JOIN u ON t.id = u.id WHERE t.a IS NULL", ""),
        ("SELECT a FROM t WHERE a = 1 UNION ALL SELECT a FROM t", ""),
        ("SELECT a, COUNT(*) AS n FROM t GROUP BY a HAVING a = 1", ""),
        ("SELECT u.x FROM u JOIN u AS w ON u.id = w.id LEFT JOIN t ON t.id = u.id WHERE t.a IS NULL", ""),
        ("SELECT t.a FROM t LEFT JOIN u ON t.id = u.id RIGHT JOIN u AS w ON w.id = u.id WHERE t.a IS NULL", ""),
        ("SELECT t.a FROM t ANTI JOIN u ON t.id = u.id AND t.a = 3", ""),
        ("SELECT t.a FROM (t RIGHT JOIN u ON t.id = u.id) LEFT JOIN u AS w ON w.id = u.id WHERE t.a IS NULL", ""),
        ("SELECT a FROM t TABLESAMPLE (5 ROWS) WHERE a = 1", ""),
        ("WITH RECURSIVE q AS (SELECT id FROM t UNION ALL SELECT id + 1 FROM q WHERE id < 5) SELECT id FROM q", ""),
        ("SELECT q.a FROM (SELECT a, LAG(a) OVER (ORDER BY id) AS b FROM t) q WHERE q.a = 1", ""),
    ],
)
def test_the_rows_that_a_query_can_need(query: str, rows: str) -> None:
    found = needs(resolve(query, TABLES))["t"].rows
    assert rows_text(found) == rows
    assert rows_of(rows_text(found)) == found


def test_what_is_there_covers_what_says_more() -> None:
    there = rows_of("a = 1 OR s = 'x' AND a = 2")
    assert is_covered(rows_of("a = 1 AND s = 'y'"), there)
    assert is_covered(rows_of("FALSE"), there)
    assert not is_covered(rows_of("s = 'x'"), there)
    assert not is_covered(rows_of(""), there)
    assert not is_covered(rows_of("a = 1 OR a = 9"), there)
    assert is_covered(there, there)
    assert is_covered(there, rows_of(""))


def test_names_of_a_query_that_cannot_be_resolved_yet() -> None:
    assert {"a", "b", "q"} <= (names_in("SELECT q.a FROM q JOIN r USING (b)") or set())
    assert names_in("SELECT COUNT(*) AS n FROM q") is not None
    assert names_in("SELECT * FROM q") is None
    assert names_in("SELECT q.* FROM q") is None
    assert names_in("SELECT a FROM q NATURAL JOIN r") is None
    assert names_in("SELECT a FROM q NATURAL JOIN r JOIN s ON q.b = s.b") is None
    assert names_in("SELECT *, (SELECT COUNT(*) FROM r) AS n FROM q") is None


@pytest.mark.parametrize(("conjuncts", "alternatives"), [(6, 64), (7, 64)])
def test_too_many_alternatives_restrict_nothing_more(conjuncts: int, alternatives: int) -> None:
    said = [f"(a = {i} OR s = '{i}')" for i in range(conjuncts)]
    assert len(needs(resolve(f"SELECT id FROM t WHERE {' AND '.join(said)}", TABLES))["t"].rows) == alternatives
