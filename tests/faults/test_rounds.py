"""Two to eight processes capture and maintain one warehouse, round after round; one is stopped past its lease.

Every committed transaction of the source is in the tables once, at every csn, whoever was stopped where. These stages
need no Spark, so a round is short; ``test_processes`` has the others.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
from tests.faults import crew as crews
from tests.faults import tasks
from tests.faults.crew import Place, Worker
from tests.servers.postgres import PostgresServer
from tests.sizes import times
from tests.sources.harness import Row, Write, account, stored, stored_at_each
from tests.sources.sqlite_harness import SqliteHarness

from rollview import errors
from rollview.core import faults
from rollview.core.faults import STEPS
from rollview.maintain import plan as planning
from rollview.warehouse import Warehouse

LEASE = 0.4
ROUNDS = times(16, full=500)
MOST = 8
STOPS = (
    *(step for step in STEPS if step.startswith("capture.") and step != "capture.acknowledged"),
    *("merge.computed", "merge.logged", "fold.computed", "fold.logged"),
)


@dataclass
class Bank:
    """The source, the warehouse and everybody at work on it."""

    place: Place
    source: SqliteHarness
    workers: list[Worker]
    chance: random.Random
    held: list[Row] = field(default_factory=list)
    count: int = 100

    def write(self) -> None:
        """A transaction of the source: an account comes, another changes or goes, and two notes are the same."""
        self.count += 1
        writes = [Write("account", None, account(self.count, "new", "1.00"))]
        if self.held and self.chance.random() < 0.6:
            old = self.held.pop(self.chance.randrange(len(self.held)))
            new = account(old[0], "changed", f"{self.count}.00") if self.chance.random() < 0.7 else None
            writes.append(Write("account", old, new))
            self.held += [new] if new is not None else []
        self.held.append(account(self.count, "new", "1.00"))
        note = (f"note {self.count % 7}",)
        self.source.write(*writes, Write("note", None, note), Write("note", None, note))


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def bank(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bank]:
    folder = tmp_path_factory.mktemp("rounds")
    if request.param == "sqlite":
        yield from founded(Place(folder / "bank", lease_seconds=LEASE), folder)
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    with server.new_schema() as url:
        yield from founded(Place(folder / "bank", url, lease_seconds=LEASE), folder)


def founded(place: Place, folder: Path) -> Iterator[Bank]:
    source = SqliteHarness(folder)
    with Warehouse.create(place.root, place.url) as warehouse:
        warehouse.add_source("bank", source.settings())
    with closing(source), crews.crew_on(None) as crew:
        yield Bank(place, source, [crew.start(place, work) for _ in range(MOST)], random.Random(8))


def test_rounds(bank: Bank) -> None:
    stopped = sum(run_round(bank) for _ in range(ROUNDS))
    assert stopped > ROUNDS / 3, "leaders were stopped"
    for worker in bank.workers:
        worker.tell(None)
        assert worker.end().error is None
    with bank.place.open(None) as warehouse:
        warehouse.capture()
        check(bank, warehouse)
        assert warehouse.catalog.steps(status="running") == ()
        check_every_csn(warehouse)


def run_round(bank: Bank) -> bool:
    """Whether the leader was stopped where others took over; if so it changes nothing once it goes on."""
    chance = bank.chance
    leader, *others = chance.sample(bank.workers, chance.randint(2, MOST))
    step = chance.choice(STOPS)
    for _ in range(chance.randint(1, 3)):
        bank.write()
    task = "capture" if step.startswith("capture") else "maintain"
    leader.tell((task, step))
    stopped = wait_until_stopped_or_done(leader)
    bank.write()
    for other in others:
        other.tell(("maintain" if chance.random() < 0.2 else "capture", ""))
    problems = [answer(other) for other in others]
    assert problems == [None] * len(others)
    with bank.place.open(None) as warehouse:
        warehouse.capture()
        check(bank, warehouse)
        pins = {name: relation.pins for name, relation in warehouse.snapshot().relations.items()}
        if stopped:
            os.kill(leader.pid, signal.SIGCONT)
            problem = answer(leader)
            assert problem in (None, *RETRIED), problem
            stopped = problem is not None
        check(bank, warehouse)
        now = {name: relation.pins for name, relation in warehouse.snapshot().relations.items()}
        assert now == pins or not stopped, f"stopped at {step}, it changed what others had published"
    return stopped


def answer(worker: Worker) -> Any:
    assert worker.answers.poll(crews.PATIENCE), "the worker does not answer"
    return worker.answers.recv()


def wait_until_stopped_or_done(worker: Worker) -> bool:
    while not worker.answers.poll(0.01):
        if worker.is_stopped:
            return True
    assert answer(worker) is None
    return False


def check(bank: Bank, warehouse: Warehouse) -> None:
    """Nothing lost, nothing double: the tables as the source has them, and the ledger without a hole."""
    for table in ("account", "note"):
        assert stored(warehouse, table) == bank.source.rows(table)
    entries = warehouse.catalog.ledger()
    assert [entry.csn for entry in entries] == list(range(1, len(entries) + 1))
    assert len({entry.position for entry in entries}) == len(entries)


def check_every_csn(warehouse: Warehouse) -> None:
    """Notes only ever come, two of a kind in each transaction, and no transaction is there in part."""
    newest = warehouse.snapshot().moment.csn
    csns = range(1, newest + 1, 1 if newest < 300 else 17)
    totals = [rows.total() for rows in stored_at_each(warehouse, "note", csns)]
    assert totals == sorted(totals)
    assert {total % 2 for total in totals} == {totals[0] % 2}


def work(warehouse: Warehouse, ears: Connection) -> None:
    """Capture or maintain, as told, again until it succeeds; the first time it stops at a step."""
    planning.FEW, planning.LEAST_ROWS = 2, 1
    faults.die = crews.stop_when_idle(warehouse.catalog)
    while (order := ears.recv()) is not None:
        task, step = order
        if step:
            os.environ["ROLLVIEW_FAULT"] = step
        problem = attempt(warehouse, task)
        os.environ.pop("ROLLVIEW_FAULT", None)
        while not step and problem in RETRIED:
            problem = attempt(warehouse, task)
        ears.send(problem)


RETRIED = (errors.LostLease.code, errors.Busy.code, errors.Retryable.code)


def attempt(warehouse: Warehouse, task: str) -> str | None:
    """The code of what went wrong."""
    try:
        if task == "maintain":
            warehouse.maintain()
        else:
            tasks.capture(warehouse, "bank")
    except errors.RollviewError as error:
        return error.code if error.code in RETRIED else f"{error.code}: {error.message}"
    return None
