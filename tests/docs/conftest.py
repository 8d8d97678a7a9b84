"""A PostgreSQL server for the pages that need one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.servers.postgres import PostgresServer


@pytest.fixture
def own_schema() -> Iterator[Callable[[PostgresServer], str]]:
    """The URL of an empty catalog database of one page's own."""
    with ExitStack() as stack:
        yield lambda server: stack.enter_context(server.new_schema())
