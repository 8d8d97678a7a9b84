"""One story on every kind of Spark session; what it leaves is read by programs that know nothing of rollview."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from rollview import Warehouse
from tests.anywhere.others import check_with_others
from tests.servers.spark import cluster, connect_server

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.spark, pytest.mark.slow]
in_full = pytest.mark.skipif(
    os.environ.get("ROLLVIEW_ANYWHERE") != "1", reason="NOT RUN: it tells the story once more; 'make anywhere' runs it"
)


def configured(folder: Path, **spark: str) -> None:
    Warehouse.create(folder / "w").close()
    lines = ["version: 1", "warehouse: w", "spark:", *(f"  {key.replace('__', '.')}: {spark[key]}" for key in spark)]
    (folder / "rollview.yaml").write_text("\n".join(lines), encoding="utf-8")


def tell(kind: str, folder: Path, server: Sequence[str] = ()) -> None:
    """In a process of its own: one process has one kind of session."""
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    told = subprocess.run(
        [sys.executable, "-m", "tests.anywhere.tell", kind, folder, *server],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert told.returncode == 0, told.stdout[-3000:] + told.stderr[-6000:]


@in_full
def test_a_session_of_our_own(tmp_path: Path) -> None:
    configured(tmp_path, master="local[2]")
    tell("configured", tmp_path)
    check_with_others(tmp_path / "w")


def test_a_session_that_the_user_gives_stays_as_it_is(tmp_path: Path) -> None:
    Warehouse.create(tmp_path / "w").close()
    tell("given", tmp_path)
    check_with_others(tmp_path / "w")


def test_spark_connect_by_its_address_and_by_a_session_of_the_users(tmp_path: Path) -> None:
    with connect_server(tmp_path) as address:
        configured(tmp_path, remote=address, spark__sql__shuffle__partitions="3")
        tell("configured", tmp_path)
        tell("beside", tmp_path, [address])
    check_with_others(tmp_path / "w")


@in_full
def test_a_cluster_of_a_master_and_two_workers(tmp_path: Path) -> None:
    with cluster(tmp_path) as address:
        small = {"spark__executor__memory": "512m", "spark__driver__host": "127.0.0.1"}
        configured(tmp_path, master=address, **small, spark__sql__shuffle__partitions="3")
        tell("configured", tmp_path)
        worked = [place for place in tmp_path.glob("worker-*") if any(place.glob("app-*/*/stderr"))]
    assert len(worked) == 2
    check_with_others(tmp_path / "w")
