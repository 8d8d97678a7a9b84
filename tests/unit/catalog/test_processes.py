"""Several processes on one catalog."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from tests.unit.catalog.samples import commit

from rollview import errors
from rollview.catalog import Catalog

pytestmark = pytest.mark.slow

Worker = subprocess.Popen[str]
Start = Callable[..., Worker]


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[Worker] = []
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    def start_one(*arguments: object) -> Worker:
        command = [sys.executable, Path(__file__).with_name("worker.py"), *map(str, arguments)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        started.append(subprocess.Popen(command, env=environment, text=True, **pipes))  # type: ignore[call-overload]
        return started[-1]

    yield start_one
    for worker in started:
        worker.kill()
        worker.communicate()


def heard(worker: Worker) -> str:
    assert worker.stdout is not None
    return worker.stdout.readline().strip()


def tell(worker: Worker) -> None:
    assert worker.stdin is not None
    worker.stdin.write("go\n")
    worker.stdin.flush()


def run_together(workers: list[Worker]) -> list[list[str]]:
    for worker in workers:
        assert heard(worker) == "ready"
    for worker in workers:
        tell(worker)
    answers = [worker.communicate(timeout=120)[0].split() for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * len(workers)
    return answers


def test_four_processes_commit_without_losing_or_doubling_a_csn(catalog: Catalog, url: str, start: Start) -> None:
    answers = run_together([start("commit", url, 50) for _ in range(4)])
    given = [int(csn) for answer in answers for csn in answer]
    assert sorted(given) == list(range(1, 201))
    assert all(answer == sorted(answer, key=int) for answer in answers)
    times = [entry.ledger_time for entry in catalog.ledger()]
    assert len(times) == 200
    assert all(earlier < later for earlier, later in pairwise(times))


def test_a_lease_lets_one_process_work_at_a_time(catalog: Catalog, url: str, start: Start, tmp_path: Path) -> None:
    shared = tmp_path / "number"
    shared.write_text("0")
    run_together([start("count", url, shared, 10) for _ in range(3)])
    assert shared.read_text() == "30"


def test_a_second_process_is_told_who_holds_the_lease(catalog: Catalog, url: str, start: Start) -> None:
    holder = start("hold", url, 30, "relation:sales")
    assert heard(holder) == "held"
    with pytest.raises(errors.Busy, match=rf"relation 'sales' .* pid {holder.pid} since 20") as caught:
        catalog.lease("relation:Sales", wait=0.2).__enter__()
    assert caught.value.retryable
    (info,) = catalog.leases()
    assert info.owner.endswith(f"pid {holder.pid}")
    tell(holder)
    with catalog.lease("relation:sales", wait=60):
        assert heard(holder) == "ready"
        assert heard(holder) == "wrote"


@pytest.mark.parametrize("reaped", [True, False])
def test_the_lease_of_a_killed_process_is_free_at_once(catalog: Catalog, url: str, start: Start, reaped: bool) -> None:
    holder = start("hold", url, 600, "commit", "definitions")
    assert heard(holder) == "held"
    holder.kill()
    os.waitid(os.P_PID, holder.pid, os.WEXITED | os.WNOWAIT)
    if reaped:
        holder.wait()
    assert catalog.leases() == ()
    with catalog.lease("commit", wait=0) as lease:
        assert lease.tokens["commit"] == 2


def test_a_process_stopped_past_its_lease_loses_it(catalog: Catalog, url: str, start: Start) -> None:
    holder = start("hold", url, 1, "commit")
    assert heard(holder) == "held"
    os.kill(holder.pid, signal.SIGSTOP)
    with catalog.lease("commit", wait=60) as lease, catalog.write(lease):
        pass
    commit(catalog)
    os.kill(holder.pid, signal.SIGCONT)
    tell(holder)
    assert [heard(holder), heard(holder)] == ["ready", "lost_lease"]
    assert [entry.source for entry in catalog.ledger()] == ["local"]


def test_a_lease_is_renewed_while_its_holder_lives(catalog: Catalog, url: str, start: Start) -> None:
    holder = start("hold", url, 4, "commit")
    assert heard(holder) == "held"
    (first,) = catalog.leases()
    until = time.monotonic() + 60
    while [lease.expires for lease in catalog.leases()] == [first.expires] and time.monotonic() < until:
        time.sleep(0.05)
    (renewed,) = catalog.leases()
    assert (renewed.token, renewed.acquired) == (first.token, first.acquired)
    assert renewed.expires > first.expires
    with pytest.raises(errors.Busy):
        catalog.lease("commit", wait=0).__enter__()
    tell(holder)
    assert [heard(holder), heard(holder)] == ["ready", "wrote"]


def test_a_process_stopped_past_its_lease_keeps_it_when_nobody_wanted_it(
    catalog: Catalog, url: str, start: Start
) -> None:
    holder = start("hold", url, 0.5, "commit")
    assert heard(holder) == "held"
    os.kill(holder.pid, signal.SIGSTOP)
    time.sleep(1)
    os.kill(holder.pid, signal.SIGCONT)
    tell(holder)
    assert [heard(holder), heard(holder)] == ["ready", "wrote"]


def test_of_several_processes_that_create_a_catalog_one_does(url: str, start: Start) -> None:
    workers = [start("create", url) for _ in range(3)]
    answers = sorted(heard(worker) for worker in workers)
    assert answers == ["created", "exists", "exists"]


def test_a_forked_child_does_not_use_its_parents_connection(catalog: Catalog, url: str, start: Start) -> None:
    parent = start("fork", url)
    assert [heard(parent), heard(parent), heard(parent)] == ["1", "2", "3"]
    assert catalog.snapshot().moment.csn == 3
