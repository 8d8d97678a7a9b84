"""The same tests on every kind of source."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rollview.warehouse import Warehouse
from tests.sources.debezium_harness import DebeziumHarness
from tests.sources.delta_harness import DeltaHarness
from tests.sources.files_harness import FilesHarness
from tests.sources.harness import Harness, new_warehouse
from tests.sources.mariadb_harness import MariadbHarness
from tests.sources.mysql_harness import MysqlHarness
from tests.sources.postgres_harness import PostgresHarness
from tests.sources.sqlite_harness import SqliteHarness

KINDS = [
    "sqlite",
    "files",
    "delta",
    "debezium",
    pytest.param("postgres", marks=pytest.mark.postgres),
    pytest.param("mariadb", marks=pytest.mark.mariadb),
    pytest.param("mysql", marks=pytest.mark.mysql),
]


@pytest.fixture(params=KINDS)
def harness(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Harness]:
    made = _make(request.param, request, tmp_path)
    yield made
    made.close()


def _make(kind: str, request: pytest.FixtureRequest, folder: Path) -> Harness:
    if kind == "postgres":
        return PostgresHarness(request.getfixturevalue("postgres_server"))
    if kind == "delta":
        return DeltaHarness(folder)
    if kind == "debezium":
        return DebeziumHarness(folder)
    if kind == "mariadb":
        return MariadbHarness(request.getfixturevalue("mariadb_server"))
    if kind == "mysql":
        return MysqlHarness(request.getfixturevalue("mysql_server"))
    return FilesHarness(folder) if kind == "files" else SqliteHarness(folder)


@pytest.fixture
def empty_warehouse(tmp_path: Path) -> Iterator[Warehouse]:
    with new_warehouse(tmp_path / "warehouse") as warehouse:
        yield warehouse


@pytest.fixture
def warehouse(empty_warehouse: Warehouse, harness: Harness) -> Warehouse:
    """A warehouse that captures the harness's source."""
    empty_warehouse.add_source("bank", harness.settings())
    return empty_warehouse


@pytest.fixture(params=[KINDS[0], *KINDS[-3:]])
def bank(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """A database of each kind that is captured from its own log."""
    made = _make(request.param, request, tmp_path)
    yield made
    made.close()
