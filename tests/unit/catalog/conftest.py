"""The same catalog tests on both databases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.servers.postgres import PostgresServer

from rollview.catalog import Catalog


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty place for a catalog."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'catalog.db'}"
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    with server.new_schema() as place:
        yield place


@pytest.fixture
def catalog(url: str) -> Iterator[Catalog]:
    with Catalog.create(url) as catalog:
        yield catalog


@pytest.fixture
def reopened(url: str, catalog: Catalog) -> Iterator[Callable[..., Catalog]]:
    """Opens the same catalog once more, as another process would."""
    opened: list[Catalog] = []

    def open_again(**options: object) -> Catalog:
        opened.append(Catalog.open(url, **options))  # type: ignore[arg-type]
        return opened[-1]

    yield open_again
    for each in opened:
        each.close()
