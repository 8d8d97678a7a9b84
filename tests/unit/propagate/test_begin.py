"""A view begins where the captured tables that it reads have what they have now."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.unit.propagate.world import KX, World

from rollview.algebra.definition import Declared
from rollview.algebra.view import outline, plan
from rollview.catalog import Snapshot
from rollview.catalog.values import Definition, DefinitionVersion, Layout
from rollview.core.schema import Column, Schema
from rollview.errors import OutOfReach
from rollview.propagate.begin import check_begin
from rollview.propagate.create import ViewToCreate
from rollview.relations.plans import known_as

KXY = Schema((*KX, Column("y", "bigint")))


def begin(root: Path, at: int, *layouts: tuple[int, Schema]) -> None:
    world = World(root, 9)
    world.table("t")
    laid_out = tuple(Layout(csn, "", schema, "") for csn, schema in layouts)
    world.relations["t"] = replace(world.relations["t"], layouts=laid_out)
    check_begin(world.snapshot, view(world.snapshot, at))


def view(snapshot: Snapshot, at: int) -> ViewToCreate:
    declared = Declared("v", (), None, {}, "SELECT k FROM t", False)
    made = plan(outline(declared, {"t": known_as(snapshot.get("t"))}), {})
    return ViewToCreate(declared, made, KX, {}, at, False)


@pytest.mark.parametrize(
    ("layouts", "since"),
    [
        pytest.param([(1, KX)], 0, id="nothing changed"),
        pytest.param([(1, KX), (4, KXY)], 4, id="a column came"),
        pytest.param([(1, KXY), (4, KX)], 0, id="a column went"),
        pytest.param([(1, KX), (4, KX)], 4, id="rows came"),
        pytest.param([(1, KX), (3, KXY), (5, KX), (6, KXY), (7, KX)], 6, id="the last that came counts"),
    ],
)
def test_not_before_the_last_column_or_row_came(tmp_path: Path, layouts: list[tuple[int, Schema]], since: int) -> None:
    begin(tmp_path, since, *layouts)
    if since:
        with pytest.raises(OutOfReach, match=f"'t' is what it is now since {since}"):
            begin(tmp_path, since - 1, *layouts)


def test_not_before_a_view_below_has_its_definition(tmp_path: Path) -> None:
    world = World(tmp_path, 9)
    world.view("t", "SELECT 1 AS k")
    told = Definition("SELECT 1 AS k", (), None, {}, {})
    versions = tuple(DefinitionVersion(csn, told, KX, (), "", datetime.now(UTC)) for csn in (0, 5))
    world.relations["t"] = replace(world.relations["t"], versions=versions)
    check_begin(world.snapshot, view(world.snapshot, 5))
    with pytest.raises(OutOfReach, match="view 't' is what it is now since 5"):
        check_begin(world.snapshot, view(world.snapshot, 4))
    pending = replace(versions[1], csn=8, pending=True)
    world.relations["t"] = replace(world.relations["t"], versions=(*versions, pending))
    check_begin(world.snapshot, view(world.snapshot, 5))
