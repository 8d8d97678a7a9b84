"""One estimate in seconds, from what the catalog and the lists of files say, and from the view's own history."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.unit.propagate.world import World

from rollview.catalog import NOT_KEPT, ChangeCount, Part, Relation, Snapshot, Step
from rollview.core.interval import Csn, Interval
from rollview.costs.reading import Costs, WayToRead
from rollview.costs.refreshing import RefreshWork, refresh_seconds
from rollview.costs.sizes import RowsToRead, size_at
from rollview.costs.work import JOB_SECONDS, Machine, Work, machine_of
from rollview.errors import OutOfReach
from rollview.propagate.plan import plan_propagate
from rollview.relations.shared import SHARES

TIMED = ((1, 1, 1, 3), (1, 2, 1, 5), (2, 2, 1, 5))


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path, 9)
    world.table("t", *TIMED)
    world.counts = [ChangeCount("t", 3, 1, 0, None), ChangeCount("t", 5, 2, 0, None)]
    world.view("v", "SELECT k, x FROM t", *TIMED, mark=5)
    return world


def step(kind: Any = "propagate", mode: str = "incremental", **profile: float) -> Step:
    now = datetime.now(UTC)
    return Step(1, "v", kind, Interval(0, 1), "done", now, now, "me", (), {"mode": mode, **profile})


CREATED = step("create", seconds=2.0, read_rows=100, actions=1)
REFRESHED = step(seconds=0.5, delta_rows_read=10, read_rows=100, actions=2)


def test_a_view_that_shares_a_delta_is_as_far_from_a_csn_as_that_delta_says(world: World) -> None:
    world.view("copy", "SELECT k, x FROM v", reads=("v",), mark=5)
    copy = world.relations["copy"]
    definition = copy.definition
    assert definition is not None
    world.relations["copy"] = replace(copy, definition=replace(definition, facts={SHARES: True}))
    assert size_at(world.snapshot, world.root, world.relations["copy"], 5).changes == 3
    assert size_at(world.snapshot, world.root, world.relations["copy"], 3).changes == 1


def test_a_refresh_expects_what_routing_expects(world: World) -> None:
    world.pin("v", Part.DELTA, through=0)
    past = (REFRESHED, CREATED)
    planned = plan_propagate(world.snapshot, world.root, "v", 9, world.changes_of, lambda: past)
    costs = Costs(world.snapshot, world.root, world.changes_of, lambda name: past)
    assert planned is not None
    assert planned.expected_seconds == costs.refreshing("v", 9).by_deltas == 0.5


def test_history_comes_first_and_grows_with_the_rows() -> None:
    more = RefreshWork(delta_rows=20, read_rows=300, csns=(1, 1))
    known = refresh_seconds(more, (REFRESHED, CREATED))
    assert (known.by_deltas, known.recomputed, known.is_known) == (1.0, 6.0, True)
    guessed = refresh_seconds(more, (CREATED,))
    assert guessed.by_deltas == pytest.approx(4 * 6.0 * 20 / 300)
    assert not refresh_seconds(more, ()).is_known


def test_more_changes_cost_what_they_are_more_and_not_the_jobs_again() -> None:
    created = step("create", seconds=2.0, read_rows=2_000_000, actions=1)
    few = step(seconds=0.3, delta_rows_read=400, read_rows=2_000_000, actions=2)
    more = RefreshWork(delta_rows=4_400, read_rows=2_000_000, csns=(1, 1))
    assert refresh_seconds(more, (few, created)).by_deltas == pytest.approx(0.3 + 4_000 * 4 * 1e-6)
    # What many changes took tells what each of them takes.
    many = step(seconds=1.1, delta_rows_read=8_400, read_rows=2_000_000, actions=2)
    assert refresh_seconds(more, (few, many, created)).by_deltas == pytest.approx(0.3 + 4_000 * 1e-4)


def test_where_nothing_changed_nothing_is_expected() -> None:
    assert refresh_seconds(RefreshWork(0, 300, None), (REFRESHED, CREATED)).by_deltas == 0


def test_a_job_costs_what_the_quickest_on_few_rows_cost_here() -> None:
    much = step(seconds=0.001, delta_rows_read=100_000, read_rows=100, actions=1)
    assert machine_of((REFRESHED, much, CREATED)).job_seconds == 0.25
    assert machine_of(()).job_seconds == JOB_SECONDS


def test_every_part_of_the_work_costs() -> None:
    one = Machine()
    parts = (Work(rows=1), Work(changes=1), Work(files=1), Work(relations=1), Work(jobs=1))
    assert all(one.seconds(part) > 0 for part in parts)
    assert one.seconds(Work(1, 1, 1, 1, 1)) == pytest.approx(sum(map(one.seconds, parts)))


def sized(snapshot: Snapshot, root: Path, relation: Relation, at: Csn) -> RowsToRead:
    """No rows were written here, so no list of files has them."""
    if not relation.is_kept:
        raise OutOfReach(f"no rows of {relation.name}")
    return size_at(snapshot, root, relation, at)


def test_a_view_past_its_mark_is_brought_up_or_computed_anew(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rollview.costs.reading.shown_size", sized)
    world.counts.append(ChangeCount("t", 8, 1, 0, None))

    def ways(*past: Step) -> list[WayToRead]:
        found = Costs(world.snapshot, world.root, world.changes_of, lambda name: past).ways("v", 9)
        return [one.way for one in sorted(found, key=lambda one: one.seconds)]

    assert ways(REFRESHED, CREATED) == [WayToRead.WITH_RESIDUAL, WayToRead.RECOMPUTED]
    assert ways(step(seconds=9.0, delta_rows_read=1, read_rows=100), CREATED)[0] is WayToRead.RECOMPUTED
    world.pin("t", Part.STATE, version=NOT_KEPT)
    with pytest.raises(OutOfReach, match="cannot be brought to csn 9"):
        ways()
    world.counts.pop()
    assert ways() == [WayToRead.WITH_DELTA]
