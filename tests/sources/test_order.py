"""Times and order across sources."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rollview.core.order import Order
from rollview.errors import NotPassed
from rollview.sources import SourceSettings, TableSettings
from rollview.warehouse import Warehouse
from tests.servers.mariadb import MariadbServer
from tests.servers.postgres import PostgresServer
from tests.sources.harness import Harness, Write, account, capture, stored
from tests.sources.mariadb_harness import MariadbHarness
from tests.sources.postgres_harness import PostgresHarness


def test_a_moment_is_refused_until_the_source_has_passed_it(warehouse: Warehouse, harness: Harness) -> None:
    """Its known time moves on though nothing is written."""
    harness.write(Write("account", None, account(10, "new", "1.00")))
    capture(warehouse)
    first = warehouse.sources()[0].known
    assert first is not None
    later = first + timedelta(milliseconds=600)
    with pytest.raises(NotPassed, match="'bank'"):
        warehouse.resolve(later, "account")
    if harness.kind == "debezium":
        pytest.skip("what the source does while it is idle is not told")
    known, until = first, time.monotonic() + 30
    while known < later and time.monotonic() < until:
        time.sleep(0.2)
        assert capture(warehouse).units == 0
        known = warehouse.sources()[0].known or first
    assert warehouse.resolve(later, "account") == 2
    assert warehouse.resolve(datetime(2001, 1, 1, tzinfo=UTC), "account") == 0


def test_the_positions_of_a_csn(warehouse: Warehouse, harness: Harness) -> None:
    for number in range(10, 13):
        harness.write(Write("account", None, account(number, "n", "1.00")))
        capture(warehouse)
    entries = warehouse.catalog.ledger()
    for entry in entries:
        (position,) = warehouse.positions(entry.csn)
        assert (position.source, position.csn, position.position) == ("bank", entry.csn, entry.position)
    effective = [entry.effective for entry in entries]
    assert effective == sorted(effective, key=lambda one: one or datetime.min)


@pytest.fixture
def postgres(postgres_server: PostgresServer) -> Iterator[PostgresHarness]:
    with closing(PostgresHarness(postgres_server)) as harness:
        yield harness


@pytest.fixture
def mariadb(mariadb_server: MariadbServer) -> Iterator[MariadbHarness]:
    with closing(MariadbHarness(mariadb_server)) as harness:
        yield harness


def renamed(harness: PostgresHarness | MariadbHarness, name: str) -> SourceSettings:
    return SourceSettings(harness.kind, harness.url, (TableSettings(name, "account"),))


@pytest.mark.postgres
@pytest.mark.mariadb
def test_by_commit_time_sources_take_turns(
    empty_warehouse: Warehouse, postgres: PostgresHarness, mariadb: MariadbHarness
) -> None:
    """MariaDB tells whole seconds, so the writes are that far apart."""
    for name, harness in (("pg", postgres), ("my", mariadb)):
        empty_warehouse.add_source(name, renamed(harness, name))
    with Warehouse.open(empty_warehouse.root, order=Order(by_time=True)) as warehouse:
        warehouse.capture()
        for number in range(10, 14):
            time.sleep(1.1 - time.time() % 1.0)
            mariadb.write(Write("account", None, account(number, "n", "1.00")))
            time.sleep(0.1)
            postgres.write(Write("account", None, account(number, "n", "1.00")))
        assert [done.units for done in warehouse.capture().sources] == [4, 4]
        entries = warehouse.catalog.ledger()[2:]
        assert [entry.source for entry in entries] == ["my", "pg"] * 4
        for entry in entries:
            assert entry.effective is not None
            assert warehouse.resolve(entry.effective, "pg", "my") == entry.csn
        assert len(stored(warehouse, "pg", entries[3].csn)) == len(stored(warehouse, "my", entries[3].csn)) == 5


@pytest.mark.postgres
def test_by_commit_time_nobody_waits_for_ever(
    empty_warehouse: Warehouse, postgres: PostgresHarness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A source that does not answer keeps the others waiting as long as it may, and no longer."""
    monkeypatch.setenv("OTHER", postgres.url)
    empty_warehouse.add_source("pg", renamed(postgres, "pg"))
    empty_warehouse.add_source(
        "down", SourceSettings("postgres", "env:OTHER", (TableSettings("down", "public.account"),))
    )
    monkeypatch.setenv("OTHER", "postgresql://nobody@127.0.0.1:1/none")
    postgres.write(Write("account", None, account(10, "n", "1.00")))
    with Warehouse.open(empty_warehouse.root, order=Order(by_time=True)) as warehouse:
        pg, down = warehouse.capture().sources
        assert (pg.units, pg.problem, down.retryable) == (0, None, True)
    with Warehouse.open(empty_warehouse.root, order=Order(True, timedelta(0))) as warehouse:
        assert warehouse.capture().sources[0].units == 1
    monkeypatch.setenv("OTHER", postgres.url)
    with Warehouse.open(empty_warehouse.root, order=Order(by_time=True)) as warehouse:
        assert [done.units for done in warehouse.capture().sources] == [0, 1]
        effective = [entry.effective for entry in warehouse.catalog.ledger()]
        assert effective == sorted(effective, key=lambda one: one or datetime.min)
