"""Texts are cut at semicolons that are not inside quotes or comments."""

from __future__ import annotations

import pytest

from rollview.cli.statements import is_complete, split_statements
from rollview.errors import SqlError


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("", ()),
        (" ;; ", ()),
        ("SELECT 1", ("SELECT 1",)),
        ("SELECT 1; SELECT 2;", ("SELECT 1", "SELECT 2")),
        ("SELECT ';', \";\", `a;b`; SELECT 2", ("SELECT ';', \";\", `a;b`", "SELECT 2")),
        ("SELECT 1 -- a; b\n; SELECT 2 /* ; */", ("SELECT 1 -- a; b", "SELECT 2 /* ; */")),
        (r"SELECT 'it\'s; fine'; SELECT 'ü;'", (r"SELECT 'it\'s; fine'", "SELECT 'ü;'")),
    ],
)
def test_cutting(text: str, pieces: tuple[str, ...]) -> None:
    assert split_statements(text) == pieces


def test_an_open_quote_is_an_error_or_not_yet_complete() -> None:
    assert not is_complete("SELECT 'a;")
    with pytest.raises(SqlError):
        split_statements("SELECT 'a;")


def test_a_statement_is_complete_with_its_semicolon() -> None:
    assert is_complete("SELECT 1;")
    assert is_complete("SELECT 1; -- done")
    assert not is_complete("SELECT 1; SELECT 2")
