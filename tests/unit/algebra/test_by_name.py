"""USING and NATURAL as Spark understands them: the first column on the left, and one column behind the join."""

from __future__ import annotations

import pytest

from rollview.algebra.by_name import written_out
from rollview.algebra.text import parse_one, render

COLUMNS = {"a": ("k", "g", "x"), "b": ("k", "g", "y"), "c": ("k", "G", "z")}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT k FROM a JOIN b USING (k)", "SELECT `a`.`k` FROM a JOIN b ON `a`.`k` = `b`.`k`"),
        ("SELECT k FROM a RIGHT JOIN b USING (k)", "SELECT `b`.`k` FROM a RIGHT JOIN b ON `a`.`k` = `b`.`k`"),
        (
            "SELECT k FROM a FULL JOIN b USING (k)",
            "SELECT COALESCE(`a`.`k`, `b`.`k`) AS `k` FROM a FULL JOIN b ON `a`.`k` = `b`.`k`",
        ),
        (
            "SELECT x, z FROM a JOIN b USING (k) JOIN c USING (k, g)",
            "SELECT x, z FROM a JOIN b ON `a`.`k` = `b`.`k` JOIN c ON `a`.`k` = `c`.`k` AND `a`.`g` = `c`.`G`",
        ),
        ("SELECT x FROM a NATURAL JOIN c", "SELECT x FROM a JOIN c ON `a`.`k` = `c`.`k` AND `a`.`g` = `c`.`G`"),
        (
            "SELECT * FROM a LEFT JOIN b USING (g)",
            "SELECT `a`.`g`, `a`.`k`, `a`.`x`, `b`.`k`, `b`.`y` FROM a LEFT JOIN b ON `a`.`g` = `b`.`g`",
        ),
        (
            "SELECT * FROM a OUTER JOIN b USING (k)",
            "SELECT COALESCE(`a`.`k`, `b`.`k`) AS `k`, `a`.`g`, `a`.`x`, `b`.`g`, `b`.`y` "
            "FROM a OUTER JOIN b ON `a`.`k` = `b`.`k`",
        ),
        ("SELECT g FROM a JOIN b USING (k)", "SELECT g FROM a JOIN b ON `a`.`k` = `b`.`k`"),
        (
            "SELECT k + 1 AS k FROM a JOIN b USING (k) ORDER BY k",
            "SELECT `a`.`k` + 1 AS k FROM a JOIN b ON `a`.`k` = `b`.`k` ORDER BY k",
        ),
        (
            "SELECT k FROM a JOIN (SELECT k FROM b) AS q USING (k)",
            "SELECT `a`.`k` FROM a JOIN (SELECT k FROM b) AS q ON `a`.`k` = `q`.`k`",
        ),
        (
            "SELECT k FROM (SELECT * FROM a) AS q JOIN b USING (k)",
            "SELECT `q`.`k` FROM (SELECT * FROM a) AS q JOIN b ON `q`.`k` = `b`.`k`",
        ),
    ],
)
def test_a_join_by_name_is_written_out(text: str, expected: str) -> None:
    assert render(written_out(parse_one(text), COLUMNS)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "SELECT k FROM (SELECT * EXCEPT (x) FROM a) AS q JOIN b USING (k)",
        "SELECT k FROM (SELECT a.* FROM a) AS q NATURAL JOIN b",
        "SELECT * FROM (SELECT k, g + 1 FROM a) AS q JOIN b USING (k)",
        "SELECT * EXCEPT (x) FROM a JOIN b USING (k)",
        "SELECT k FROM a PIVOT (SUM(x) FOR g IN (1, 2)) AS p JOIN b USING (k)",
        "SELECT b.y FROM (a JOIN c ON a.k = c.k) JOIN b USING (k)",
        "SELECT b.y FROM (a JOIN c ON a.k = c.k) AS q JOIN b USING (k)",
        "SELECT b.y FROM b JOIN (a JOIN c ON a.k = c.k) USING (k)",
    ],
)
def test_a_join_of_what_has_unknown_columns_stays_as_it_is(text: str) -> None:
    tree = parse_one(text)
    assert written_out(tree, COLUMNS) == tree
