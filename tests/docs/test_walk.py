"""The walk of one captured commit and of one refresh, as the architecture page tells it, is the walk that they take."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rollview.warehouse import Warehouse
from tests.docs.pages import ROOT
from tests.docs.walk import STAGES, Walk, layers
from tests.servers.postgres import PostgresServer
from tests.sources.harness import Write
from tests.sources.postgres_harness import PostgresHarness

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = ROOT / "docs" / "internals" / "architecture.md"
VIEW = "CREATE MATERIALIZED VIEW walked AS SELECT owner, SUM(balance) AS walked FROM account GROUP BY owner"
LEFT_OUT = ("values.", "settings.", "meter.", "timed.", "process.", "failures.", "plans.", "is_", "writer.identity")
"""What only looks something up."""


@pytest.fixture(scope="module")
def walks(
    spark: SparkSession, postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Walk]]:
    root = tmp_path_factory.mktemp("walk") / "w"
    Warehouse.create(root).close()
    with closing(PostgresHarness(postgres_server)) as harness, Warehouse.open(root, spark=spark) as warehouse:
        warehouse.add_source("bank", harness.settings())
        warehouse.create_view(VIEW)
        harness.write(Write("account", None, (99, "Zoe", "5.00")))
        found = {"capture": Walk(), "refresh": Walk()}
        with found["capture"].seeing():
            warehouse.capture()
        with found["refresh"].seeing():
            warehouse.refresh()
        yield found


@pytest.mark.spark
@pytest.mark.postgres
@pytest.mark.parametrize("name", ["capture", "refresh"])
def test_the_page_tells_the_walk(walks: dict[str, Walk], name: str) -> None:
    steps = [step for step in walks[name].steps if not any(word in step for word in LEFT_OUT)]
    if os.environ.get("ROLLVIEW_DOCS") in ("write", "fresh"):
        _write(name, steps)
    told = _told(name)
    seen = iter(steps)
    assert all(step in seen for step in told), f"not in this order: {told}, but {steps}"
    assert not [step for step in steps if step.startswith(STAGES) and step not in told]


@pytest.mark.spark
@pytest.mark.postgres
@pytest.mark.parametrize("name", ["capture", "refresh"])
def test_no_room_is_called_back_from_a_room_below_it(walks: dict[str, Walk], name: str) -> None:
    assert walks[name].back == set()


def test_the_layers_drawn_are_the_layers_enforced() -> None:
    (drawn,) = re.findall(r"^```text\n( cli\n.*?)```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert [[room.strip() for room in line.split("|")] for line in drawn.splitlines()] == layers()


def test_every_room_is_described() -> None:
    described = set(re.findall(r"\[(\w+)\]\(\w+\.md\)", PAGE.read_text(encoding="utf-8")))
    rooms = {path.parent.name for path in (ROOT / "src" / "rollview").glob("*/__init__.py")}
    assert rooms <= described


def _block(name: str) -> re.Pattern[str]:
    return re.compile(rf"(<!-- walk: {name} -->\n```text\n)(.*?)(```)", re.DOTALL)


def _told(name: str) -> list[str]:
    found = _block(name).search(PAGE.read_text(encoding="utf-8"))
    assert found is not None
    return found[2].split()


def _write(name: str, steps: list[str]) -> None:
    page: Path = PAGE
    text = _block(name).sub(lambda m: m[1] + "".join(f"{step}\n" for step in steps) + m[3], page.read_text("utf-8"))
    page.write_text(text, encoding="utf-8")
