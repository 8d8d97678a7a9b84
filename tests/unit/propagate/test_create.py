"""A view's name must be free, or the view must be one that may be replaced."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.propagate.world import World

from rollview.algebra.definition import Declared
from rollview.errors import AlreadyExists
from rollview.propagate.create import _check_name_is_free


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path, 9)
    world.table("t")
    world.view("below", "SELECT k, x FROM t")
    world.view("above", "SELECT k, x FROM below", reads=("below",))
    return world


def check(world: World, name: str, *, replace: bool) -> None:
    _check_name_is_free(Declared(name, (), None, {}, "SELECT k FROM t", replace), world.snapshot.find(name))


def test_a_new_name_and_a_view_that_is_there(world: World) -> None:
    check(world, "new", replace=False)
    check(world, "above", replace=True)
    check(world, "below", replace=True)


@pytest.mark.parametrize(("name", "replace"), [("t", True), ("above", False)])
def test_what_is_there_is_not_written_over(world: World, name: str, replace: bool) -> None:
    with pytest.raises(AlreadyExists):
        check(world, name, replace=replace)
