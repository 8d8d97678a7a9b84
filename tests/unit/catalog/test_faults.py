"""A database that is not as needed, told in our words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.servers.postgres import PostgresServer
from tests.unit.catalog.samples import commit

from rollview import errors
from rollview.catalog import Catalog
from rollview.catalog import tables as t


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "catalog.db"
    path.write_bytes(b"something else altogether" * 100)
    with pytest.raises(errors.Corrupt, match="not a database"):
        Catalog.open(path)


def test_a_folder_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(errors.NotFound, match="no folder"):
        Catalog.create(tmp_path / "missing" / "catalog.db")
    with pytest.raises(errors.NotFound, match="no catalog"):
        Catalog.open(tmp_path / "missing" / "catalog.db")
    assert list(tmp_path.iterdir()) == []


def test_opening_makes_no_file(tmp_path: Path) -> None:
    with pytest.raises(errors.NotFound):
        Catalog.open(tmp_path / "catalog.db")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_a_folder(tmp_path: Path) -> None:
    with pytest.raises(errors.EnvironmentFault, match="unable to open"):
        Catalog.open(tmp_path)


def test_a_server_that_does_not_answer() -> None:
    with pytest.raises(errors.EnvironmentFault, match="cannot be used") as caught:
        Catalog.open("postgresql://me@127.0.0.1:1/shop")
    assert isinstance(caught.value.__cause__, sa.exc.SQLAlchemyError)
    assert caught.value.hint is not None


def test_a_database_that_is_missing(postgres_server: PostgresServer) -> None:
    with pytest.raises(errors.EnvironmentFault, match="does not exist"):
        Catalog.open(postgres_server.url("nowhere"))


def test_a_server_that_ended_the_connection_is_asked_again(postgres_server: PostgresServer) -> None:
    with postgres_server.new_schema() as url, Catalog.create(url) as catalog:
        catalog.snapshot()
        postgres_server.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = "
            "'client backend'"
        )
        assert commit(catalog).csn == 1


def test_rows_that_contradict_each_other(catalog: Catalog) -> None:
    second_clock = t.clock.insert().values(id=1, csn=0, time=catalog.snapshot().moment.time)
    with pytest.raises(errors.Corrupt, match="contradicts itself"), catalog._database.write() as connection:
        connection.execute(second_clock)


def test_a_writer_that_cannot_get_in_may_try_again(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rollview.catalog.database._BUSY_MILLISECONDS", 300)
    with Catalog.create(url) as one, Catalog.open(url) as two, one.write():
        assert two.snapshot().moment.csn == 0
        with pytest.raises(errors.Retryable, match="is busy"):
            commit(two)


def test_readers_are_not_blocked_by_a_writer(catalog: Catalog, reopened: Callable[..., Catalog]) -> None:
    other = reopened()
    with catalog.write():
        assert other.snapshot().moment.csn == 0
