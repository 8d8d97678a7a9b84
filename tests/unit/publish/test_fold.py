"""When a table's state moves forward."""

from __future__ import annotations

from pathlib import Path

from tests.unit.propagate.world import World

from rollview.catalog import Part
from rollview.publish.fold import leaves_behind


def test_a_state_does_not_move_past_views_that_are_far_behind(tmp_path: Path) -> None:
    world = World(tmp_path, 100)
    world.table("t")
    world.table("u")
    world.pin("t", Part.STATE, through=10)
    world.view("near", "SELECT k, x FROM t", mark=90)
    world.view("far", "SELECT k, x FROM t", mark=30)
    world.view("above", "SELECT k, x FROM near", mark=30, reads=("near",))

    def left(*going: str, table: str = "t") -> bool:
        return leaves_behind(world.snapshot, world.snapshot.get(table), going)

    assert not left("near")
    assert left("near", "far")
    assert left("above")
    assert not left("far", table="u")
    assert not left()
    world.pin("far", Part.DELTA, through=55)
    assert not left("far")
    assert not left("dropped")
