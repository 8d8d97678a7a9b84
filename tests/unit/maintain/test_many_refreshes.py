"""Thousands of small refreshes leave few files and a warehouse that opens at once.

``ROLLVIEW_SMALL_REFRESHES=10000`` is the figure that is promised.
"""

from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path

from tests.unit.maintain.small import HOMES, Small, no_spark

from rollview.catalog import Part
from rollview.maintain import Keep, Maintenance, maintain
from rollview.publish.merge import merge_if_many
from rollview.store.log import DeltaLog
from rollview.warehouse import Warehouse

REFRESHES = int(os.environ.get("ROLLVIEW_SMALL_REFRESHES", "130"))
BETWEEN = 500
"""Refreshes from one maintenance to the next."""


def test_small_refreshes_leave_few_files_and_open_at_once(tmp_path: Path) -> None:
    small = Small.founded(tmp_path / "w")
    most = 0
    for n in range(REFRESHES):
        small.commit([(n - 20, "x")] if n >= 20 else [], [(n, "x")])
        merge_if_many(small.data, small.warehouse.catalog, ["t"])
        small.refresh()
        merge_if_many(small.data, small.warehouse.catalog, ["v"])
        most = max(most, *(small.live(name, Part.DELTA) for name in HOMES))
        if n % BETWEEN == BETWEEN - 1:
            maintain(Maintenance(small.data, small.warehouse.catalog, no_spark, Keep(), timedelta(seconds=1)), None)
    assert most <= 200, "live files of a table at any time"
    maintain(Maintenance(small.data, small.warehouse.catalog, no_spark, Keep(), timedelta(0)), None)
    assert opening(small) < 2
    for name in HOMES:
        assert small.rows(name, *marks(small)) == [small.states[csn] for csn in marks(small)]
    files, logged = on_disk(small)
    print(f"{REFRESHES} refreshes: at most {most} live files, {files} files and {logged} log files on disk", end=" ")
    print(f"opened in {opening(small):.3f} s")
    assert files <= 200
    assert logged <= 4 * 250


def opening(small: Small) -> float:
    """As a new process does: the catalog, and which files everything is in."""
    DeltaLog._known.clear()
    began = time.monotonic()
    with Warehouse.open(small.warehouse.root) as warehouse:
        warehouse.status()
        for name in warehouse.snapshot().relations:
            for part in warehouse.snapshot().get(name).pins:
                small.stored(name).files(part)
    return time.monotonic() - began


def marks(small: Small) -> list[int]:
    return sorted({0, 1, small.csn // 2, small.csn - 1, small.csn})


def on_disk(small: Small) -> tuple[int, int]:
    places = [small.data / home for home in HOMES.values()]
    data = sum(1 for place in places for _ in place.rglob("part-*.parquet"))
    return data, sum(1 for place in places for path in place.rglob("_delta_log/*") if path.is_file())
