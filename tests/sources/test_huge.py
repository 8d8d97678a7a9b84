"""Transactions that do not fit into memory. ``ROLLVIEW_HUGE_MB=2048`` is the figure that is promised."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from typing import Any

import pyarrow.compute as pc
import pytest

from rollview.capture.stored_rows import load_rows
from rollview.core.interval import Interval
from rollview.relations.folders import delta_folder
from rollview.sources import SourceSettings, TableSettings
from rollview.warehouse import Warehouse
from tests.sources.harness import Write, account, capture, stored
from tests.sources.mariadb_harness import MariadbHarness
from tests.sources.test_shared import random_writes

HUGE = int(os.environ.get("ROLLVIEW_HUGE_MB", "60"))
SMALL = 15
MORE = 64 + HUGE // 8
"""Megabytes that memory may grow by from the small transaction to the huge one."""

PROGRAM = """
import re, sys
from pathlib import Path
from rollview.warehouse import Warehouse
with Warehouse.open(sys.argv[1]) as warehouse:
    (done,) = warehouse.capture().sources
    assert done.problem is None, done.problem
print(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
"""
FILLED = {
    "postgres": "INSERT INTO big SELECT g, repeat(md5((g % 999)::text), 64) FROM generate_series({0}, {1}) AS g",
    "mariadb": "INSERT INTO big SELECT seq, repeat(md5(seq % 999), 64) FROM seq_{0}_to_{1}",
    "mysql": "INSERT /*+ SET_VAR(cte_max_recursion_depth = 4000000) */ INTO big "
    "WITH RECURSIVE s(g) AS (SELECT {0} UNION ALL SELECT g + 1 FROM s WHERE g < {1}) "
    "SELECT g, repeat(sha2(g % 999, 256), 32) FROM s",
    "sqlite": "WITH RECURSIVE s(g) AS (SELECT {0} UNION ALL SELECT g + 1 FROM s WHERE g < {1}) "
    "INSERT INTO big SELECT g, hex(zeroblob(1000)) || g FROM s",
}


def execute(bank: Any, *texts: str) -> None:
    for text in texts:
        if isinstance(bank, MariadbHarness):
            bank.execute(text)
        else:
            bank.connection.execute(text if bank.kind == "sqlite" else text.encode())


def test_memory_stays_flat(bank: Any, empty_warehouse: Warehouse) -> None:
    execute(bank, "CREATE TABLE big (id INTEGER PRIMARY KEY, v VARCHAR(4000))")
    if bank.kind == "postgres":
        execute(bank, "ALTER TABLE big REPLICA IDENTITY FULL")
    settings = SourceSettings(bank.kind, bank.settings().address, (TableSettings("big", "big"),))
    empty_warehouse.add_source("s", settings)
    peaks, last = [], 0
    for megabytes in (SMALL, HUGE):
        rows = megabytes * 512
        execute(bank, "BEGIN", FILLED[bank.kind].format(last + 1, last + rows))
        execute(bank, f"DELETE FROM big WHERE id > {last} AND id % 10 = 0", "COMMIT")
        peaks.append(_captured_in_another_process(empty_warehouse))
        last += rows
        kept = rows - rows // 10 if last % 10 else rows * 9 // 10
        (change,) = empty_warehouse.catalog.changes("big", Interval(len(peaks), len(peaks) + 1))
        assert abs(change.inserted - kept) <= 1
        assert (change.deleted, change.updated) == (0, 0)
    assert peaks[1] - peaks[0] < MORE << 10, f"{[peak >> 10 for peak in peaks]} MB"
    relation = empty_warehouse.snapshot().get("big")
    rows = load_rows(delta_folder(empty_warehouse.root / "data", relation), relation.pins["delta"].version)  # type: ignore[index]
    ids = set(rows["id"].to_pylist())
    assert len(ids) == rows.num_rows
    assert ids == {number for number in range(1, last + 1) if number % 10}
    assert pc.all(pc.equal(rows["_count"], 1)).as_py()


def _captured_in_another_process(warehouse: Warehouse) -> int:
    """The most kilobytes that it held."""
    environment = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    program = [sys.executable, "-c", PROGRAM, str(warehouse.root)]
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=True)
    return int(done.stdout)


def test_what_is_spooled_is_the_same(bank: Any, empty_warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rollview.sources.spool.IN_MEMORY", -1)
    empty_warehouse.add_source("bank", bank.settings())
    chance = random.Random(7)
    for _ in range(25):
        bank.write(*random_writes(chance, bank.rows("account")), Write("note", None, (str(chance.random()),)))
        if chance.random() < 0.5:
            capture(empty_warehouse)
    bank.empty("note")
    bank.write(Write("note", None, ("x",)), Write("account", None, account(99, "n", "1.00")))
    capture(empty_warehouse)
    for table in ("account", "note"):
        assert stored(empty_warehouse, table) == bank.rows(table)
    assert stored(empty_warehouse, "note") == Counter({("x",): 1})
