"""For how long rows are current: from commit times, and no further than is proven."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.unit.catalog.samples import add_table
from tests.unit.propagate.world import World

from rollview.catalog import Catalog, Change, NewUnit, Part, UnitPart
from rollview.core.interval import Interval
from rollview.relations.proven import valid_time
from rollview.results import ValidTime
from rollview.warehouse import Warehouse

NOON = datetime(2025, 12, 13, 12, tzinfo=UTC)
QUERY = "SELECT k, x FROM t"


def at(seconds: int) -> datetime:
    return NOON + timedelta(seconds=seconds)


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with Catalog.create(tmp_path / "catalog.db") as catalog:
        with catalog.write() as writer:
            for name in ("t", "u"):
                add_table(writer, name)
        yield catalog


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path, 0)
    world.table("t")
    world.table("u")
    return world


def commits(catalog: Catalog, world: World, *changed: tuple[str, int], source: str = "local") -> None:
    """Units of work, each of one table and of a second."""
    new = [NewUnit((UnitPart(source, f"p{s}", "t", at(s)),), (Change(name, 1, 0),), at(s)) for name, s in changed]
    with catalog.write() as writer:
        world.csn = writer.commit_units(new).csn


def told(catalog: Catalog, world: World, name: str) -> ValidTime:
    return valid_time(catalog, world.root, world.snapshot, name)


def csns(catalog: Catalog, world: World, name: str) -> tuple[int, int]:
    valid = told(catalog, world, name)
    return valid.first, valid.through


def test_a_table_is_valid_from_its_last_change_on(catalog: Catalog, world: World) -> None:
    commits(catalog, world, ("t", 1), ("t", 2), ("u", 3), ("u", 4))
    before = datetime.now(UTC)
    valid = told(catalog, world, "t")
    assert (valid.first, valid.through, valid.since) == (2, 4, at(2))
    assert valid.until is not None
    assert valid.until >= before
    assert csns(catalog, world, "u") == (4, 4)


def test_a_table_that_never_changed_is_valid_since_it_is_there(catalog: Catalog, world: World) -> None:
    commits(catalog, world, ("u", 1))
    assert told(catalog, world, "t").since is None
    assert csns(catalog, world, "t") == (0, 1)


def test_an_extent_is_valid_between_the_commits_that_could_move_it(catalog: Catalog, world: World) -> None:
    commits(catalog, world, ("t", 1), ("t", 2), ("u", 3), ("u", 4), ("t", 5), ("t", 6))
    world.view("v", QUERY, (1, 1, 1, 1), (1, 1, 1, 2), extent=3, mark=3)
    assert told(catalog, world, "v") == ValidTime(2, 4, at(2), at(5))


def test_a_delta_that_shows_nothing_proves_more(catalog: Catalog, world: World) -> None:
    commits(catalog, world, *(("t", n) for n in range(1, 9)))
    world.view("v", QUERY, (1, 1, 1, 2), (1, 1, 1, 6), extent=4, mark=7)
    assert csns(catalog, world, "v") == (2, 5)
    world.pin("v", Part.EXTENT, after=6, through=6)
    assert csns(catalog, world, "v") == (6, 7)
    world.pin("v", Part.EXTENT, after=1, through=1)
    assert csns(catalog, world, "v") == (0, 1)


def test_inside_a_coarse_stretch_nothing_is_proven(catalog: Catalog, world: World) -> None:
    commits(catalog, world, *(("t", n) for n in range(1, 9)))
    world.view("v", QUERY, extent=5, mark=8)
    assert csns(catalog, world, "v") == (0, 8)
    world.relations["v"] = replace(world.relations["v"], coarse=(Interval(2, 4), Interval(6, 8)))
    assert csns(catalog, world, "v") == (4, 6)
    world.pin("v", Part.EXTENT, after=4, through=4)
    assert csns(catalog, world, "v") == (4, 6)


def test_now_is_what_a_source_is_known_to_have_passed(catalog: Catalog, world: World) -> None:
    with catalog.write() as writer:
        writer.sources.add("bank", "sqlite", {"address": "x"}, {})
        writer.sources.attach("bank", "t", "t")
    world.relations["t"] = replace(world.relations["t"], source="bank")
    commits(catalog, world, ("t", 1), source="bank")
    assert told(catalog, world, "t") == ValidTime(1, 1, at(1), None)
    with catalog.write() as writer:
        writer.sources.advance("bank", None, "p", known=at(7))
    assert told(catalog, world, "t") == ValidTime(1, 1, at(1), at(7))


def test_two_sources_out_of_order_leave_no_moment(catalog: Catalog, world: World) -> None:
    """Csn 1 was committed after csn 2: no moment has the first and not the second."""
    with catalog.write() as writer:
        for name, table in (("bank", "t"), ("stock", "u")):
            writer.sources.add(name, "sqlite", {"address": "x"}, {})
            writer.sources.attach(name, table, table)
            writer.sources.advance(name, None, "p", known=at(9))
    for table, source in (("t", "bank"), ("u", "stock")):
        world.relations[table] = replace(world.relations[table], source=source)
    commits(catalog, world, ("t", 5), source="bank")
    commits(catalog, world, ("u", 2), source="stock")
    query = "SELECT t.k, u.x FROM t JOIN u ON t.k = u.k"
    world.view("both", query, (1, 1, 1, 1), reads=("t", "u"), extent=1, mark=1)
    assert told(catalog, world, "both") == ValidTime(1, 1, None, None)


def test_the_warehouse_tells_it_as_often_as_it_is_asked(tmp_path: Path) -> None:
    with Warehouse.create(tmp_path / "w") as warehouse:
        with warehouse.catalog.write() as writer:
            add_table(writer, "t")
        assert [warehouse.valid_time("t").through for _ in range(2)] == [0, 0]
