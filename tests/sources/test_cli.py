"""What a user types about sources, and sees."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rollview.cli.main import main

Run = Callable[..., tuple[int, Any, str]]


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(tmp_path / "shop.db", isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, amount DECIMAL(12,2))")
        db.execute("INSERT INTO orders VALUES (1, 9.90)")
        yield db


@pytest.fixture
def rollview(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, Any, str]:
        with pytest.raises(SystemExit) as ended:
            main([*arguments, "--output", "json"])
        said = capsys.readouterr()
        return int(ended.value.code or 0), json.loads(said.out) if said.out else None, said.err

    run("init")
    return run


def test_a_source_from_first_to_last(rollview: Run, shop: sqlite3.Connection) -> None:
    added = ("shop", "sqlite", "shop.db", "--table", "sales=orders")
    assert rollview("source", "check", *added)[1] == {"name": "shop", "ready": True, "findings": []}
    code, answer, _ = rollview("source", "add", *added)
    assert (code, answer["tables"], answer["csn"]) == (0, [{"name": "sales", "rows": 1, "reading": None}], 1)
    shop.execute("INSERT INTO orders VALUES (2, 1)")
    code, answer, _ = rollview("capture", "shop")
    assert (code, answer["sources"][0]["units"], answer["csn"]) == (0, 1, 2)
    (line,) = rollview("source", "list")[1]["sources"]
    assert (line["name"], line["state"], line["position"].partition("-")[0]) == ("shop", "active", "2")
    assert (line["oldest_open"], line["open_since"], line["open_seconds"]) == (None, None, None)
    assert rollview("source", "show", "SHOP")[1]["tables"] == ["sales"]
    assert rollview("status")[1]["sources"][0]["name"] == "shop"
    assert rollview("log")[1]["entries"][1]["source"] == "shop"
    assert rollview("source", "check", "shop")[1]["ready"]
    assert rollview("source", "remove", "shop")[0] == 0
    assert rollview("source", "list")[1]["sources"] == []


def test_the_file_describes_a_source(rollview: Run, shop: sqlite3.Connection, tmp_path: Path) -> None:
    with (tmp_path / "rollview.yaml").open("a") as file:
        file.write("sources:\n  shop: {kind: sqlite, address: shop.db, tables: [orders]}\n")
    assert rollview("source", "add", "shop")[0] == 0
    settings = (tmp_path / "rollview.yaml").read_text()
    (tmp_path / "rollview.yaml").write_text(settings.replace("[orders]", "[orders], options: {spool_limit: 1 GB}"))
    code, answer, _ = rollview("source", "add", "shop")
    assert (code, answer["tables"]) == (0, [])
    assert rollview("source", "add", "shop")[0] == 2
    code, _, said = rollview("source", "add", "other")
    assert code == 2
    assert "other" in json.loads(said)["error"]["message"]


def test_what_is_wrong_is_told(rollview: Run, shop: sqlite3.Connection) -> None:
    code, answer, _ = rollview("source", "check", "s", "sqlite", "shop.db", "--table", "none")
    assert (code, answer["ready"]) == (1, False)
    for wrong in (
        ("s", "oracle", "x", "--table", "t"),
        ("s", "sqlite", "shop.db"),
        ("s", "sqlite"),
        ("s", "sqlite", "shop.db", "--table", "orders", "--type", "x"),
        ("s", "postgres", "postgresql://u:secret@h/d", "--table", "t"),
    ):
        code, _, said = rollview("source", "add", *wrong)
        assert code == 2
        assert "secret" not in said
    assert rollview("capture", "none")[0] == 2


def test_a_stopped_source_fails_the_command(rollview: Run, shop: sqlite3.Connection) -> None:
    rollview("source", "add", "shop", "sqlite", "shop.db", "--table", "orders")
    shop.execute("INSERT INTO orders VALUES (2, 'many')")
    code, answer, _ = rollview("capture")
    assert code == 1
    assert "'amount'" in answer["sources"][0]["problem"]
    shop.execute("DELETE FROM orders WHERE id = 2")
    assert rollview("capture")[0] == 1
    assert rollview("source", "resnapshot", "shop")[0] == 0
    assert rollview("capture")[0] == 0


def test_the_daemon_stops_when_it_is_asked(rollview: Run, shop: sqlite3.Connection, tmp_path: Path) -> None:
    rollview("source", "add", "shop", "sqlite", "shop.db", "--table", "orders")
    shop.execute("INSERT INTO orders VALUES (2, 1)")
    program = [sys.executable, "-m", "rollview.cli.main", "run", "--interval", "0.2", "--output", "json"]
    environment = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    daemon = subprocess.Popen(program, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert daemon.stdout is not None
    assert json.loads(daemon.stdout.readline())["sources"][0]["units"] == 1
    shop.execute("INSERT INTO orders VALUES (3, 1)")
    assert json.loads(daemon.stdout.readline())["csn"] == 3
    time.sleep(0.1)
    daemon.send_signal(signal.SIGTERM)
    assert daemon.wait(60) == 0
    daemon.stdout.close()


def test_what_the_views_of_the_project_need_is_copied(rollview: Run, shop: sqlite3.Connection, tmp_path: Path) -> None:
    shop.execute("CREATE TABLE places (state TEXT PRIMARY KEY, region TEXT, people BIGINT)")
    shop.execute("INSERT INTO places VALUES ('CA', 'west', 39), ('NV', 'west', 3), ('WI', 'north', 6)")
    with (tmp_path / "rollview.yaml").open("a") as file:
        file.write("sources:\n  shop: {kind: sqlite, address: shop.db, copy: needed, tables: [orders, places]}\n")
    view = "CREATE MATERIALIZED VIEW large AS SELECT state, other FROM places, later WHERE people > 5"
    (tmp_path / "views" / "large.sql").write_text(view.replace(", other", "").replace(", later", ""))
    _, answer, _ = rollview("source", "add", "shop")
    assert answer["tables"] == [
        {"name": "orders", "rows": 0, "reading": None},
        {"name": "places", "rows": 2, "reading": None},
    ]
    layouts = {one["table"]: one for one in rollview("source", "show", "shop")[1]["layouts"]}
    assert layouts["places"]["columns"] == ["state string", "people bigint"]
    assert layouts["places"]["reason"] == "first copy; rows: `people` > 5"
    assert layouts["orders"]["columns"] == ["id bigint"]
    assert rollview("source", "remove", "shop")[0] == 0
    (tmp_path / "views" / "large.sql").write_text(view)
    _, answer, _ = rollview("source", "add", "shop")
    assert answer["tables"] == [
        {"name": "orders", "rows": 0, "reading": None},
        {"name": "places", "rows": 3, "reading": None},
    ]
    layouts = {one["table"]: one for one in rollview("source", "show", "shop")[1]["layouts"]}
    assert layouts["places"]["columns"] == ["state string", "people bigint"]


def test_a_statement_that_triggers_block(rollview: Run, shop: sqlite3.Connection) -> None:
    rollview("source", "add", "shop", "sqlite", "shop.db", "--table", "orders")
    code, answer, _ = rollview("source", "ddl", "shop", "ALTER TABLE orders DROP COLUMN amount")
    assert (code, answer["problem"]) == (0, None)
    assert [column["column"] for column in rollview("schema", "show", "orders")[1]["columns"]] == ["id"]
    code, _, error = rollview("source", "ddl", "shop", "DROP TABLE orders")
    assert (code, "ALTER TABLE" in error) == (2, True)


def test_a_rename_is_said_of_files_only(rollview: Run, shop: sqlite3.Connection) -> None:
    rollview("source", "add", "shop", "sqlite", "shop.db", "--table", "orders")
    code, _, error = rollview("schema", "rename", "orders", "amount", "total")
    assert (code, "proves itself" in error) == (2, True)
