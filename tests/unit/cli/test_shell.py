"""The shell runs statements as they end, keeps transactions together, and survives errors."""

from __future__ import annotations

import io
from typing import Any

import pytest

from rollview.errors import SqlError


@pytest.fixture
def typed(cli: Any, warehouse: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    def run(text: str) -> tuple[Any, list[tuple[Any, ...]]]:
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        ran = cli("shell")
        return ran, [call for call in warehouse.calls if call[0] == "sql"]

    return run


def test_each_statement_is_a_call_of_its_own(typed: Any) -> None:
    _, calls = typed("INSERT INTO a\nVALUES (1); DELETE FROM a;\nexit\nDELETE FROM b;\n")
    assert [call[1].split() for call in calls] == [["INSERT", "INTO", "a", "VALUES", "(1)"], ["DELETE", "FROM", "a"]]


def test_begin_and_commit_hold_statements_together(typed: Any) -> None:
    _, calls = typed("BEGIN;\nDELETE FROM a;\nDELETE FROM b;\nCOMMIT;\n")
    assert calls == [("sql", "DELETE FROM a", "DELETE FROM b")]


def test_rollback_and_the_end_forget_what_was_kept(typed: Any) -> None:
    ran, calls = typed("BEGIN; DELETE FROM a; ROLLBACK; BEGIN; DELETE FROM b;\n")
    assert calls == []
    assert "not committed" in ran.err


def test_an_error_does_not_end_the_shell(typed: Any, warehouse: Any) -> None:
    warehouse.answers["sql"] = SqlError("No.")
    ran, calls = typed("SELECT 1;\nSELECT 2;\n")
    assert len(calls) == 2
    assert ran.err.count("No.") == 2


def test_the_last_statement_of_a_file_needs_no_semicolon(typed: Any) -> None:
    _, calls = typed("DELETE FROM a;\n-- and\nDELETE FROM b\n")
    assert [call[1].split()[-1] for call in calls] == ["a", "b"]
