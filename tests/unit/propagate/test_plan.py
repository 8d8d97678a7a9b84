"""A propagation step is planned from what the catalog says alone."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.propagate.world import FACTS, SUMMED, World

from rollview.algebra.script import AT_ONCE_ROWS, ONE_TASK_ROWS
from rollview.algebra.summary import FEW_GROUPS, GROUPS
from rollview.algebra.terms import SMALL_SIDE_ROWS
from rollview.algebra.view import Mode
from rollview.catalog import NOT_KEPT, ChangeCount, Part
from rollview.core.interval import Interval
from rollview.core.schema import Constraints
from rollview.errors import OutOfReach, UsageError
from rollview.propagate.bounds import FEWEST_COMMITS, FIRST_COMMITS
from rollview.propagate.choice import RefreshMode
from rollview.propagate.plan import MANY_CSNS, MOST_ASKED, SMALL_DELTA_ROWS, PropagateStep, plan_propagate

KEYED = "SELECT k FROM (SELECT k, MAX(x) AS x FROM t GROUP BY k) AS m WHERE x > 3"


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path, 9)
    world.table("t", (1, 1, 1, 3), (1, 2, 1, 5))
    world.counts = [ChangeCount("t", 3, 1, 0, None), ChangeCount("t", 5, 1, 0, None)]
    world.table("u")
    world.view("v", "SELECT k, x FROM t")
    world.view("sums", SUMMED, facts=FACTS)
    world.view("above", "SELECT k, x FROM v", reads=("v",))
    world.view("both", "SELECT t.k, u.x FROM t JOIN u ON t.k = u.k", reads=("t", "u"))
    world.view("keyed", KEYED)
    return world


def plan(world: World, name: str, target: int = 9, **how: Any) -> PropagateStep:
    step = plan_propagate(world.snapshot, world.root, name, target, world.changes_of, tuple, **how)
    assert step is not None
    return step


def rows(world: World, count: int) -> None:
    """So many rows changed."""
    world.counts = [ChangeCount("t", 3, count, 0, None)]


def test_a_view_goes_no_further_than_what_it_reads(world: World) -> None:
    assert plan(world, "v").interval == Interval(0, 9)
    assert plan(world, "v", 4).interval == Interval(0, 4)
    world.pin("v", Part.DELTA, through=6)
    assert plan(world, "above").interval == Interval(0, 6)
    world.pin("above", Part.DELTA, through=6)
    assert plan_propagate(world.snapshot, world.root, "above", 9, world.changes_of, tuple) is None
    world.pin("v", Part.DELTA, through=7)
    assert plan(world, "above").interval == Interval(6, 7)


def test_it_moves_if_one_of_its_relations_does(world: World) -> None:
    assert plan(world, "both").moves
    world.counts.clear()
    assert not plan(world, "both").moves


def test_what_keys_prove_to_change_nothing_does_not_move_it(world: World) -> None:
    world.table("p", constraints=Constraints(primary_key=("k",)))
    world.view("left", "SELECT u.x FROM u LEFT JOIN p ON u.x = p.k", reads=("u", "p"))
    world.counts = [ChangeCount("p", 3, 1, 0, None)]
    assert not plan(world, "left").moves
    world.counts.append(ChangeCount("u", 4, 1, 0, None))
    assert plan(world, "left").moves
    assert set(plan(world, "left").motion) == {"u"}


def test_the_work_is_told_by_rows_and_csns(world: World) -> None:
    work = plan(world, "both").work
    assert (work.delta_rows, work.read_rows, work.csns) == (2, 0, (3, 5))
    world.counts.append(ChangeCount("u", 7, 1, 0, None))
    assert plan(world, "both").work.csns == (3, 7)
    world.counts[:] = [ChangeCount("u", 2, 1, 0, None)]
    assert plan(world, "both").work.csns == (2, 2)


def test_up_to_the_limit_deltas_are_small(world: World) -> None:
    rows(world, SMALL_DELTA_ROWS)
    assert plan(world, "v").small
    rows(world, SMALL_DELTA_ROWS + 1)
    assert not plan(world, "v").small


def test_changes_at_many_csns_are_told_apart_where_keys_are_looked_at_again(world: World) -> None:
    last = world.counts[0].csn + MANY_CSNS
    world.csn = last
    world.counts[1:] = [ChangeCount("t", last - 1, 1, 0, None)]
    assert not plan(world, "keyed", last).circumstances(ahead=False).many
    world.counts.append(ChangeCount("t", last, 1, 0, None))
    assert plan(world, "keyed", last).circumstances(ahead=False).many
    assert not plan(world, "sums", last).many
    assert not plan(world, "v", last).many
    three = "SELECT t.k, u.x FROM t JOIN u ON t.k = u.k JOIN u AS w ON t.k = w.k"
    world.view("three", three, reads=("t", "u"))
    assert plan(world, "three", last).many
    assert not plan(world, "both", last).many


def test_little_is_shuffled_only_where_no_state_is_grouped_whole(world: World) -> None:
    assert plan(world, "keyed").shuffles_little
    assert not plan(world, "v", mode=RefreshMode.RECOMPUTE).shuffles_little
    world.pin("t", Part.STATE, rows=SMALL_DELTA_ROWS)
    assert not plan(world, "keyed").groups_states
    world.pin("t", Part.STATE, rows=SMALL_DELTA_ROWS + 1)
    assert plan(world, "keyed").groups_states
    assert not plan(world, "keyed").shuffles_little
    assert not plan(world, "v").groups_states
    assert plan(world, "v").shuffles_little
    rows(world, SMALL_DELTA_ROWS + 1)
    assert not plan(world, "v").shuffles_little


def test_the_state_is_told_ahead_only_for_few_groups_that_are_applied_next(world: World) -> None:
    assert plan(world, "sums", applied_next=True).ahead
    assert not plan(world, "sums").ahead
    assert not plan(world, "v", applied_next=True).ahead
    assert not plan(world, "sums", applied_next=True, mode=RefreshMode.RECOMPUTE).ahead
    rows(world, SMALL_DELTA_ROWS)
    assert plan(world, "sums", applied_next=True).ahead
    rows(world, SMALL_DELTA_ROWS + 1)
    assert not plan(world, "sums", applied_next=True).ahead
    rows(world, 1)
    world.pin("sums", Part.GROUPS, rows=FEW_GROUPS)
    assert plan(world, "sums", applied_next=True).ahead
    world.pin("sums", Part.GROUPS, rows=FEW_GROUPS + 1)
    assert not plan(world, "sums", applied_next=True).ahead


def test_only_what_is_asked_for_is_told_ahead(world: World) -> None:
    step = plan(world, "sums", applied_next=True)
    assert step.circumstances(ahead=True).ahead
    assert not step.circumstances(ahead=False).ahead
    assert not plan(world, "sums").circumstances(ahead=True).ahead


def test_as_many_rows_are_read_as_are_stored_and_changed_on_the_way(world: World) -> None:
    world.pin("t", Part.STATE, rows=5, through=4)
    assert plan(world, "v").sizes == {"t": 6}
    world.pin("v", Part.DELTA, through=4)
    assert plan(world, "v").sizes == {"t": 5}
    world.pin("v", Part.DELTA, through=8)
    assert plan(world, "v").sizes == {"t": 6}


def test_a_summary_is_as_large_as_its_groups_and_their_changes(world: World) -> None:
    world.view("more", SUMMED, *[(k, 1, 1, 1, 1, 2) for k in range(3)], facts=FACTS, mark=3)
    world.pin("more", Part.GROUPS, rows=5)
    world.pin("more", Part.EXTENT, rows=70)
    assert plan(world, "more").sizes == {"t": 1, GROUPS: 8}
    world.pin("more", Part.GROUPS, through=3)
    assert plan(world, "more").sizes[GROUPS] == 5


@pytest.mark.parametrize(
    ("stored", "limit"),
    [
        pytest.param(AT_ONCE_ROWS // 2, AT_ONCE_ROWS, id="small"),
        pytest.param(AT_ONCE_ROWS - 2, AT_ONCE_ROWS, id="just small with its two changes"),
        pytest.param(AT_ONCE_ROWS, FEW_GROUPS, id="small, but not with its changes"),
        (FEW_GROUPS + 1, SMALL_SIDE_ROWS),
        (SMALL_SIDE_ROWS, SMALL_SIDE_ROWS),
        (SMALL_SIDE_ROWS + 1, ONE_TASK_ROWS),
        (ONE_TASK_ROWS, ONE_TASK_ROWS),
        (ONE_TASK_ROWS + 1, sys.maxsize),
    ],
)
def test_circumstances_know_sizes_only_by_their_limits(world: World, stored: int, limit: int) -> None:
    assert AT_ONCE_ROWS < FEW_GROUPS < SMALL_SIDE_ROWS < ONE_TASK_ROWS
    world.pin("t", Part.DELTA, rows=0)
    world.pin("t", Part.STATE, rows=stored)
    assert plan(world, "v").circumstances(ahead=False).sizes == {("t", limit)}


def test_a_recomputation_looks_at_no_keys(world: World) -> None:
    assert plan(world, "v", mode=RefreshMode.RECOMPUTE).mode is Mode.WHOLE


def test_over_a_csn_at_which_nobody_knows_what_changed_a_view_is_recomputed(world: World) -> None:
    world.relations["t"] = replace(world.relations["t"], replaced=(2, 6))
    world.counts.append(ChangeCount("t", 6, 0, 0, None))
    seen = []
    for mark in (0, 1, 2, 5, 6):
        world.pin("v", Part.DELTA, through=mark)
        step = plan(world, "v")
        seen.append((step.interval, step.mode, step.moves, step.absent == {"t"}, step.more))
    assert seen == [
        (Interval(0, 1), Mode.INCREMENTAL, False, True, True),
        (Interval(1, 2), Mode.WHOLE, True, True, True),
        (Interval(2, 5), Mode.INCREMENTAL, True, True, True),
        (Interval(5, 6), Mode.WHOLE, True, True, True),
        (Interval(6, 9), Mode.INCREMENTAL, False, False, False),
    ]
    world.pin("v", Part.DELTA, through=2)
    assert plan(world, "v", 4, mode=RefreshMode.RECOMPUTE).mode is Mode.INCREMENTAL


def test_where_rows_are_asked_for_a_step_ends_where_all_rows_of_every_table_can_be_read(world: World) -> None:
    """Of the last table the view reads changes only, but all rows where another one came anew."""
    world.table("w")
    joined = "SELECT t.k, u.x FROM t JOIN u ON t.k = u.k UNION ALL SELECT k, x FROM w"
    world.view("united", joined, reads=("t", "u", "w"))
    world.relations["w"] = replace(world.relations["w"], replaced=(8,))
    assert plan(world, "united").interval == Interval(0, 7)
    world.relations["t"] = replace(world.relations["t"], replaced=(5,))
    step = plan(world, "united")
    assert (step.interval, step.mode) == (Interval(0, 8), Mode.WHOLE)
    assert plan(world, "united", 8).interval == Interval(0, 8)
    with pytest.raises(OutOfReach, match="came anew at csn 8, and older ones are not here") as refused:
        plan(world, "united", 6)
    assert refused.value.hint == "Refresh it to csn 8 or later."
    # What came anew before is there.
    world.pin("united", Part.DELTA, through=5)
    assert plan(world, "united").interval == Interval(5, 7)


def test_a_step_that_more_follow_tells_nothing_ahead(world: World) -> None:
    world.relations["t"] = replace(world.relations["t"], replaced=(6,))
    step = plan(world, "sums", applied_next=True)
    assert (step.interval, step.more, step.ahead) == (Interval(0, 5), True, False)


def test_what_is_not_kept_is_not_recomputed_from(world: World) -> None:
    world.pin("t", Part.STATE, version=NOT_KEPT)
    step = plan(world, "v")
    assert (step.mode, step.absent) == (Mode.INCREMENTAL, {"t"})
    assert step.reason == "deltas only: no rows of 't' are kept"
    with pytest.raises(UsageError, match="no rows of table 't' are kept"):
        plan(world, "v", mode=RefreshMode.RECOMPUTE)


def test_all_is_read_at_once_where_it_is_small_there_and_the_view_linear(world: World) -> None:
    assert plan(world, "v").at_once
    assert not plan(world, "keyed").at_once
    world.pin("u", Part.STATE, rows=AT_ONCE_ROWS)
    assert plan(world, "both").at_once
    world.pin("u", Part.STATE, rows=AT_ONCE_ROWS + 1)
    assert not plan(world, "both").at_once
    world.relations["t"] = replace(world.relations["t"], replaced=(6,))
    assert plan(world, "v").absent
    assert not plan(world, "v").at_once


def test_a_long_interval_is_several_steps_and_what_is_recomputed_is_one(world: World) -> None:
    world.csn = 60_000
    world.counts = [ChangeCount("t", csn, 1, 0, None) for csn in range(1, 60_001)]
    first = plan(world, "keyed", 60_000)
    assert (first.interval, first.more, first.commits) == (Interval(0, 20_000), True, 20_000)
    world.pin("keyed", Part.DELTA, through=59_000)
    last = plan(world, "keyed", 60_000)
    assert (last.interval, last.more, last.commits) == (Interval(59_000, 60_000), False, 1000)
    whole = plan(world, "v", 60_000, mode=RefreshMode.RECOMPUTE)
    assert (whole.interval, whole.more) == (Interval(0, 60_000), False)


def test_a_step_does_not_end_inside_a_coarse_stretch_of_what_it_reads(world: World) -> None:
    world.csn = 60_000
    world.counts = [ChangeCount("t", csn, 1, 0, None) for csn in range(1, 60_001)]
    world.view("lower", "SELECT k, x FROM t", mark=60_000)
    world.relations["lower"] = replace(
        world.relations["lower"], coarse=(Interval(19_000, 25_000), Interval(24_000, 31_000))
    )
    world.view("upper", "SELECT k, x FROM lower", reads=("lower",))
    assert plan(world, "upper", 60_000).interval == Interval(0, 31_000)
    assert plan(world, "upper", 23_000).interval == Interval(0, 23_000)


def test_commits_of_a_short_interval_are_not_counted(world: World) -> None:
    world.csn = FEWEST_COMMITS + 1
    world.counts = [ChangeCount("t", csn, 1, 0, None) for csn in range(1, world.csn + 1)]
    assert plan(world, "v", FEWEST_COMMITS).commits == 0
    assert plan(world, "v", FEWEST_COMMITS + 1).commits == FEWEST_COMMITS + 1


def test_what_came_anew_outside_of_the_interval_is_not_between_its_changes(world: World) -> None:
    world.relations["t"] = replace(world.relations["t"], replaced=(2, 8))
    world.pin("v", Part.DELTA, through=2)
    step = plan(world, "v")
    assert (step.interval, step.work.csns) == (Interval(2, 7), (3, 5))


def said(world: World, name: str, **properties: str) -> None:
    view = world.relations[name]
    assert view.definition is not None
    named = {f"rollview.{key}": value for key, value in properties.items()}
    world.relations[name] = replace(view, definition=replace(view.definition, properties=named))


def test_a_view_that_merges_its_changes_tells_no_state_ahead(world: World) -> None:
    said(world, "sums", detail="refresh")
    step = plan(world, "sums", applied_next=True)
    assert (step.merged, step.ahead) == (True, False)


@pytest.fixture
def long_way(world: World) -> World:
    """Of ``u``, which ``both`` asks for rows of, nothing is kept."""
    world.csn = 60_000
    world.counts = [ChangeCount("t", csn, 1, 0, None) for csn in range(1, world.csn + 1)]
    world.pin("u", Part.STATE, version=NOT_KEPT)
    return world


@pytest.mark.parametrize(
    ("algorithm", "through"),
    [
        pytest.param("sweep", FIRST_COMMITS, id="asks once for a step"),
        pytest.param("c-strobe", MOST_ASKED, id="asks for each commit"),
        pytest.param("strobe", 60_000, id="waits until nobody commits"),
    ],
)
def test_a_view_that_asks_goes_as_far_as_its_algorithm_holds_the_sources(
    long_way: World, algorithm: str, through: int
) -> None:
    said(long_way, "both", algorithm=algorithm)
    assert plan(long_way, "both", long_way.csn).interval == Interval(0, through)


@pytest.mark.parametrize("algorithm", ["c-strobe", "strobe"])
def test_a_view_whose_rows_are_all_here_asks_nobody(long_way: World, algorithm: str) -> None:
    long_way.pin("u", Part.STATE, version=0)
    said(long_way, "both", algorithm=algorithm)
    assert plan(long_way, "both", long_way.csn).interval == Interval(0, FIRST_COMMITS)


def test_a_recomputation_asks_for_all_rows_that_are_not_here_where_it_ends(world: World) -> None:
    """Of the view's own table no row is kept; of another one rows are there from the csn on at which they came anew."""
    for name in ("kept", "anew"):
        world.table(name)
    joined = "SELECT t.k, u.x FROM t JOIN u ON t.k = u.k JOIN kept ON t.k = kept.k"
    world.view("three", f"{joined} UNION ALL SELECT k, x FROM anew", reads=("t", "u", "kept", "anew"))
    world.pin("u", Part.STATE, version=NOT_KEPT)
    for name, csn in (("t", 4), ("anew", 6)):
        world.relations[name] = replace(world.relations[name], replaced=(csn,))
    step = plan(world, "three")
    assert (step.mode, step.interval, step.asked) == (Mode.WHOLE, Interval(0, 6), {"u"})


def test_where_one_table_came_anew_rows_of_another_that_came_anew_later_are_asked_for(world: World) -> None:
    world.view("either", "SELECT k, x FROM t UNION ALL SELECT k, x FROM u", reads=("t", "u"), mark=4)
    for name, csn in (("t", 5), ("u", 8)):
        world.relations[name] = replace(world.relations[name], replaced=(csn,))
    step = plan(world, "either")
    assert (step.mode, step.interval, step.asked) == (Mode.WHOLE, Interval(4, 5), {"u"})
