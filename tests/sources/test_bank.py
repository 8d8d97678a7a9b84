"""Money is never made or lost: the sum over both databases is right at every csn, whatever is killed.

``ROLLVIEW_BANK=2000`` transfers with ``ROLLVIEW_BANK_KILLS=40`` kills are promised; ``ROLLVIEW_BANK_VIEWS=1`` has the
daemon keep views over both as well, and their every published version is looked at.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import pytest

from rollview.capture.stored_rows import load_rows
from rollview.catalog import Part
from rollview.project import load_project, start_project
from rollview.store.folder import DeltaFolder
from rollview.warehouse import Warehouse
from tests.servers.mariadb import MariadbServer
from tests.servers.postgres import PostgresServer, running_postgres
from tests.sources.bank import TABLES, TOTAL, VIEWS, Bank, moved
from tests.sources.harness import stored
from tests.sources.mariadb_harness import MariadbHarness
from tests.sources.postgres_harness import PostgresHarness

pytestmark = [pytest.mark.postgres, pytest.mark.mariadb]

TRANSFERS = int(os.environ.get("ROLLVIEW_BANK", "200"))
KILLS = int(os.environ.get("ROLLVIEW_BANK_KILLS", "4"))
WITH_VIEWS = os.environ.get("ROLLVIEW_BANK_VIEWS") == "1"

_CAPTURING = """
import sys, threading
from rollview.warehouse import Warehouse
with Warehouse.open(sys.argv[1]) as warehouse:
    while True:
        warehouse.capture()
"""


@pytest.fixture(scope="module")
def two_phase_server() -> Iterator[PostgresServer]:
    with running_postgres(settings={"max_prepared_transactions": "20"}) as server:
        yield server


@pytest.fixture
def bank(two_phase_server: PostgresServer, mariadb_server: MariadbServer) -> Iterator[Bank]:
    with closing(PostgresHarness(two_phase_server)) as pg, closing(MariadbHarness(mariadb_server)) as my:
        yield Bank(pg, my)


@pytest.fixture
def warehouse(tmp_path: Path, bank: Bank) -> Iterator[Warehouse]:
    start_project(tmp_path)
    with load_project(tmp_path).open() as warehouse:
        for name in ("pg", "my"):
            warehouse.add_source(name, bank.settings(name))
        yield warehouse


def test_money_is_never_made_or_lost(warehouse: Warehouse, bank: Bank, tmp_path: Path) -> None:
    if WITH_VIEWS:
        rollview(tmp_path, "sql", *VIEWS)
    people = bank.work(TRANSFERS, pause=4 * 2 / max(1, TRANSFERS // 8))
    chance = random.Random(7)
    for _ in range(KILLS):
        daemon = started(warehouse, tmp_path)
        progressed(warehouse, daemon)
        time.sleep(chance.random() * 0.5)
        daemon.send_signal(signal.SIGKILL)
        daemon.wait()
        check_published(warehouse)
    for person in people:
        person.join()
    with Warehouse.open(warehouse.root) as other:
        done = other.capture().sources
        assert [one.problem for one in done] == [None, None]
        assert other.held() == ()
        check(other, bank)


def check(warehouse: Warehouse, bank: Bank) -> None:
    assert bank.transfers == TRANSFERS // 8 * 8
    assert {csn: amount for csn, amount in moved(warehouse).items() if amount} == {}
    for table, harness in zip(TABLES, (bank.pg, bank.my), strict=True):
        assert stored(warehouse, table) == harness.rows("money")
    entries = warehouse.catalog.ledger()
    ids = Counter(one for entry in entries if entry.global_id for one in entry.global_id.split(", "))
    assert (len(ids), set(ids.values())) == (bank.globals, {1})
    last = warehouse.snapshot().moment.csn
    for csn in random.Random(1).sample(range(2, last + 1), 5):
        rows = [row for table in TABLES for row in stored(warehouse, table, csn).elements()]
        assert sum((row[1] for row in rows), Decimal(0)) == TOTAL


def check_published(warehouse: Warehouse) -> None:
    """What a reader of the views sees at this moment."""
    snapshot = warehouse.snapshot()
    for view in snapshot.views():
        folder = DeltaFolder(warehouse.root / "data" / view.folder / Part.EXTENT, view.schema)
        rows = load_rows(folder, view.pins[Part.EXTENT].version)
        assert sum(rows["balance"].to_pylist(), Decimal(0)) == TOTAL, f"{view.name} at {view.pins[Part.EXTENT]}"


def progressed(warehouse: Warehouse, daemon: subprocess.Popen[bytes]) -> None:
    """It has done something, or there is nothing left to do."""
    csn = warehouse.snapshot().moment.csn
    deadline = time.monotonic() + 60
    reads = {source.name: source.read for source in warehouse.sources()}
    while warehouse.snapshot().moment.csn == csn and time.monotonic() < deadline:
        assert daemon.poll() is None
        if all(source.read != reads[source.name] for source in warehouse.sources()):
            return
        time.sleep(0.05)


def started(warehouse: Warehouse, project: Path) -> subprocess.Popen[bytes]:
    program = ["-m", "rollview.cli.main", "run", "--interval", "0.2"] if WITH_VIEWS else ["-c", _CAPTURING]
    arguments = [] if WITH_VIEWS else [str(warehouse.root)]
    environment = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    return subprocess.Popen(
        [sys.executable, *program, *arguments], env=environment, cwd=project, stdout=subprocess.DEVNULL
    )


def rollview(project: Path, *arguments: str) -> None:
    environment = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    program = [sys.executable, "-m", "rollview.cli.main", *arguments]
    subprocess.run(program, env=environment, cwd=project, check=True, stdout=subprocess.DEVNULL)
