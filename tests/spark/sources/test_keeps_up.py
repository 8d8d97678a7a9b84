"""``rollview run`` beside a database that is written to all the time: killed again and again, it arrives, exactly.

Nothing here depends on how quick the machine is: lives end by what was done in them, and counts of commits and turns
are compared. ``make soak`` runs it at length: ``ROLLVIEW_KEEPS_UP_KILLS`` lives of 10 to 20 seconds or more, and then
one that is watched for ``ROLLVIEW_KEEPS_UP`` seconds. What it came to is printed then: commits written and done per
second, how far the views were behind, and memory.
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
from typing import TYPE_CHECKING, NamedTuple

import pytest
import yaml
from tests.servers.java import SMALL
from tests.servers.postgres import PostgresServer
from tests.sources import busy_bank
from tests.sources.busy_bank import TOTAL, BusyBank, Daemon, marks
from tests.sources.postgres_harness import PostgresHarness

from rollview.catalog import Part
from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


SECONDS = float(os.environ.get("ROLLVIEW_KEEPS_UP", "0"))
"""For so long the last life is watched; 0: not at all."""
KILLS = int(os.environ.get("ROLLVIEW_KEEPS_UP_KILLS", "1"))
AT_ONCE, PER_SECOND = (18_000, 300.0) if SECONDS else (800, 30.0)
"""Commits before the first life, as after a pause of a minute, and beside the lives."""
VIEWS = {
    name: query
    for name, query in busy_bank.VIEWS.items()
    if SECONDS or name in ("sums", "largest", "different", "named")
}
LONG = 300.0
"""From so many seconds of writing on, speed and memory are judged."""
CATCHES_UP = 3
"""So many commits are done for each one that is written, while the views are behind."""
pytestmark = [pytest.mark.spark, pytest.mark.postgres]

_SETTINGS = {"version": 1, "warehouse": "warehouse", "schedule": "continuous", "spark": {} if SECONDS else SMALL}


@pytest.fixture
def bank(postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[BusyBank]:
    with closing(PostgresHarness(postgres_server)) as pg:
        monkeypatch.setenv("BUSY_BANK", pg.url)
        made = BusyBank(pg, PER_SECOND)
        try:
            yield made
        finally:
            made.end()


@pytest.fixture
def warehouse(spark: SparkSession, tmp_path: Path, bank: BusyBank) -> Iterator[Warehouse]:
    (tmp_path / "rollview.yaml").write_text(yaml.safe_dump(_SETTINGS))
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
    bank.begin(AT_ONCE)
    lives = [_life(warehouse, tmp_path, Random(number)) for number in range(KILLS)]
    daemon = Daemon(tmp_path)
    try:
        told = _watched(warehouse, bank, daemon, time.monotonic() + SECONDS)
        bank.end()
        _until(lambda: _has_arrived(warehouse, bank, first), "the views do not arrive", daemon)
        assert daemon.stop() == 0, daemon.said()[-2000:]
    finally:
        daemon.kill()
    if SECONDS:
        with capsys.disabled():
            print(f"\nlives of {', '.join(f'{life:.0f}' for life in lives)} s; {told}")
    _check(warehouse, bank, first)


def _life(warehouse: Warehouse, folder: Path, chance: Random) -> float:
    """Of a daemon that is killed in the middle of its work, as soon as it has moved every view; in how many seconds.

    Not one of them had a second turn before each had its first.
    """
    before, daemon, began = marks(warehouse), Daemon(folder), time.monotonic()
    try:
        _until(lambda: _all_larger(before, marks(warehouse)), "not every view moves", daemon)
        if SECONDS:
            time.sleep(max(0.0, began + chance.uniform(10, 20) - time.monotonic()))
    finally:
        daemon.kill()
    turns = daemon.turns()[: len(VIEWS)]
    assert len(set(turns)) == len(turns), turns
    assert _all_larger(before, marks(warehouse))
    return time.monotonic() - began


def _all_larger(before: dict[str, int], after: dict[str, int]) -> bool:
    return all(after[name] > before[name] for name in before)


class _Seen(NamedTuple):
    time: float
    written: int
    done: int
    """By the view that is furthest behind."""
    memory: dict[str, int]

    @property
    def behind(self) -> int:
        return self.written - self.done


def _watched(warehouse: Warehouse, bank: BusyBank, daemon: Daemon, until: float) -> str:
    """While commits go on: how quick the views are, how far behind, and in how much memory."""
    seen: list[_Seen] = []
    while not seen or time.monotonic() < until:
        time.sleep(1)
        assert daemon.process.poll() is None, daemon.said()[-2000:]
        seen.append(_Seen(time.monotonic(), bank.commits, min(marks(warehouse).values()), daemon.memory()))
    seconds = max(1.0, seen[-1].time - seen[0].time)
    written, done = seen[-1].written - seen[0].written, seen[-1].done - seen[0].done
    told = f"{written / seconds:.0f} commits/s written, {done / seconds:.0f} done by the slowest view"
    told += f"; behind by {seen[0].behind}…{seen[-1].behind}; {_catching_up(seen)}"
    for who in ("daemon", "driver"):
        sizes = [one.memory[who] >> 20 for one in seen]
        third = max(1, len(sizes) // 3)
        early, late = median(sizes[third : 2 * third] or sizes), median(sizes[-third:])
        told += f"; {who} {early:.0f} → {late:.0f} MiB"
        assert seconds < LONG or late <= 1.2 * early + 64, told
    assert seconds < LONG or seen[-1].behind <= seen[0].behind, told
    return told


def _catching_up(seen: list[_Seen]) -> str:
    """Commits done for each one written until the views were a second behind, or as long as it was watched."""
    end = next((one for one in seen if one.behind <= PER_SECOND), seen[-1])
    written = max(1, end.written - seen[0].written)
    told = f"{(end.done - seen[0].done) / written:.1f} done for each one written while catching up"
    return told + (f" (goal {CATCHES_UP})" if end.behind <= PER_SECOND else ", not yet there")


def _until(reached: Callable[[], bool], otherwise: str, daemon: Daemon, seconds: float = 900.0) -> None:
    deadline = time.monotonic() + seconds
    while not reached():
        assert daemon.process.poll() is None, daemon.said()[-2000:]
        assert time.monotonic() < deadline, f"{otherwise}: {daemon.said()[-2000:]}"
        time.sleep(0.2)


def _has_arrived(warehouse: Warehouse, bank: BusyBank, first: int) -> bool:
    newest, at = warehouse.snapshot(), first + bank.commits
    return newest.moment.csn == at and all(newest.get(name).pins[Part.EXTENT].through == at for name in VIEWS)


def _check(warehouse: Warehouse, bank: BusyBank, first: int) -> None:
    """All views are the database's own answers; no money was lost or found at any csn."""
    for name in VIEWS:
        found = Counter(tuple(row) for row in warehouse.read(name).collect())
        assert found == bank.answer(name), name
    csns = Random(5).sample(range(first, first + bank.commits + 1), 5 if SECONDS else 2)
    for csn in csns:
        for name in ("sums", "named"):
            assert sum(row["balance"] for row in warehouse.read(name, as_of=csn).collect()) == TOTAL, (name, csn)
