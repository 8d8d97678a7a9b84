"""Several processes on one warehouse, on both catalogs: nothing lost, nothing double; the slow one changes nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.faults import tasks
from tests.faults.crew import Crew, Place
from tests.faults.shop import (
    Shop,
    check_every_csn,
    check_ledger,
    check_stored,
    folders,
    pinned_folders,
)
from tests.servers.postgres import PostgresServer
from tests.sizes import FULL

from rollview import errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LEASE = 1.0
ROUNDS = {"sqlite": 50, "postgresql": 50} if FULL else {"sqlite": 5, "postgresql": 3}
REFRESHING = ("propagate.computed", "propagate.logged:2", "apply.computed", "publish.begun")
WRITING = ("commit.computed", "commit.logged")
CATALOGS = ("sqlite", pytest.param("postgresql", marks=pytest.mark.postgres))


def turns(steps: Sequence[str]) -> range:
    """Each step on both catalogs, or half of the steps on each."""
    return range(len(steps) if FULL else len(steps) // 2)


def stop_at(steps: Sequence[str], catalog: str, turn: int) -> str:
    return steps[turn] if FULL else steps[2 * turn + (catalog == "sqlite")]


@pytest.fixture(scope="module", params=CATALOGS)
def catalog(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def shop(
    catalog: str, request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Shop]:
    root: Path = tmp_path_factory.mktemp("processes") / "shop"
    if catalog == "sqlite":
        yield Shop.founded(Place(root, lease_seconds=LEASE), spark)
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    with server.new_schema() as url:
        yield Shop.founded(Place(root, url, lease_seconds=LEASE), spark)


def test_two_refreshers_and_a_writer(shop: Shop, crew: Crew, catalog: str) -> None:
    numbers = tuple(shop.next() for _ in range(ROUNDS[catalog]))
    refreshers = [crew.start(shop.place, tasks.refresh_until_told) for _ in range(2)]
    writer = crew.start(shop.place, tasks.commit_several, numbers)
    reader = crew.start(shop.place, tasks.watch)
    csns = writer.end().value
    assert csns == list(range(shop.csn + 1, shop.csn + 1 + len(numbers)))
    for n in numbers:
        shop.committed(n)
    for refresher in refreshers:
        refresher.tell("enough")
    ends = [refresher.end() for refresher in refreshers]
    assert all(end.error is None for end in ends), ends
    assert all(end.value[0] > 0 for end in ends), "both refreshed"
    reader.tell("enough")
    for sight in reader.end().value:
        assert len({csn for csn, _ in sight.values()}) == 1
        assert all(rows == shop.rows(name, csn) for name, (csn, rows) in sight.items())
    check_end(shop)


@pytest.mark.parametrize("turn", turns(REFRESHING))
def test_a_refresher_that_was_stopped_too_long(shop: Shop, crew: Crew, catalog: str, turn: int) -> None:
    with shop.opened() as warehouse:
        shop.commit(warehouse)
        slow = crew.start(shop.place, tasks.refresh, stop=stop_at(REFRESHING, catalog, turn))
        slow.wait_until_stopped()
        assert_busy(shop, f"pid {slow.pid}")
        warehouse.refresh()
        check_stored(shop, warehouse.snapshot())
        pins = {name: relation.pins for name, relation in warehouse.snapshot().relations.items()}
        slow.go_on()
        ended = slow.end()
        assert ended.error == errors.LostLease.code, ended
        assert {name: relation.pins for name, relation in warehouse.snapshot().relations.items()} == pins
    check_end(shop)


@pytest.mark.parametrize("turn", turns(WRITING))
def test_a_writer_that_was_stopped_too_long(shop: Shop, crew: Crew, catalog: str, turn: int) -> None:
    before = folders(shop.place.root)
    slow = crew.start(shop.place, tasks.commit, 10_000 + shop.count, stop=stop_at(WRITING, catalog, turn))
    slow.wait_until_stopped()
    with shop.opened() as warehouse:
        shop.commit(warehouse)
        slow.go_on()
        ended = slow.end()
        assert ended.error == errors.LostLease.code, ended
        check_stored(shop, warehouse.snapshot())
    check_end(shop)
    with shop.place.open(None) as warehouse:
        assert folders(shop.place.root) - before - pinned_folders(shop.place.root, warehouse.snapshot()) == set()


def test_at_the_end_every_csn_is_right(shop: Shop) -> None:
    with shop.opened() as warehouse:
        check_every_csn(shop, warehouse)


def assert_busy(shop: Shop, holder: str) -> None:
    """Until the lease runs out, who comes second is told who is at work, or waits."""
    with shop.place.open(None) as warehouse:
        with pytest.raises(errors.Busy, match=holder), warehouse.catalog.lease("relation:sales", wait=0):
            pass
        assert [holder in lease.owner for lease in warehouse.catalog.leases()] == [True] * 3
        time.sleep(LEASE)
        assert warehouse.catalog.leases() == ()


def check_end(shop: Shop) -> None:
    with shop.opened() as warehouse:
        warehouse.refresh()
        check_stored(shop, warehouse.snapshot())
        check_ledger(shop, warehouse)
        assert warehouse.catalog.steps(status="running") == ()
        assert warehouse.catalog.leases() == ()
