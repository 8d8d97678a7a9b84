"""As a process of its own: streams, exit codes, and commands that need no data start no Spark."""

from __future__ import annotations

import time
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
]

WATCH = """
import sys
sys.argv[0] = "rollview"
from rollview.cli.main import main
try:
    main()
finally:
    print("pyspark" in sys.modules, file=sys.stderr)
"""


@pytest.fixture
def project(tmp_path: Path, process: Any) -> Path:
    ran = process("init", "shop", cwd=tmp_path)
    assert (ran.code, ran.err) == (0, ""), ran
    return tmp_path / "shop"


def test_init_makes_a_project_that_is_found_from_below(project: Path, process: Any) -> None:
    assert sorted(path.name for path in project.iterdir()) == [".gitignore", ".rollview", "rollview.yaml", "views"]
    assert process("status", cwd=project / "views").code == 0
    assert process("status", "--project-dir", str(project), cwd="/").code == 0
    again = process("init", cwd=project)
    assert again.code == 2
    assert "already" in again.err


@pytest.mark.parametrize("words", NO_SPARK, ids=" ".join)
def test_commands_without_data_start_no_spark(project: Path, words: tuple[str, ...]) -> None:
    import subprocess
    import sys

    command = [sys.executable, "-c", WATCH, *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=project)
    assert done.returncode == 0
    assert done.stderr == "False\n"
    assert done.stdout


def test_status_answers_quickly(project: Path, process: Any) -> None:
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        assert process("status", cwd=project).code == 0
        times.append(time.perf_counter() - begin)
    # a second is the promise on an idle machine; tests run on busy ones
    assert min(times) < 3


def test_an_unknown_view_is_told_with_close_names(project: Path, process: Any) -> None:
    ran = process("view", "show", "sales", "--output", "json", cwd=project)
    assert (ran.code, ran.out) == (2, "")
    assert '"code": "not_found"' in ran.err


def test_a_reader_that_leaves_early_causes_no_complaint(project: Path) -> None:
    import subprocess
    import sys

    line = f"{sys.executable} -m rollview.cli.main status | true"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, cwd=project)
    assert done.stderr == ""
