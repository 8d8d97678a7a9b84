"""What moved in an interval, told by the ledger and by files."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.propagate.world import World

from rollview.algebra.script import Motion
from rollview.catalog import ChangeCount
from rollview.core.interval import Interval
from rollview.relations.moved import Moved, moved


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path, 9)
    world.table("t")
    return world


def of(world: World, name: str, after: int, through: int) -> Moved:
    snapshot = world.snapshot
    return moved(snapshot, snapshot.get(name), world.root, Interval(after, through), world.changes_of)


@pytest.mark.parametrize(
    ("counts", "motion"),
    [
        ([(2, 3, 0, 0)], Motion(True, deletes=False, updates=False, one_csn=True)),
        ([(2, 3, 0, 0), (4, 1, 1, 0)], Motion(True, deletes=True, updates=False, one_csn=False)),
        ([(2, 3, 0, 0), (4, 1, 1, 1)], Motion(True, deletes=True, updates=True, one_csn=False)),
        ([(2, 1, 1, None)], Motion(True, deletes=True, updates=True, one_csn=True)),
        ([(2, 1, 0, None)], Motion(True, deletes=False, updates=False, one_csn=True)),
        ([], Motion(False, deletes=False, updates=False, one_csn=False)),
        ([(2, 0, 0, 0)], Motion(False, deletes=False, updates=False, one_csn=True)),
    ],
)
def test_a_tables_motion_is_what_the_ledger_counts(
    world: World, counts: list[tuple[int, int, int, int | None]], motion: Motion
) -> None:
    world.counts = [ChangeCount("t", *count) for count in counts]
    found = of(world, "t", 1, 9)
    assert found.motion == motion
    assert found.rows == sum(inserted + deleted for _, inserted, deleted, _ in counts)


def test_the_csns_of_a_tables_changes_are_the_first_and_the_last(world: World) -> None:
    world.counts = [ChangeCount("t", csn, 1, 0, 0) for csn in (3, 5, 8)]
    assert of(world, "t", 1, 9).csns == (3, 8)
    assert of(world, "t", 3, 7).csns == (5, 5)
    assert of(world, "t", 5, 7).csns is None


def test_a_views_changes_are_told_by_its_files(world: World) -> None:
    world.view("v", "SELECT k, x FROM t", (1, 1, 1, 3), (2, 2, 1, 5), (2, 2, -1, 8), mark=9)
    assert of(world, "v", 1, 9) == Moved(Motion(), 3, (3, 8))
    assert of(world, "v", 3, 8) == Moved(Motion(), 2, (5, 8))
    assert of(world, "v", 5, 7) == Moved(Motion(changed=False), 0, None)


def test_a_file_that_reaches_beyond_the_interval_tells_no_csn_outside_it(tmp_path: Path) -> None:
    world = World(tmp_path, 9)
    world.table("t")
    world.view("v", "SELECT k, x FROM t", mark=9)
    relation = world.relations["v"]
    from tests.unit.propagate.world import _table

    from rollview.relations.reader import stored_as

    folder = stored_as(world.root, relation).folder("delta")
    files = folder.stage(_table(folder, [(1, 1, 1, 2), (1, 1, 1, 5), (1, 1, 1, 9)]), folder.new_folder())
    world.pin("v", "delta", version=folder.commit(0, files, (), {}), rows=3)  # type: ignore[arg-type]
    assert of(world, "v", 3, 7).csns == (4, 7)
