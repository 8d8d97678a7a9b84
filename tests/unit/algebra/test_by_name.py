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
        ("SELECT g FROM a JOIN b USING (k)", "SELECT g FROM a JOIN b ON `a`.`k` = `b`.`k`"),
    ],
)
def test_a_join_by_name_is_written_out(text: str, expected: str) -> None:
    assert render(written_out(parse_one(text), COLUMNS)) == expected
