"""``rollview run`` beside a database that is written to all the time: killed again and again, it arrives, exactly.

``ROLLVIEW_KEEPS_UP`` seconds of writing, ``ROLLVIEW_KEEPS_UP_KILLS`` kills (3); ``make soak`` runs it. What it came to
is printed: commits written and done per second, how far the views were behind, and memory.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from statistics import median
from typing import IO, TYPE_CHECKING

import pytest
from tests.servers.postgres import PostgresServer, postgres_server
from tests.sources.busy_bank import TOTAL, VIEWS, BusyBank, Daemon, marks
from tests.sources.postgres_harness import PostgresHarness

from rollview.catalog import Part
from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["postgres_server"]

SECONDS = float(os.environ.get("ROLLVIEW_KEEPS_UP", "0"))
KILLS = int(os.environ.get("ROLLVIEW_KEEPS_UP_KILLS", "3"))
LONG = 300.0
"""From so many seconds of writing on, memory is judged."""
pytestmark = [
    pytest.mark.spark,
    pytest.mark.postgres,
    pytest.mark.skipif(SECONDS == 0, reason="ROLLVIEW_KEEPS_UP says for how many seconds, as in make soak"),
]

_SETTINGS = "version: 1\nwarehouse: warehouse\nschedule: continuous\n"


@pytest.fixture
def bank(postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[BusyBank]:
    with closing(PostgresHarness(postgres_server)) as pg:
        monkeypatch.setenv("BUSY_BANK", pg.url)
        made = BusyBank(pg)
        try:
            yield made
        finally:
            made.end()


@pytest.fixture
def warehouse(spark: SparkSession, tmp_path: Path, bank: BusyBank) -> Iterator[Warehouse]:
    (tmp_path / "rollview.yaml").write_text(_SETTINGS)
    Warehouse.create(tmp_path / "warehouse").close()
    with Warehouse.open(tmp_path / "warehouse", spark=spark) as opened:
        opened.add_source("bank", bank.settings("env:BUSY_BANK"))
        opened.capture()
        for name, query in VIEWS.items():
            opened.create_view(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        yield opened


def test_every_life_brings_every_view_nearer_and_all_arrive(
    warehouse: Warehouse, bank: BusyBank, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = warehouse.snapshot().moment.csn
    bank.begin()
    began = time.monotonic()
    with (tmp_path / "run.log").open("wb") as log:
        start = _seconds_to_move(warehouse, bank, tmp_path, log)
        for number in range(1, KILLS):
            _lives(warehouse, tmp_path, log, max(Random(number).uniform(10, 20), 1.2 * start))
        daemon = Daemon(tmp_path, log)
        try:
            told = _watched(warehouse, bank, daemon, began + SECONDS)
            bank.end()
            _until(lambda: _has_arrived(warehouse, bank, first), "the views do not arrive", daemon)
            assert daemon.stop() == 0
        finally:
            daemon.kill()
    with capsys.disabled():
        print(f"\nall views moved {start:.1f} s after a start; {told}")
    _check(warehouse, bank, first)


def _seconds_to_move(warehouse: Warehouse, bank: BusyBank, folder: Path, log: IO[bytes]) -> float:
    """The first life: all views move, then it is killed. It tells how long a life must be on this machine."""
    before, daemon, began = marks(warehouse), Daemon(folder, log), time.monotonic()
    try:
        _until(lambda: _all_larger(before, marks(warehouse)), "no view moves", daemon)
    finally:
        daemon.kill()
    return time.monotonic() - began


def _lives(warehouse: Warehouse, folder: Path, log: IO[bytes], seconds: float) -> None:
    """A daemon that is killed after so many seconds, but has moved every view."""
    before, daemon = marks(warehouse), Daemon(folder, log)
    try:
        time.sleep(seconds)
        assert daemon.process.poll() is None, (folder / "run.log").read_text()[-2000:]
    finally:
        daemon.kill()
    after = marks(warehouse)
    assert _all_larger(before, after), f"in {seconds:.0f} s: {before} became {after}"


def _all_larger(before: dict[str, int], after: dict[str, int]) -> bool:
    return all(after[name] > before[name] for name in VIEWS)


def _watched(warehouse: Warehouse, bank: BusyBank, daemon: Daemon, until: float) -> str:
    """While commits go on: how quick the views are, how far behind, and in how much memory."""
    seen: list[tuple[float, int, int, int, dict[str, int]]] = []
    while not seen or time.monotonic() < until:
        time.sleep(1)
        newest, lowest = warehouse.snapshot().moment.csn, min(marks(warehouse).values())
        seen.append((time.monotonic(), bank.commits, newest, lowest, daemon.memory()))
    first, last = seen[0], seen[-1]
    seconds = max(1.0, last[0] - first[0])
    written, done = (last[1] - first[1]) / seconds, (last[3] - first[3]) / seconds
    behind = [bank_commits - lowest for _, bank_commits, _, lowest, _ in seen]
    told = f"{written:.0f} commits/s written, {done:.0f} done by the slowest view; behind by {behind[0]}…{behind[-1]}"
    for who in ("daemon", "driver"):
        sizes = [memory[who] >> 20 for *_, memory in seen]
        third = max(1, len(sizes) // 3)
        early, late = median(sizes[third : 2 * third] or sizes), median(sizes[-third:])
        told += f"; {who} {early:.0f} → {late:.0f} MiB"
        assert seconds < LONG or late <= 1.2 * early + 64, told
    return told


def _until(reached: Callable[[], bool], otherwise: str, daemon: Daemon, seconds: float = 900.0) -> None:
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline, otherwise
        assert daemon.process.poll() is None, "the daemon ended"
        time.sleep(0.5)


def _has_arrived(warehouse: Warehouse, bank: BusyBank, first: int) -> bool:
    newest, at = warehouse.snapshot(), first + bank.commits
    return newest.moment.csn == at and all(newest.get(name).pins[Part.EXTENT].through == at for name in VIEWS)


def _check(warehouse: Warehouse, bank: BusyBank, first: int) -> None:
    """All views are the database's own answers; no money was lost or found at any csn."""
    for name in VIEWS:
        found = Counter(tuple(row) for row in warehouse.read(name).collect())
        assert found == bank.answer(name), name
    csns = Random(5).sample(range(first, first + bank.commits + 1), 5)
    for csn in csns:
        sums = warehouse.read("sums", as_of=csn).collect()
        assert sum(row["balance"] for row in sums) == TOTAL
        assert sum(row["balance"] for row in warehouse.read("named", as_of=csn).collect()) == TOTAL
