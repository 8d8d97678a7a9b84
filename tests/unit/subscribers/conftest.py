"""Twelve commits, each followed by a refresh: made once, copied for each test."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.maintain.small import Small
from tests.unit.maintain.test_maintain import grow


@pytest.fixture(scope="session")
def pattern(tmp_path_factory: pytest.TempPathFactory) -> Small:
    made = Small.founded(tmp_path_factory.mktemp("pattern") / "w")
    grow(made, 12)
    return made


@pytest.fixture
def grown(pattern: Small, tmp_path: Path) -> Small:
    return pattern.copied(tmp_path / "w")
