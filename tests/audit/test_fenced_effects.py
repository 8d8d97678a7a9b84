"""Whoever was paused past its lease takes nothing away that belongs to the present holder, and publishes nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rollview.capture import copies, first_copy, requests, run, sequencer
from rollview.capture.recorded_source import open_recorded
from rollview.catalog import Catalog
from rollview.catalog import catalog as catalog_module
from rollview.core.order import Order
from rollview.errors import LostLease, RollviewError, SourceDown
from rollview.publish import step
from rollview.sources.protocol import ATTEMPT
from rollview.warehouse import Warehouse
from tests.sources.harness import Write, account, capture, stored
from tests.sources.postgres_harness import PostgresHarness
from tests.sources.sqlite_harness import SqliteHarness
from tests.sources.test_kills import killed

NEW = Write("account", None, account(7, "new", "7.00"))
NEWER = Write("account", None, account(8, "newer", "8.00"))


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def bank(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    made = SqliteHarness(tmp_path) if request.param == "sqlite" else None
    with closing(made or PostgresHarness(request.getfixturevalue("postgres_server"))) as harness:
        yield harness


class Pauses:
    """Stops whoever reaches a step, in the order in which they come, until they are let go."""

    def __init__(self, step: str) -> None:
        self._step = step
        self._lock = threading.Lock()
        self._count = 0
        self.reached = [threading.Event(), threading.Event()]
        self.go = [threading.Event(), threading.Event()]
        self.errors: list[RollviewError | None] = [None, None]

    def reach(self, step: str) -> None:
        if step != self._step:
            return
        with self._lock:
            number, self._count = self._count, self._count + 1
        if number >= len(self.go):
            return
        self.reached[number].set()
        assert self.go[number].wait(120)
        error = self.errors[number]
        if error is not None:
            raise error


@pytest.fixture
def paused(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Pauses]:
    """No lease is renewed by itself: who is paused is paused with all its threads."""
    monkeypatch.setattr(catalog_module, "HEARTBEATS_PER_LEASE", 0.0001)

    def at(name: str) -> Pauses:
        made = Pauses(name)
        for module in (copies, first_copy, sequencer, step):
            monkeypatch.setattr(module, "reach", made.reach)
        return made

    return at


@pytest.fixture
def slow(empty_warehouse: Warehouse) -> Iterator[Catalog]:
    """The catalog as the first holder has it, with a lease that ends soon."""
    with Catalog.open(empty_warehouse.root / "catalog.db", lease_seconds=0.3) as catalog:
        yield catalog


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


def names(bank: Any) -> set[str]:
    """The attempts that have left something at the source."""
    if isinstance(bank, PostgresHarness):
        return {name.split("_")[2] for name in bank.leftovers()}
    return {name.split("_")[3] for name in bank.leftovers()}


def begun(pauses: Pauses, number: int, work: Future[Any]) -> None:
    while not pauses.reached[number].wait(0.05):
        assert not work.done(), work.result()


@pytest.mark.parametrize("fails", [True, False], ids=["fails", "goes on"])
@pytest.mark.parametrize("during", [True, False], ids=["during the other's copy", "after the other's copy"])
def test_a_resnapshot_that_was_paused_past_its_lease_leaves_the_new_holders_copy_alone(
    empty_warehouse: Warehouse,
    bank: Any,
    paused: Callable[[str], Pauses],
    slow: Catalog,
    pool: ThreadPoolExecutor,
    fails: bool,
    during: bool,
) -> None:
    empty_warehouse.add_source("bank", bank.settings())
    root, pauses = empty_warehouse.root / "data", paused("widen.opened")
    pauses.errors[0] = SourceDown("bank", "it went away") if fails else None
    bank.write(NEW)
    first = pool.submit(requests.resnapshot, slow, root, "bank")
    begun(pauses, 0, first)
    second = pool.submit(requests.resnapshot, empty_warehouse.catalog, root, "bank")
    begun(pauses, 1, second)
    if during:
        pauses.go[0].set()
        assert isinstance(first.exception(), SourceDown if fails else LostLease)
        assert empty_warehouse.sources()[0].problem is None
    pauses.go[1].set()
    assert second.result().units == 1
    if not during:
        pauses.go[0].set()
        assert isinstance(first.exception(), SourceDown if fails else LostLease)
    bank.write(NEWER)
    assert capture(empty_warehouse).units == 1
    assert stored(empty_warehouse, "account") == bank.rows("account")
    assert empty_warehouse.sources()[0].state == "active"
    assert names(bank) == {empty_warehouse.catalog.source("bank").memory[ATTEMPT]}


def test_a_first_copy_that_was_paused_past_its_lease_leaves_the_new_holders_copy_alone(
    empty_warehouse: Warehouse, bank: Any, paused: Callable[[str], Pauses], slow: Catalog, pool: ThreadPoolExecutor
) -> None:
    root, pauses = empty_warehouse.root / "data", paused("copy.computed")
    first = pool.submit(requests.add, slow, root, "bank", bank.settings())
    begun(pauses, 0, first)
    second = pool.submit(requests.finish_copy, empty_warehouse.catalog, root, "bank")
    begun(pauses, 1, second)
    pauses.go[0].set()
    assert isinstance(first.exception(), RollviewError)
    pauses.go[1].set()
    second.result()
    bank.write(NEW)
    assert capture(empty_warehouse).units == 1
    assert stored(empty_warehouse, "account") == bank.rows("account")
    assert names(bank) == {empty_warehouse.catalog.source("bank").memory[ATTEMPT]}


def test_a_capture_that_was_paused_past_its_lease_publishes_nothing(
    empty_warehouse: Warehouse, bank: Any, paused: Callable[[str], Pauses], slow: Catalog, pool: ThreadPoolExecutor
) -> None:
    empty_warehouse.add_source("bank", bank.settings())
    root, pauses = empty_warehouse.root / "data", paused("capture.read")
    pauses.go[1].set()
    bank.write(NEW)
    first = pool.submit(run.capture, slow, root, ["bank"], Order())
    begun(pauses, 0, first)
    requests.resnapshot(empty_warehouse.catalog, root, "bank")
    before = empty_warehouse.snapshot().moment.csn
    pauses.go[0].set()
    assert isinstance(first.result()["bank"], LostLease)
    assert empty_warehouse.snapshot().moment.csn == before
    assert empty_warehouse.sources()[0].problem is None
    bank.write(NEWER)
    assert capture(empty_warehouse).units == 1
    assert stored(empty_warehouse, "account") == bank.rows("account")


def test_a_source_that_is_removed_while_another_is_paused_is_gone(
    empty_warehouse: Warehouse, bank: Any, paused: Callable[[str], Pauses], slow: Catalog, pool: ThreadPoolExecutor
) -> None:
    empty_warehouse.add_source("bank", bank.settings())
    root, pauses = empty_warehouse.root / "data", paused("widen.opened")
    first = pool.submit(requests.resnapshot, slow, root, "bank")
    begun(pauses, 0, first)
    requests.remove(empty_warehouse.catalog, "bank")
    pauses.go[0].set()
    assert isinstance(first.exception(), RollviewError)
    assert bank.leftovers() == []


def test_what_a_killed_attempt_left_is_taken_away_by_whoever_captures_next(
    empty_warehouse: Warehouse, bank: Any
) -> None:
    empty_warehouse.add_source("bank", bank.settings())
    catalog = empty_warehouse.catalog
    record = catalog.source("bank")
    with catalog.lease(run.lease_name("bank")) as lease, closing(open_recorded(catalog, record, lease)) as source:
        source.first_copy().__enter__()
    assert len(names(bank)) == 2
    with closing(open_recorded(catalog, record)) as source, pytest.raises(LostLease):
        source.tidy(record.memory)
    assert len(names(bank)) == 2
    bank.write(NEW)
    assert capture(empty_warehouse).units == 1
    assert names(bank) == {record.memory[ATTEMPT]}


def test_a_copy_that_fails_keeps_the_position_that_was_there(
    empty_warehouse: Warehouse, bank: Any, paused: Callable[[str], Pauses], pool: ThreadPoolExecutor
) -> None:
    empty_warehouse.add_source("bank", bank.settings())
    root, pauses = empty_warehouse.root / "data", paused("widen.opened")
    pauses.errors[0] = SourceDown("bank", "it went away")
    pauses.go[0].set()
    bank.write(NEW)
    with pytest.raises(SourceDown):
        requests.resnapshot(empty_warehouse.catalog, root, "bank")
    assert capture(empty_warehouse).units == 1
    assert stored(empty_warehouse, "account") == bank.rows("account")


def test_a_resnapshot_that_was_killed_changes_nothing_and_leaves_nothing_for_long(
    empty_warehouse: Warehouse, bank: Any
) -> None:
    empty_warehouse.add_source("bank", bank.settings())
    killed("resnapshot", empty_warehouse.root, bank.settings(), "widen.opened")
    assert len(names(bank)) == 2
    bank.write(NEW)
    assert capture(empty_warehouse).units == 1
    assert stored(empty_warehouse, "account") == bank.rows("account")
    assert names(bank) == {empty_warehouse.catalog.source("bank").memory[ATTEMPT]}
