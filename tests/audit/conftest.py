"""The warehouse that the tests of this folder share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rollview.warehouse import Warehouse
from tests.sources.harness import new_warehouse


@pytest.fixture
def empty_warehouse(tmp_path: Path) -> Iterator[Warehouse]:
    with new_warehouse(tmp_path / "warehouse") as warehouse:
        yield warehouse
