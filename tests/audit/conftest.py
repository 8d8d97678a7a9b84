"""The servers and warehouses that the tests of this folder share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rollview.warehouse import Warehouse
from tests.servers.mariadb import mariadb_server
from tests.servers.postgres import postgres_server
from tests.sources.harness import new_warehouse

__all__ = ["mariadb_server", "postgres_server"]


@pytest.fixture
def empty_warehouse(tmp_path: Path) -> Iterator[Warehouse]:
    with new_warehouse(tmp_path / "warehouse") as warehouse:
        yield warehouse
