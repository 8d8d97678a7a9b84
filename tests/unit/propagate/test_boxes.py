"""A step of a view whose tables move one by one is planned from what the catalog says alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.unit.propagate.world import World

from rollview.catalog import NOT_KEPT, ChangeCount, Part, PlaceInDelta
from rollview.core.interval import Interval
from rollview.errors import EngineFailed, Retryable
from rollview.propagate.boxes import came_anew, plan_box
from rollview.propagate.plan import Box, PropagateStep, plan_propagate
from rollview.relations.rolling import is_uneven, places_of, reachable

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """t changed at 3 and 5, u at 4; both are propagated up to 2."""
    world = World(tmp_path, 9)
    world.table("t", (1, 1, 1, 3), (1, 2, 1, 5))
    world.table("u", (1, 7, 1, 4))
    world.counts = [ChangeCount(name, csn, 1, 0, None) for name, csn in (("t", 3), ("u", 4), ("t", 5))]
    world.view("v", "SELECT t.k, u.x FROM t JOIN u ON t.k = u.k", reads=("t", "u"), mark=2)
    return world


def box(world: World, target: int = 9, *due: str) -> PropagateStep | None:
    return plan_box(world.snapshot, world.root, "v", target, world.changes_of, tuple, due or None)


def come_to(world: World, mark: int, places: Mapping[str, int]) -> None:
    world.pin("v", Part.DELTA, through=mark)
    told = {table: PlaceInDelta(csn, NOON) for table, csn in places.items()}
    world.relations["v"] = replace(world.relations["v"], places=told)


def test_a_box_takes_one_table_and_reads_each_other_where_it_is(world: World) -> None:
    step = box(world, 9, "t")
    assert step is not None
    assert step.box == Box("t", {"t": Interval(2, 9), "u": Interval(2, 3)})
    assert step.places == {"t": 9, "u": 3}
    assert (step.interval, step.more) == (Interval(2, 3), False)
    assert step.motion["t"].changed
    assert not step.motion["u"].changed
    assert step.circumstances(ahead=False).moving == "t"


def test_a_box_has_no_more_changes_than_the_view_says(world: World) -> None:
    definition = world.relations["v"].definition
    assert definition is not None
    said = {"rollview.propagate": "t manual, u manual", "rollview.max_rows": "1"}
    world.relations["v"] = replace(world.relations["v"], definition=replace(definition, properties=said))
    step = box(world, 9, "t")
    assert step is not None
    assert (step.box, step.more) == (Box("t", {"t": Interval(2, 3), "u": Interval(2, 3)}), True)


def test_what_came_to_another_behind_the_beginning_carries_its_csn(world: World) -> None:
    come_to(world, 3, {"t": 3, "u": 6})
    step = box(world)
    assert step is not None
    assert step.box == Box("t", {"t": Interval(4, 9), "u": Interval(4, 9)})
    come_to(world, 2, {"t": 2, "u": 6})
    step = box(world)
    assert step is not None
    assert step.box == Box("t", {"t": Interval(2, 9), "u": Interval(2, 9)})
    assert step.motion["u"].changed
    come_to(world, 3, {"t": 5, "u": 3})
    step = box(world, 9, "u")
    assert step is not None
    assert step.box == Box("u", {"u": Interval(3, 9), "t": Interval(3, 9)})


def test_a_table_without_changes_moves_for_nothing(world: World) -> None:
    step = box(world, 9, "elsewhere")
    assert step is not None
    assert not step.moves
    assert (step.places, step.interval) == ({"t": 2, "u": 3}, Interval(2, 2))
    come_to(world, 5, {"t": 5, "u": 5})
    step = box(world)
    assert step is not None
    assert (step.moves, step.places, step.interval) == (False, {"t": 9, "u": 9}, Interval(5, 9))
    come_to(world, 9, {"t": 9, "u": 9})
    assert box(world) is None


def test_all_tables_come_to_the_target_one_after_another(world: World) -> None:
    come_to(world, 2, {"t": 4, "u": 2})
    first = box(world)
    assert first is not None
    assert first.box is not None
    assert (first.box.table, first.more) == ("u", True)
    come_to(world, first.interval.through, first.places)
    second = box(world)
    assert second is not None
    assert second.box is not None
    assert (second.box.table, second.more, second.interval.through) == ("t", False, 9)


def test_a_view_with_places_that_differ_is_not_propagated_in_one_step(world: World) -> None:
    come_to(world, 2, {"t": 4, "u": 2})
    view = world.relations["v"]
    assert is_uneven(world.snapshot, view)
    assert places_of(world.snapshot, view) == {"t": 4, "u": 2}
    with pytest.raises(Retryable, match="different csns"):
        plan_propagate(world.snapshot, world.root, "v", 9, world.changes_of, tuple)
    come_to(world, 5, {"t": 4, "u": 2})
    assert not is_uneven(world.snapshot, world.relations["v"])
    step = plan_propagate(world.snapshot, world.root, "v", 9, world.changes_of, tuple)
    assert step is not None
    assert step.places == {"t": 9, "u": 9}


def test_rows_that_are_not_kept_are_asked_for_and_those_that_came_anew_stop_it(world: World) -> None:
    world.pin("u", Part.STATE, version=NOT_KEPT)
    step = box(world)
    assert step is not None
    assert step.asked == {"u"}
    world.relations["u"] = replace(world.relations["u"], replaced=(6,))
    assert came_anew(world.snapshot, "v")
    with pytest.raises(EngineFailed, match="all rows of table 'u' came anew"):
        box(world)


def test_views_above_come_by_themselves_as_far_as_the_mark(world: World) -> None:
    world.view("above", "SELECT k, x FROM v", reads=("v",))
    assert reachable(world.snapshot, world.relations["above"]) == 9
    view = world.relations["v"]
    assert view.definition is not None
    said = replace(view.definition, properties={"rollview.propagate": "t every 1 second, u manual"})
    world.relations["v"] = replace(view, definition=said)
    assert reachable(world.snapshot, world.relations["above"]) == 2


def test_a_long_way_of_one_table_is_several_boxes(world: World) -> None:
    world.csn = 60_000
    world.counts = [ChangeCount("t", csn, 1, 0, None) for csn in range(3, world.csn + 1)]
    step = box(world, world.csn, "t")
    assert step is not None
    assert step.box is not None
    assert (step.box.intervals["t"].through < world.csn, step.more) == (True, True)


def test_a_commit_that_changed_no_row_of_a_table_does_not_stop_it(world: World) -> None:
    world.counts.insert(0, ChangeCount("u", 3, 0, 0, None))
    step = box(world, 9, "elsewhere")
    assert step is not None
    assert step.places == {"t": 2, "u": 3}


def test_a_box_tells_between_which_csns_changes_lie_and_is_no_query_for_all(world: World) -> None:
    step = box(world, 9, "t")
    assert step is not None
    assert (step.work.delta_rows, step.work.csns) == (2, (3, 5))
    assert (step.is_linear, step.at_once) == (True, False)


def test_a_box_goes_no_further_than_the_target_nor_than_the_definition(world: World) -> None:
    step = box(world, 4, "t")
    assert step is not None
    assert step.places["t"] == 4
    world.relations["v"] = replace(world.relations["v"], until=5)
    step = box(world, 9, "t")
    assert step is not None
    assert step.places["t"] == 4


def test_rows_that_came_anew_where_the_view_is_are_known(world: World) -> None:
    world.relations["u"] = replace(world.relations["u"], replaced=(2,))
    assert not came_anew(world.snapshot, "v")
    assert box(world) is not None
