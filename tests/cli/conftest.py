"""The real command line on a real warehouse: in this process on one warm Spark, or as a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rollview.cli.main import main


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    def run(*arguments: str) -> Ran:
        with pytest.raises(SystemExit) as ended:
            main(list(arguments))
        said = capfd.readouterr()
        return Ran(int(ended.value.code or 0), said.out, said.err)

    return run


@pytest.fixture
def process(tmp_path: Path) -> Callable[..., Ran]:
    def run(*arguments: str, **options: Any) -> Ran:
        env = {**os.environ, "COLUMNS": "200", **options.pop("env", {})}
        command = [sys.executable, "-m", "rollview.cli.main", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, env=env, **options)
        return Ran(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Callable[..., Ran]) -> Path:
    """A fresh project, and this process inside it."""
    folder = tmp_path / "shop"
    assert cli("init", str(folder)).code == 0
    (folder / "rollview.yaml").write_text("version: 1\nspark:\n  spark.master: local[2]\n")
    monkeypatch.chdir(folder)
    return folder
