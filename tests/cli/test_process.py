"""As a process of its own: streams, exit codes, and commands that need no data start no Spark and load little."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

NO_SPARK = [
    ("--help",),
    ("--version",),
    ("view", "--help"),
    ("status",),
    ("log",),
    ("table", "list"),
    ("view", "list"),
    ("lab", "run", "strobe-3"),
]

WATCH = """
import sys
sys.argv[0] = "rollview"
from rollview.cli.main import main
try:
    main()
finally:
    print(sorted(set(HEAVY) & set(sys.modules)), file=sys.stderr)
    ours = [name.removeprefix("rollview.") for name in sys.modules if name.startswith("rollview.")]
    print(*sorted({name for name in ours if name.startswith(("cli.", "results."))} - set(SHELL)), file=sys.stderr)
"""
SHELL = (
    *("cli.answers", "cli.arguments", "cli.exits", "cli.invocation", "cli.main", "cli.output", "cli.points"),
    *("cli.progress", "results.answer"),
)
"""What every command loads of the command line."""
TEXT = "cli.render cli.render.dispatch cli.render.words cli.text"
GENERAL = "cli.files cli.general cli.shell cli.space cli.statements"
VIEWS = "cli.files cli.general cli.relations cli.shell cli.statements cli.views"
OWN = {
    (
        "status",
    ): f"{GENERAL} {TEXT} cli.render.sources cli.render.status results.sources results.statements results.status",
    ("status", "--output", "json"): f"{GENERAL} results.sources results.statements results.status",
    ("log",): f"{GENERAL} {TEXT} cli.render.relations cli.render.statements results.statements",
    ("view", "list"): f"{VIEWS} {TEXT} cli.render.relations",
    ("view", "list", "--output", "json", "--project-dir", "."): VIEWS,
}
"""What some commands load besides."""
HEAVY = (
    "pyspark",
    "py4j",
    "pyarrow",
    "deltalake",
    "pandas",
    "numpy",
    "alembic",
    "mako",
    "psycopg",
    "pymysql",
    "sqlglot",
    "pydantic",
)
"""What takes long to import. Without them a command answers in less than half a second on an idle machine."""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project that no test changes."""
    place = tmp_path_factory.mktemp("project")
    command = [sys.executable, "-m", "rollview.cli.main", "init", "shop"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=place)
    assert (done.returncode, done.stderr) == (0, ""), done
    return place / "shop"


def test_init_makes_a_project_that_is_found_from_below(project: Path, process: Any) -> None:
    assert sorted(path.name for path in project.iterdir()) == [".gitignore", ".rollview", "rollview.yaml", "views"]
    assert process("status", cwd=project / "views").code == 0
    assert process("status", "--project-dir", str(project), cwd="/").code == 0
    again = process("init", cwd=project)
    assert again.code == 2
    assert "already" in again.err


@pytest.mark.parametrize("words", NO_SPARK, ids=" ".join)
def test_commands_without_data_load_nothing_heavy(project: Path, words: tuple[str, ...]) -> None:
    heavy, _ = _loaded(project, words)
    assert heavy == "[]"


@pytest.mark.parametrize("words", OWN, ids=" ".join)
def test_a_command_loads_no_other_commands_and_no_other_answers(project: Path, words: tuple[str, ...]) -> None:
    _, own = _loaded(project, words)
    assert own.split() == sorted(OWN[words].split())


def _loaded(project: Path, words: tuple[str, ...]) -> list[str]:
    command = [sys.executable, "-c", f"HEAVY = {HEAVY}\nSHELL = {SHELL}\n{WATCH}", *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=project)
    assert done.returncode == 0
    assert done.stdout
    return done.stderr.splitlines()


def test_an_unknown_view_is_told_with_close_names(project: Path, process: Any) -> None:
    ran = process("view", "show", "sales", "--output", "json", cwd=project)
    assert (ran.code, ran.out) == (2, "")
    assert '"code": "not_found"' in ran.err


def test_a_reader_that_leaves_early_causes_no_complaint(project: Path) -> None:
    line = f"{sys.executable} -m rollview.cli.main status | true"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, cwd=project)
    assert done.stderr == ""
