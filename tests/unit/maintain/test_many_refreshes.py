"""Thousands of small refreshes leave few files and a warehouse that opens with as little work as a new one.

``ROLLVIEW_SMALL_REFRESHES=10000`` is the figure that is promised.
"""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.unit.maintain.small import HOMES, Small, no_spark

from rollview.catalog import Part
from rollview.maintain import Keep, Maintenance, maintain
from rollview.publish.merge import merge_if_many
from rollview.store.log import _CONFIGURATION, DeltaLog
from rollview.warehouse import Warehouse

pytestmark = pytest.mark.slow

REFRESHES = int(os.environ.get("ROLLVIEW_SMALL_REFRESHES", "130"))
BETWEEN = 500
"""Refreshes from one maintenance to the next."""
CHECKPOINT = int(_CONFIGURATION["delta.checkpointInterval"] or 0)


def test_small_refreshes_leave_few_files_and_little_to_open(tmp_path: Path) -> None:
    small = Small.founded(tmp_path / "w")
    most, new = 0, opening(small)
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
    assert opening(small) == new
    assert max(read_one_by_one(small).values()) <= CHECKPOINT
    for name in HOMES:
        assert small.rows(name, *marks(small)) == [small.states[csn] for csn in marks(small)]
    files, logged = on_disk(small)
    print(f"{REFRESHES} refreshes: at most {most} live files, {files} files and {logged} log files on disk", end=" ")
    print(f"opened with {new} statements and {read_one_by_one(small)} commits of logs")
    assert files <= 200
    assert logged <= 4 * 250


def opening(small: Small) -> int:
    """As a new process does: the catalog, and which files everything is in. How many statements that takes."""
    DeltaLog._known.clear()
    statements: list[str] = []

    def note(connection: object, cursor: object, statement: str, *rest: object) -> None:
        statements.append(statement)

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    try:
        with Warehouse.open(small.warehouse.root) as warehouse:
            warehouse.status()
            for name in warehouse.snapshot().relations:
                for part in warehouse.snapshot().get(name).pins:
                    small.stored(name).files(part)
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", note)
    assert statements
    return len(statements)


def read_one_by_one(small: Small) -> dict[str, int]:
    """How many commits of each log come after its last checkpoint: a new process reads them one after the other."""
    found = {}
    for log in small.data.rglob("_delta_log"):
        marks = [int(path.name.split(".")[0]) for path in log.glob("*.checkpoint.parquet")]
        commits = [int(path.stem) for path in log.glob("*.json")]
        found[str(log.relative_to(small.data))] = sum(commit > max(marks, default=-1) for commit in commits)
    return found


def marks(small: Small) -> list[int]:
    return sorted({0, 1, small.csn // 2, small.csn - 1, small.csn})


def on_disk(small: Small) -> tuple[int, int]:
    places = [small.data / home for home in HOMES.values()]
    data = sum(1 for place in places for _ in place.rglob("part-*.parquet"))
    return data, sum(1 for place in places for path in place.rglob("_delta_log/*") if path.is_file())
