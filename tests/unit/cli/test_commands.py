"""What each command asks of the warehouse and shows of its answer."""

from __future__ import annotations

import io
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from rollview.core.interval import Interval
from rollview.results import StatementResult, TablePlace, Verification


def test_several_statements_are_one_call(cli: Any, warehouse: Any) -> None:
    ran = cli("sql", "INSERT INTO orders VALUES (';')", "DELETE FROM orders; SELECT 1;")
    assert ran.code == 0
    assert warehouse.calls[0] == ("sql", "INSERT INTO orders VALUES (';')", "DELETE FROM orders", "SELECT 1")
    assert "INSERT orders: 3 inserted, csn 10" in ran.out


def test_only_who_asks_for_it_allows_what_is_unsafe(cli: Any, warehouse: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cli("sql", "SELECT 1", "--allow-unsafe")
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT 2;"))
    cli("shell", "--allow-unsafe")
    assert [call for call in warehouse.calls if call[0] != "close"] == [
        ("sql (unsafe)", "SELECT 1"),
        ("sql (unsafe)", "SELECT 2"),
    ]


def test_statements_of_a_file_go_before_those_of_the_line(cli: Any, warehouse: Any, project: Path) -> None:
    (project / "a.sql").write_text("-- first; comment\nINSERT INTO a VALUES (1);\nDELETE FROM a")
    assert cli("sql", "-f", "a.sql", "SELECT 2").code == 0
    assert warehouse.calls[0] == ("sql", "-- first; comment\nINSERT INTO a VALUES (1)", "DELETE FROM a", "SELECT 2")


def test_a_query_shows_its_rows_as_json(cli: Any, warehouse: Any) -> None:
    frame = warehouse.read("x").limit(2)
    warehouse.answers["sql"] = (StatementResult("SELECT", "SELECT 1", rows=frame),)
    answer = cli("sql", "SELECT 1", "-o", "json").json["statements"][0]
    assert answer["rows"] == [{"id": 0, "x": "row 0"}, {"id": 1, "x": None}]
    assert answer["columns"] == [{"name": "id", "type": "bigint"}, {"name": "x", "type": "string"}]


def test_no_sql_is_wrong_usage(cli: Any, warehouse: Any) -> None:
    assert cli("sql", " ; -- nothing").code == 2
    assert warehouse.calls == []


def test_refresh_passes_selection_target_and_mode(cli: Any, warehouse: Any) -> None:
    ran = cli("refresh", "--select", "+sales", "-s", "other", "--to", "8", "--mode", "incremental")
    assert warehouse.calls[0] == ("refresh", ("+sales", "other"), 8, "incremental")
    assert "(7, 9]" in ran.out
    assert "2 KiB" in ran.out


def test_a_profile_shows_where_the_time_went(cli: Any, warehouse: Any) -> None:
    ran = cli("refresh", "--profile")
    assert "Spark jobs" in ran.out
    assert "75%" in ran.out


def test_refresh_goes_to_the_newest_commit_by_default(cli: Any, warehouse: Any) -> None:
    assert cli("refresh", "--output", "json").json["views"][0]["interval"] == {"after": 7, "through": 9}
    assert warehouse.calls[0] == ("refresh", (), "latest", None)


@pytest.mark.parametrize(("text", "asked"), [("812", 812), ("latest", "latest")])
def test_roll_takes_a_csn_or_latest(cli: Any, warehouse: Any, text: str, asked: Any) -> None:
    ran = cli("view", "roll", "sales", "other", "--to", text)
    assert ran.code == 0
    assert ran.err == ""
    assert warehouse.calls[0] == ("roll", ("sales", "other"), asked)


def test_a_time_without_offset_is_local_and_that_is_said(cli: Any, warehouse: Any) -> None:
    ran = cli("view", "roll", "sales", "--to", "2026-12-13 17:00")
    assert warehouse.calls[0][2] == datetime(2026, 12, 13, 17, 0).astimezone()
    assert "local zone" in ran.err


def test_a_time_with_offset_is_taken_as_it_is(cli: Any, warehouse: Any) -> None:
    ran = cli("view", "roll", "sales", "--to", "2026-12-13T17:00+01:00")
    assert warehouse.calls[0][2] == datetime.fromisoformat("2026-12-13T17:00+01:00")
    assert ran.err == ""


def test_a_time_that_is_none_is_wrong_usage(cli: Any, warehouse: Any) -> None:
    ran = cli("view", "roll", "sales", "--to", "yesterday")
    assert ran.code == 2
    assert ran.err.startswith("'yesterday' is neither a csn nor a time.")


def test_text_shows_a_hundred_rows_and_says_that_there_are_more(cli: Any, warehouse: Any) -> None:
    ran = cli("view", "read", "sales")
    assert len(ran.out.splitlines()) == 102
    assert "NULL" in ran.out
    assert "more rows" in ran.err


def test_json_shows_all_rows(cli: Any, warehouse: Any) -> None:
    answer = cli("view", "read", "sales", "-o", "json").json
    assert len(answer["rows"]) == 250
    assert answer["more"] is False


def test_a_limit_holds_in_json_too(cli: Any, warehouse: Any) -> None:
    answer = cli("view", "read", "sales", "-o", "json", "--limit", "3").json
    assert len(answer["rows"]) == 3
    assert answer["more"] is True


def test_rows_of_a_weakly_consistent_view_say_so(cli: Any, warehouse: Any) -> None:
    warehouse.answers["places"] = (TablePlace("orders", 9, "continuous"), TablePlace("shops", 4, "manual"))
    said = " ".join(cli("view", "read", "sales").err.split())
    assert "Weakly consistent: orders at csn 9 (continuous), shops at csn 4 (manual)." in said
    told = cli("view", "read", "sales", "-o", "json").json
    assert told["consistency"] == "weak"
    assert [(one["table"], one["csn"]) for one in told["places"]] == [("orders", 9), ("shops", 4)]


def test_read_as_of_passes_the_csn(cli: Any, warehouse: Any) -> None:
    cli("view", "read", "sales", "--as-of", "4")
    assert warehouse.calls[0] == ("read", "sales", 4)


def test_delta_through_latest_ends_at_the_high_water_mark(cli: Any, warehouse: Any) -> None:
    cli("view", "delta", "sales", "--after", "2026-12-13T10:00Z")
    assert warehouse.calls[-2] == ("delta", "sales", 8, 9)


def test_create_takes_sql_and_python_files(cli: Any, warehouse: Any, project: Path) -> None:
    (project / "a.sql").write_text(
        "CREATE MATERIALIZED VIEW a AS SELECT 1 AS x;\nCREATE MATERIALIZED VIEW b AS SELECT 2 AS x"
    )
    (project / "c.py").write_text(
        "import rollview.definitions as rollview\n"
        "@rollview.materialized_view(name='c `x`', comment=\"it's\", table_properties={'k': 'v'})\n"
        "def c(): return 'SELECT 3 AS x'\n"
        "@rollview.materialized_view\n"
        "def d(): return 'SELECT 4 AS x'\n"
    )
    assert cli("view", "create", "a.sql", "c.py").code == 0
    assert [call[1] for call in warehouse.calls if call[0] == "create_view"] == [
        "CREATE MATERIALIZED VIEW a AS SELECT 1 AS x",
        "CREATE MATERIALIZED VIEW b AS SELECT 2 AS x",
        "CREATE MATERIALIZED VIEW `c ``x```\nCOMMENT 'it\\'s'\nTBLPROPERTIES ('k' = 'v')\nAS SELECT 3 AS x",
        "CREATE MATERIALIZED VIEW `d`\nAS SELECT 4 AS x",
    ]


def test_a_python_file_that_fails_is_told_in_a_sentence(cli: Any, warehouse: Any, project: Path) -> None:
    (project / "c.py").write_text("1 / 0\n")
    ran = cli("view", "create", "c.py")
    assert ran.code == 2
    assert "'c.py' failed: ZeroDivisionError" in ran.err


def test_verify_checks_all_views_and_fails_when_one_differs(cli: Any, warehouse: Any) -> None:
    assert cli("view", "verify").code == 0
    warehouse.answers["verify"] = Verification("sales", 7, False, 42, ({"id": 1},), (), 1, 0)
    ran = cli("view", "verify", "sales", "-o", "json")
    assert ran.code == 1
    assert ran.json["views"][0]["missing"] == [{"id": 1}]
    assert "differs from recomputation: 1 row missing, 0 rows too many" in cli("view", "verify", "sales").out


def test_log_shows_the_newest_of_an_interval(cli: Any, warehouse: Any) -> None:
    assert cli("log", "--after", "2").code == 0
    assert warehouse.calls[0] == ("ledger", Interval(2, 9), 20)
    assert cli("log", "--after", "10").code == 2


def test_show_of_the_other_kind_says_where_to_look(cli: Any, warehouse: Any) -> None:
    ran = cli("table", "show", "sales")
    assert ran.code == 2
    assert "rollview view show" in ran.err


@pytest.mark.parametrize(
    "words",
    [
        ("status",),
        ("log",),
        ("table", "list"),
        ("table", "show", "orders"),
        ("view", "list"),
        ("view", "show", "sales"),
        ("view", "explain", "sales"),
        ("view", "drop", "sales"),
        ("view", "verify", "sales"),
        ("view", "roll", "sales", "--to", "8"),
    ],
)
def test_every_answer_has_both_forms(cli: Any, warehouse: Any, words: tuple[str, ...]) -> None:
    text, data = cli(*words), cli(*words, "--output", "json")
    assert (text.code, data.code) == (0, 0)
    assert text.out.strip()
    assert isinstance(data.json, dict)
    assert (text.err, data.err) == ("", "")


def test_maintain_passes_the_wishes_and_the_settings(cli: Any, warehouse: Any, project: Path) -> None:
    (project / "rollview.yaml").write_text("version: 1\nretention: 30 days\ndetail: {default: 7 days, orders: 1 day}\n")
    ran = cli("maintain", "-s", "+sales", "--compress-before", "8", "--grace", "0.5")
    assert ran.code == 0
    (name, select, wishes), *_ = warehouse.calls
    assert (name, select) == ("maintain", ("+sales",))
    assert wishes == {
        "explain": False,
        "retention": "30 days",
        "detail": {"default": "7 days", "orders": "1 day"},
        "prune_before": None,
        "compress_before": 8,
        "overtake": (),
        "grace": timedelta(minutes=30),
    }
    assert "40 of 41 files are small" in ran.out
    assert "2 KiB" in ran.out
    assert "(gone)" in ran.out


def test_maintain_explains_as_text_and_as_json(cli: Any, warehouse: Any) -> None:
    assert "Nothing was changed." in cli("maintain", "--explain").err
    answer = cli("maintain", "--explain", "-o", "json").json
    assert answer["explained"] is True
    assert answer["actions"][0]["interval"] == {"after": 0, "through": 9}
    assert answer["actions"][1]["relation"] is None
