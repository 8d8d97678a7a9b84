"""Nobody waits for ever: a server that is there and gives nothing is down, and tried again later."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from rollview.catalog import Catalog, database
from rollview.core.patience import PARAMETERS
from rollview.errors import RollviewError, SourceDown, UsageError
from rollview.sources import SourceSettings, TableSettings
from rollview.sources.debezium import kafka
from rollview.warehouse import Warehouse
from tests.servers.mariadb import MariadbServer
from tests.servers.postgres import PostgresServer
from tests.servers.silent import between
from tests.sources.harness import Write, account, capture, stored
from tests.sources.mariadb_harness import MariadbHarness
from tests.sources.postgres_harness import PostgresHarness

NEW = Write("account", None, account(7, "new", "7.00"))
NEWER = Write("account", None, account(8, "newer", "8.00"))
SOON = {"timeout": "1 second"}
ACCOUNT = (TableSettings("account", "account"),)


def down(warehouse: Warehouse) -> str:
    (done,) = warehouse.capture().sources
    assert done.problem is not None
    assert done.retryable
    assert warehouse.sources()[0].state == "retrying"
    return done.problem


@pytest.mark.postgres
def test_a_postgres_source_that_falls_silent_is_down(
    empty_warehouse: Warehouse, postgres_server: PostgresServer
) -> None:
    with closing(PostgresHarness(postgres_server)) as bank, between(postgres_server.port) as way:
        url = bank.url.replace(str(postgres_server.port), str(way.port)) + "?connect_timeout=2"
        empty_warehouse.add_source("bank", SourceSettings("postgres", url, ACCOUNT, SOON))
        bank.write(NEW)
        way.silent = True
        assert "timeout" in down(empty_warehouse)
        way.silent = False
        assert capture(empty_warehouse).units == 1
        assert stored(empty_warehouse, "account") == bank.rows("account")


@pytest.mark.postgres
def test_a_postgres_source_that_falls_silent_in_the_middle_is_down(
    empty_warehouse: Warehouse, postgres_server: PostgresServer
) -> None:
    with closing(PostgresHarness(postgres_server)) as bank:
        asked: list[bytes] = []

        def asks(data: bytes) -> bool:
            asked.append(data)
            return b"peek_binary_changes" in data and not quiet[0]

        quiet = [True]
        with between(postgres_server.port, asks) as way:
            url = bank.url.replace(str(postgres_server.port), str(way.port))
            empty_warehouse.add_source("bank", SourceSettings("postgres", url, ACCOUNT, SOON))
            bank.write(NEW)
            quiet[0] = False
            assert "no answer for 1 seconds" in down(empty_warehouse)
            quiet[0] = True
            assert capture(empty_warehouse).units == 1
        assert stored(empty_warehouse, "account") == bank.rows("account")


@pytest.mark.mariadb
def test_a_mariadb_source_that_falls_silent_is_down(empty_warehouse: Warehouse, mariadb_server: MariadbServer) -> None:
    with closing(MariadbHarness(mariadb_server)) as bank, between(mariadb_server.port) as way:
        url = bank.url.replace(str(mariadb_server.port), str(way.port))
        empty_warehouse.add_source("bank", SourceSettings("mariadb", url, ACCOUNT, SOON))
        bank.write(NEW)
        way.silent = True
        assert "timed out" in down(empty_warehouse)
        way.silent = False
        assert capture(empty_warehouse).units == 1
        assert stored(empty_warehouse, "account") == bank.rows("account")


@pytest.mark.mariadb
def test_a_log_of_mariadb_that_falls_silent_is_down(empty_warehouse: Warehouse, mariadb_server: MariadbServer) -> None:
    """The driver's own reader would connect again for ever."""
    with closing(MariadbHarness(mariadb_server)) as bank:
        dumps = [False]

        def asks(data: bytes) -> bool:
            return dumps[0] and len(data) > 4 and data[4] == 0x12

        with between(mariadb_server.port, asks) as way:
            url = bank.url.replace(str(mariadb_server.port), str(way.port))
            empty_warehouse.add_source("bank", SourceSettings("mariadb", url, ACCOUNT, SOON))
            bank.write(NEW)
            dumps[0] = True
            assert "no answer in time" in down(empty_warehouse)
            dumps[0] = False
            assert capture(empty_warehouse).units == 1
        assert stored(empty_warehouse, "account") == bank.rows("account")


@pytest.mark.postgres
def test_a_catalog_that_falls_silent_is_told(postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_ANSWER_SECONDS", 1.0)
    with postgres_server.new_schema() as url, between(postgres_server.port) as way:
        behind = url.replace(f":{postgres_server.port}/", f":{way.port}/") + "&connect_timeout=2"
        with Catalog.create(behind) as catalog:
            assert catalog.sources() == ()
            way.silent = True
            with pytest.raises(RollviewError):
                catalog.sources()
            way.silent = False
            assert catalog.sources() == ()


@pytest.mark.postgres
def test_every_connection_to_postgresql_asks_whether_the_server_is_there(
    empty_warehouse: Warehouse, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[dict[str, str]] = []
    connect = psycopg.Connection.connect.__func__  # type: ignore[attr-defined]

    def noted(cls: type, *arguments: object, **parameters: object) -> object:
        connection = connect(cls, *arguments, **parameters)
        made.append(connection.info.get_parameters())
        return connection

    with closing(PostgresHarness(postgres_server)) as bank, postgres_server.new_schema() as url:
        monkeypatch.setattr(psycopg.Connection, "connect", classmethod(noted))
        empty_warehouse.add_source("bank", bank.settings())
        Catalog.create(url).close()
    assert len(made) > 2
    for parameters in made:
        assert {name: parameters.get(name) for name in PARAMETERS} == {n: str(v) for n, v in PARAMETERS.items()}


def test_a_broker_that_never_answers_is_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka, "_SECONDS", 0.5)
    with between(None) as way:
        topics = kafka.KafkaStreams("s", f"kafka://127.0.0.1:{way.port}/p", ["t"], {})
        with closing(topics), pytest.raises(SourceDown):
            topics.start()


def test_a_server_that_accepts_and_says_nothing_is_down(tmp_path: Path) -> None:
    with between(None) as way, Warehouse.create(tmp_path / "w") as warehouse:
        for kind in ("mariadb", "mysql", "postgres"):
            scheme = "postgresql" if kind == "postgres" else kind
            url = f"{scheme}://u@127.0.0.1:{way.port}/d" + ("?connect_timeout=2" if kind == "postgres" else "")
            with pytest.raises(SourceDown):
                warehouse.add_source(kind, SourceSettings(kind, url, ACCOUNT, SOON))


@pytest.mark.parametrize("words", ["soon", "0 seconds"])
def test_a_timeout_is_a_time(words: str) -> None:
    with pytest.raises(UsageError):
        SourceSettings("postgres", "x", ACCOUNT, {"timeout": words})
