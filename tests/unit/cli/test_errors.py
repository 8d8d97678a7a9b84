"""Errors: a sentence and a hint on stderr, the right exit code, nothing on stdout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rollview import errors


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.NotFound("view", "sales"), 2),
        (errors.SqlError("No such column.", line=1, column=4), 2),
        (errors.ConstraintViolated("orders", "the primary key", "id 1 is there twice"), 1),
        (errors.Corrupt("Torn."), 1),
        (errors.EnvironmentFault("No Java."), 1),
        (errors.Conflict("orders", "id 1"), 3),
        (errors.Busy("View 'sales'", "somebody", "noon"), 3),
        (errors.LostLease("view 'sales'"), 3),
    ],
)
def test_exit_codes(cli: Any, warehouse: Any, error: errors.RollviewError, code: int) -> None:
    warehouse.answers["refresh"] = error
    ran = cli("refresh")
    assert (ran.code, ran.out) == (code, "")
    assert ran.err.splitlines()[0] == error.message
    assert warehouse.calls[-1] == ("close",)


def test_json_errors_hold_the_facts(cli: Any, warehouse: Any) -> None:
    warehouse.answers["refresh"] = errors.NotFound("view", "sales", hint="Look again.")
    ran = cli("refresh", "-o", "json")
    assert ran.out == ""
    assert ran.error == {
        "code": "not_found",
        "message": "There is no view 'sales'.",
        "hint": "Look again.",
        "retryable": False,
        "facts": {"what": "view", "name": "sales"},
    }


def test_a_surprise_is_a_sentence_too(cli: Any, warehouse: Any) -> None:
    warehouse.answers["refresh"] = ValueError("what\nmore")
    ran = cli("refresh")
    assert ran.code == 1
    assert ran.err.startswith("Something unexpected happened: ValueError: what\n")
    assert "Traceback" not in ran.err


def test_debug_shows_where(cli: Any, warehouse: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    warehouse.answers["refresh"] = ValueError("what")
    assert "Traceback" in cli("refresh", "--debug").err
    monkeypatch.setenv("ROLLVIEW_DEBUG", "1")
    assert "Traceback" in cli("refresh").err


def test_wrong_usage_is_told_in_the_wanted_form(cli: Any, warehouse: Any) -> None:
    assert cli("view", "roll", "sales").code == 2
    ran = cli("view", "roll", "sales", "--output=json")
    assert ran.error["message"] == "Missing option '--to'."
    assert ran.error["hint"] == "See 'rollview view roll --help'."


def test_an_option_before_the_command_is_told_its_place(cli: Any) -> None:
    assert cli("--output", "json", "status").error["hint"].startswith("Write it behind the command")
    assert "Write it behind the command" in cli("--project-dir", "x", "status").err


def test_a_folder_is_told_from_a_file(cli: Any, warehouse: Any, project: Path) -> None:
    (project / "views").mkdir(exist_ok=True)
    assert "'views' is a folder.\nName its files: views/*.sql" in cli("view", "create", "views").err


def test_an_unknown_command_suggests_a_known_one(cli: Any) -> None:
    ran = cli("view", "rol")
    assert ran.code == 2
    assert "roll" in ran.err


def test_a_bare_command_shows_its_help(cli: Any) -> None:
    ran = cli()
    assert ran.code == 2
    assert "First steps" in ran.err


def test_without_a_project_the_way_to_one_is_shown(cli: Any, tmp_path: Path) -> None:
    ran = cli("status", "--project-dir", str(tmp_path))
    assert ran.code == 2
    assert "rollview init" in ran.err


def test_names_cannot_reach_the_terminal(cli: Any, warehouse: Any) -> None:
    warehouse.answers["refresh"] = errors.NotFound("view", "a\x1b[31m[red]b")
    assert "'a\\x1b[31m[red]b'" in cli("refresh").err
