"""Small C libraries, loaded before everything else in a process of its own, that change what the system answers."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.faults.crew import Crew, crew_on

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def library(name: str, folder: Path) -> Path:
    """``name.c``, compiled."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("NOT RUN: there is no C compiler (cc), and what the system answers cannot be changed without one")
    made = folder / f"{name}.so"
    source = Path(__file__).with_name(f"{name}.c")
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", made, source, "-ldl"], check=True)
    return made


@contextmanager
def crew_with(library: Path, spark: SparkSession | None) -> Iterator[Crew]:
    """Workers that have it loaded."""
    with crew_on(spark, "spawn") as crew, pytest.MonkeyPatch.context() as patch:
        patch.setenv("LD_PRELOAD", str(library))
        yield crew
