"""Where extents go, and what is written anew on the way, by what the catalog says alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.unit.propagate.world import FACTS, SUMMED, World

from rollview.apply.plan import FOLD_ROWS, ApplyStep, plan_apply
from rollview.catalog import DefinitionVersion, Part, StoredParts
from rollview.core.interval import Interval
from rollview.core.schema import Column, Schema
from rollview.errors import OutOfReach
from rollview.store.buckets import REWRITE_ROWS

SUMS = Schema((Column("k", "bigint"), Column("s", "bigint")))


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path, 9)
    world.table("t")
    world.view("v", "SELECT k, x FROM t", (1, 1, 1, 3), (2, 2, 1, 5), (2, 2, -1, 8), extent=4, mark=9)
    world.view("w", "SELECT k, x FROM t", extent=6, mark=9)
    return world


def plan(world: World, target: int, *names: str) -> tuple[ApplyStep, ...]:
    return plan_apply(world.snapshot, world.root, names, target)


def test_a_step_goes_from_where_the_extent_is(world: World) -> None:
    (step,) = plan(world, 8, "v")
    assert (step.before, step.after, step.change_rows, step.between) == (4, 8, 2, Interval(4, 8))


def test_it_may_go_back(world: World) -> None:
    (step,) = plan(world, 2, "v")
    assert (step.before, step.after, step.change_rows, step.between) == (4, 2, 1, Interval(2, 4))


def test_what_is_there_already_takes_no_step(world: World) -> None:
    assert [step.view for step in plan(world, 6, "v", "w")] == ["v"]


def test_none_goes_where_one_cannot(world: World) -> None:
    world.pin("w", Part.DELTA, through=7)
    with pytest.raises(OutOfReach, match="Cannot roll view 'w' to csn 8"):
        plan(world, 8, "v", "w")


def test_across_the_csn_at_which_its_columns_got_their_names_an_extent_is_written_whole(world: World) -> None:
    world.pin("v", Part.EXTENT, rows=REWRITE_ROWS + 1)
    view, now = world.relations["v"], datetime.now(UTC)
    assert view.definition is not None
    older = Schema((Column("k", "bigint"), Column("y", "bigint", place="x")))
    first, second, third = (
        DefinitionVersion(csn, view.definition, schema, ("t",), "", now)
        for csn, schema in ((0, older), (6, view.schema), (7, view.schema))
    )
    world.relations["v"] = replace(view, versions=(first, second, third))
    (back,), (on,) = plan(world, 5, "v"), plan(world, 8, "v")
    assert (back.between, back.by_bucket) == (Interval(4, 5), True)
    assert (on.between, on.by_bucket) == (Interval(4, 8), False)
    assert plan(world, 4, "v") == ()


def test_below_a_redefinition_the_extent_of_the_definition_before_goes_on(world: World) -> None:
    view, now = world.relations["v"], datetime.now(UTC)
    assert view.definition is not None
    before = StoredParts(
        view.folder, {**view.pins, Part.EXTENT: replace(view.pins[Part.EXTENT], after=2, through=2)}, ()
    )
    first = DefinitionVersion(0, view.definition, view.schema, ("t",), "", now, stored=before)
    second = DefinitionVersion(4, view.definition, view.schema, ("t",), "", now, anew=True)
    world.relations["v"] = replace(view, versions=(first, second))
    (step,) = plan(world, 3, "v")
    assert (step.before, step.after) == (2, 3)
    shown = replace(first, stored=replace(before, is_shown=True))
    world.relations["v"] = replace(view, versions=(shown, second))
    assert plan(world, 2, "v") == ()
    (back,) = plan(world, 4, "v")
    assert (back.before, back.after, back.change_rows) == (4, 4, 0)


def test_an_extent_past_the_limit_is_written_by_bucket(world: World) -> None:
    world.pin("v", Part.EXTENT, rows=REWRITE_ROWS)
    assert not plan(world, 8, "v")[0].by_bucket
    world.pin("v", Part.EXTENT, rows=REWRITE_ROWS + 1)
    assert plan(world, 8, "v")[0].by_bucket


def summed(root: Path, changes: int, groups: int) -> World:
    """A view whose delta has so many rows at csn 5, and whose groups, at csn 4, are so many."""
    world = World(root, 9)
    world.table("t")
    world.view("sums", SUMMED, *[(1, 1, 1, 1, 1, 5)] * changes, facts=FACTS, extent=4, mark=9, schema=SUMS)
    world.pin("sums", Part.GROUPS, rows=groups, through=4)
    return world


@pytest.mark.parametrize(
    ("changes", "groups", "folds"),
    [
        (FOLD_ROWS, 0, False),
        (FOLD_ROWS + 1, 0, True),
        (FOLD_ROWS + 2, FOLD_ROWS // 2 + 1, False),
        (FOLD_ROWS + 3, FOLD_ROWS // 2 + 1, True),
    ],
)
def test_groups_are_written_anew_when_their_delta_has_outgrown_them(
    tmp_path: Path, changes: int, groups: int, folds: bool
) -> None:
    world = summed(tmp_path, changes, groups)
    assert plan(world, 9, "sums")[0].fold_groups == folds
    assert not plan(world, 3, "sums")[0].fold_groups


def test_groups_are_not_written_where_they_are(tmp_path: Path) -> None:
    world = summed(tmp_path, FOLD_ROWS + 1, 0)
    world.pin("sums", Part.GROUPS, through=9)
    assert not plan(world, 9, "sums")[0].fold_groups
