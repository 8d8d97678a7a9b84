"""A view's name must be free, or the view must be one that may be replaced."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.propagate.world import World

from rollview.algebra.definition import Declared
from rollview.errors import AlreadyExists, InUse, RollviewError
from rollview.propagate.create import _check_name_is_free


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path, 9)
    world.table("t")
    world.view("below", "SELECT k, x FROM t")
    world.view("above", "SELECT k, x FROM below", reads=("below",))
    return world


def check(world: World, name: str, *, replace: bool) -> None:
    snapshot = world.snapshot
    _check_name_is_free(snapshot, Declared(name, (), None, {}, "SELECT k FROM t", replace), snapshot.find(name))


def test_a_new_name_and_a_view_that_nothing_reads(world: World) -> None:
    check(world, "new", replace=False)
    check(world, "above", replace=True)


@pytest.mark.parametrize(
    ("name", "replace", "kind"),
    [("t", True, AlreadyExists), ("above", False, AlreadyExists), ("below", True, InUse)],
)
def test_what_is_there_is_not_written_over(world: World, name: str, replace: bool, kind: type[RollviewError]) -> None:
    with pytest.raises(kind):
        check(world, name, replace=replace)
