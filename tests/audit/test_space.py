"""Rows that do not fit into memory are on disk below the warehouse, within a limit, and are gone after a kill."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rollview.errors import AlreadyExists, SpoolFull
from rollview.sources import SourceSettings, TableSettings
from rollview.warehouse import Warehouse
from tests.sources.harness import Write, account, capture, stored
from tests.sources.sqlite_harness import SqliteHarness
from tests.sources.test_shared import random_writes

SMALL, LARGE, MORE = 8, 48, 160
"""Megabytes of rows, and what memory may grow by: held in memory, the larger table takes twice that and more."""

PROGRAM = """
import re, sys
from pathlib import Path
from rollview.sources import spool
from rollview.warehouse import Warehouse
request, root, in_memory = sys.argv[1:]
spool.IN_MEMORY = int(in_memory)
with Warehouse.open(root) as warehouse:
    if request == "resnapshot":
        warehouse.resnapshot("bank")
    else:
        (done,) = warehouse.capture().sources
        assert done.problem is None, done.problem
print(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
"""


def run(request: str, root: Path, in_memory: int, fault: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": ":".join(sys.path), **({"ROLLVIEW_FAULT": fault} if fault else {})}
    program = [sys.executable, "-c", PROGRAM, request, str(root), str(in_memory)]
    return subprocess.run(program, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[SqliteHarness]:
    with closing(SqliteHarness(tmp_path)) as made:
        yield made


@pytest.fixture
def everything_on_disk(bank: SqliteHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    """Below the warehouse: from here on nothing can be put into the temporary folder."""
    assert bank.path.exists()
    monkeypatch.setattr("rollview.sources.spool.IN_MEMORY", -1)
    monkeypatch.setattr(tempfile, "tempdir", "/dev/null")


def folders(warehouse: Warehouse) -> set[str]:
    return {path.name for path in (warehouse.root / "data").iterdir() if path.is_dir()}


def kept(warehouse: Warehouse) -> set[str]:
    return {relation.folder for relation in warehouse.snapshot().relations.values()}


def test_resnapshot_holds_no_table_in_memory(empty_warehouse: Warehouse, bank: SqliteHarness) -> None:
    filled = "WITH RECURSIVE s(g) AS (SELECT {0} UNION ALL SELECT g + 1 FROM s WHERE g < {1}) "
    filled += "INSERT INTO big SELECT g, hex(zeroblob(1000)) || g FROM s"
    bank.connection.execute("CREATE TABLE big (id INTEGER PRIMARY KEY, v VARCHAR(4000))")
    empty_warehouse.add_source("bank", SourceSettings("sqlite", str(bank.path), (TableSettings("big", "big"),)))
    peaks, last = [], 0
    for megabytes in (SMALL, LARGE):
        bank.connection.execute(filled.format(last + 1, last + megabytes * 500))
        done = run("resnapshot", empty_warehouse.root, 4 << 20)
        assert done.returncode == 0, done.stderr
        peaks.append(int(done.stdout))
        last += megabytes * 500
    assert sum(stored(empty_warehouse, "big").values()) == last
    assert (peaks[1] - peaks[0]) >> 10 < MORE, f"{[peak >> 10 for peak in peaks]} MB"


@pytest.mark.usefixtures("everything_on_disk")
def test_what_is_copied_again_on_disk_is_the_same(empty_warehouse: Warehouse, bank: SqliteHarness) -> None:
    empty_warehouse.add_source("bank", bank.settings())
    chance = random.Random(11)
    for _ in range(6):
        bank.write(*random_writes(chance, bank.rows("account")), Write("note", None, (str(chance.random()),)))
        if chance.random() < 0.5:
            capture(empty_warehouse)
        bank.write(
            *random_writes(chance, bank.rows("account")), Write("note", ("same",)), Write("note", None, ("same",))
        )
        done = empty_warehouse.resnapshot("bank")
        assert done.problem is None
        for table in ("account", "note"):
            assert stored(empty_warehouse, table) == bank.rows(table)
    assert empty_warehouse.resnapshot("bank").units == 0
    assert folders(empty_warehouse) == kept(empty_warehouse)
    assert {step.status for step in empty_warehouse.catalog.steps() if step.kind == "spool"} == {"done"}


@pytest.mark.parametrize(
    ("request_", "step"),
    [("capture", "capture.computed"), ("capture", "spool.published"), ("resnapshot", "capture.computed")],
)
def test_the_spool_of_a_killed_process_is_taken_away(
    empty_warehouse: Warehouse, bank: SqliteHarness, request_: str, step: str
) -> None:
    empty_warehouse.add_source("bank", bank.settings())
    bank.write(Write("account", None, account(10, "new", None)))
    done = run(request_, empty_warehouse.root, -1, fault=step)
    assert done.returncode == -signal.SIGKILL, done.stderr
    left = [path for path in (empty_warehouse.root / "data").iterdir() if path.name.startswith("x-")]
    running = [one.kind for one in empty_warehouse.catalog.steps(status="running")]
    assert (len(left), running.count("spool")) == ((0, 0) if step == "spool.published" else (1, 1))
    assert all(any(spool.rglob("*.arrow")) for spool in left)
    with Warehouse.open(empty_warehouse.root) as warehouse:
        if request_ == "resnapshot":
            warehouse.resnapshot("bank")
        else:
            capture(warehouse)
        assert folders(warehouse) == kept(warehouse)
        assert warehouse.catalog.steps(status="running") == ()
        assert stored(warehouse, "account") == bank.rows("account")


@pytest.mark.usefixtures("everything_on_disk")
def test_a_spool_beyond_its_limit_stops_the_source_with_the_reason(
    empty_warehouse: Warehouse, bank: SqliteHarness
) -> None:
    settings = bank.settings()
    small = SourceSettings(settings.kind, settings.address, settings.tables, {"spool_limit": "1 KB"})
    empty_warehouse.add_source("bank", small)
    before = stored(empty_warehouse, "note")
    bank.write(*(Write("note", None, (f"{number:0100d}",)) for number in range(100)))
    (done,) = empty_warehouse.capture().sources
    assert "1,024 bytes" in (done.problem or "")
    (source,) = empty_warehouse.sources()
    assert source.state == "spool_full"
    assert stored(empty_warehouse, "note") == before
    larger = SourceSettings(settings.kind, settings.address, settings.tables, {"spool_limit": "1 MB"})
    assert empty_warehouse.add_source("bank", larger).tables == ()
    capture(empty_warehouse)
    assert stored(empty_warehouse, "note") == bank.rows("note")
    empty_warehouse.add_source("bank", small)
    with pytest.raises(SpoolFull, match="on disk at once"):
        empty_warehouse.resnapshot("bank")
    assert empty_warehouse.sources()[0].state == "spool_full"
    assert folders(empty_warehouse) == kept(empty_warehouse)


def test_options_that_change_what_rows_mean_are_not_taken(empty_warehouse: Warehouse, bank: SqliteHarness) -> None:
    settings = bank.settings()
    empty_warehouse.add_source("bank", settings)
    for options in ({}, {"in_place": "false"}, {"spool_limit": "1 MB", "file_order": "natural"}):
        other = SourceSettings(settings.kind, settings.address, settings.tables, options)
        with pytest.raises(AlreadyExists):
            empty_warehouse.add_source("bank", other)
    fewer = SourceSettings(settings.kind, settings.address, settings.tables[:1], {"spool_limit": "1 MB"})
    with pytest.raises(AlreadyExists):
        empty_warehouse.add_source("bank", fewer)
