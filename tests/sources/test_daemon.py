"""``rollview run``: several at once, killed, and with a source that is down."""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from rollview.results import Captured
from rollview.sources import SourceSettings, TableSettings
from rollview.warehouse import Warehouse
from tests.servers.postgres import PostgresServer
from tests.sources.harness import Write, account, stored
from tests.sources.postgres_harness import PostgresHarness
from tests.sources.sqlite_harness import SqliteHarness

KILLS = int(os.environ.get("ROLLVIEW_DAEMON_KILLS", "3"))


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[SqliteHarness]:
    with closing(SqliteHarness(tmp_path)) as harness:
        yield harness


def until(warehouse: Warehouse, bank: SqliteHarness, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while stored(warehouse, "account") != bank.rows("account"):
        assert time.monotonic() < deadline, "the daemon does not catch up"
        time.sleep(0.1)


def test_two_daemons_capture_everything_once(empty_warehouse: Warehouse, bank: SqliteHarness) -> None:
    empty_warehouse.add_source("bank", bank.settings())
    stop = threading.Event()
    units: list[int] = []
    problems: list[object] = []

    def work() -> None:
        with Warehouse.open(empty_warehouse.root) as own:
            for event in own.run(0.1, stop, schedule="continuous"):
                if isinstance(event, Captured):
                    units.extend(source.units for source in event.sources)
                    problems.extend(source.problem for source in event.sources if source.problem)
                else:
                    problems.append(event)

    daemons = [threading.Thread(target=work) for _ in range(2)]
    for daemon in daemons:
        daemon.start()
    try:
        for number in range(10, 60):
            bank.write(Write("account", None, account(number, "n", "1.00")))
            time.sleep(0.01)
        until(empty_warehouse, bank)
    finally:
        stop.set()
        for daemon in daemons:
            daemon.join()
    assert problems == []
    assert sum(units) == empty_warehouse.snapshot().moment.csn - 1


def test_a_daemon_that_is_killed_goes_on_when_it_is_started_again(
    empty_warehouse: Warehouse, bank: SqliteHarness, tmp_path: Path
) -> None:
    empty_warehouse.add_source("bank", bank.settings())
    (tmp_path / "rollview.yaml").write_text("version: 1\nwarehouse: warehouse\nschedule: {bank: every 0.1 seconds}\n")
    program = [sys.executable, "-m", "rollview.cli.main", "run", "--output", "json"]
    environment = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    chance, numbers = random.Random(1), itertools.count(10)
    for kill in range(KILLS + 1):
        daemon = subprocess.Popen(program, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
        assert daemon.stdout is not None
        bank.write(Write("account", None, account(next(numbers), "n", "1.00")))
        assert daemon.stdout.readline()
        for number in itertools.islice(numbers, 30):
            bank.write(Write("account", None, account(number, "n", "1.00")))
            time.sleep(0.01)
        if kill == KILLS:
            until(empty_warehouse, bank)
        time.sleep(chance.random() / 5)
        daemon.send_signal(signal.SIGTERM if kill == KILLS else signal.SIGKILL)
        assert daemon.wait(60) == (0 if kill == KILLS else -signal.SIGKILL)
        daemon.stdout.close()
    assert stored(empty_warehouse, "account") == bank.rows("account")


@pytest.mark.postgres
def test_a_source_that_is_down_is_tried_again_and_hurts_nobody(
    empty_warehouse: Warehouse, bank: SqliteHarness, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(PostgresHarness(postgres_server)) as other:
        monkeypatch.setenv("OTHER", other.url)
        table = TableSettings("far", "account")
        empty_warehouse.add_source("far", SourceSettings("postgres", "env:OTHER", (table,)))
        empty_warehouse.add_source("bank", bank.settings())
        monkeypatch.setenv("OTHER", "postgresql://nobody@127.0.0.1:1/none")
        stop = threading.Event()
        tried = 0
        for event in empty_warehouse.run(0.1, stop):
            assert isinstance(event, Captured)
            tried += event.sources[0].name == "far"
            if tried == 3:
                stop.set()
            bank.write(Write("note", None, ("x",)))
        far, near = empty_warehouse.sources()
        assert (far.state, near.state) == ("retrying", "active")
        assert far.retry_at is not None
        assert far.retry_at > datetime.now(UTC)
        assert near.retry_at is None
        empty_warehouse.capture(["bank"])
        assert stored(empty_warehouse, "note") == bank.rows("note")
        monkeypatch.setenv("OTHER", other.url)
        assert [done.problem for done in empty_warehouse.capture().sources] == [None, None]
        assert empty_warehouse.sources()[0].state == "active"
        assert empty_warehouse.sources()[0].retry_at is None
        assert stored(empty_warehouse, "far") == Counter(other.rows("account"))
