"""What steps say that they joined: counted by their signs, it covers each combination of rows up to the mark once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from random import Random

import pytest
from tests.drawings import counted
from tests.unit.propagate.test_conversation import COLUMNS, Named, joined
from tests.unit.propagate.test_queries import Moving, Row, moving
from tests.unit.propagate.world import World

from rollview.algebra.natural_join import NaturalJoin
from rollview.algebra.view import Mode
from rollview.catalog import ChangeCount, Part, PlaceInDelta
from rollview.compensate.pacing import IntervalWidth, propagate_to, roll_to
from rollview.compensate.rolling import Rolling
from rollview.core.interval import Interval
from rollview.propagate.boxes import plan_box
from rollview.propagate.joined import joined_by
from rollview.propagate.plan import PropagateStep, plan_propagate
from rollview.propagate.queries import QueryRun
from rollview.relations import joined as told
from rollview.relations.joined import JOINED, JoinedQueries, JoinedQuery, joined_in
from rollview.relations.rolling import places_of

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


def check_tiles(queries: Sequence[JoinedQuery], begin: int, mark: int, tables: int = 2) -> None:
    """One square: what was there first at ``begin``, all else up to the mark once."""
    for point in product(range(begin, mark + 1), repeat=tables):
        assert counted(queries, point) == (max(point) > begin), point


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path, 12)
    world.table("t")
    world.table("u")
    world.view("v", "SELECT t.k, u.x FROM t JOIN u ON t.k = u.k", reads=("t", "u"), mark=2)
    return world


def taken(world: World, step: PropagateStep) -> tuple[JoinedQuery, ...]:
    """What it joined, as its profile gives it back; the view is where it ends then."""
    world.pin("v", Part.DELTA, through=step.interval.through)
    places = {table: PlaceInDelta(csn, NOON) for table, csn in step.places.items()}
    world.relations["v"] = replace(world.relations["v"], places=places)
    profile = json.loads(json.dumps({JOINED: joined_by(step, ("t", "u")).to_json()}))
    found = joined_in(profile)
    assert found is not None
    assert (found.tables, found.more) == (("t", "u"), 0)
    return found.queries


@pytest.mark.parametrize("seed", range(8))
def test_boxes_and_steps_of_all_tables_tile_the_square(world: World, seed: int) -> None:
    chance = Random(seed)
    world.counts = [ChangeCount(chance.choice("tu"), csn, 1, 0, None) for csn in range(3, 13) if chance.random() < 0.7]
    queries: list[JoinedQuery] = []
    while True:
        snapshot, target = world.snapshot, chance.randint(3, 12)
        places = places_of(snapshot, snapshot.get("v"))
        if set(places.values()) == {12}:
            break
        if len(set(places.values())) == 1 and chance.random() < 0.4:
            step = plan_propagate(snapshot, world.root, "v", target, world.changes_of, tuple)
        else:
            due = chance.choice([("t",), ("u",), ("t", "u")])
            step = plan_box(snapshot, world.root, "v", target, world.changes_of, tuple, due)
        if step is not None:
            queries += taken(world, step)
            mark = step.interval.through
            check_tiles(queries, 2, mark)
    assert mark == 12
    for one in queries:
        ((table, over),) = (
            (table, part) for table, part in zip("tu", one.parts, strict=True) if isinstance(part, Interval)
        )
        assert one.executed == bool(world.changes_of(table, over))


def test_what_had_not_changed_is_said_to_have_joined_nothing(world: World) -> None:
    world.counts = [ChangeCount("t", csn, 1, 0, None) for csn in (4, 7)]
    step = plan_propagate(world.snapshot, world.root, "v", 9, world.changes_of, tuple)
    assert step is not None
    assert taken(world, step) == (
        JoinedQuery(1, (Interval(2, 9), 9)),
        JoinedQuery(1, (2, Interval(2, 9)), executed=False),
    )


def test_a_recomputation_is_the_view_at_the_end_without_the_view_at_the_beginning(world: World) -> None:
    world.counts = [ChangeCount("t", 4, 1, 0, None)]
    step = plan_propagate(world.snapshot, world.root, "v", 9, world.changes_of, tuple)
    assert step is not None
    queries = taken(world, replace(step, mode=Mode.WHOLE))
    assert queries == (JoinedQuery(1, (9, 9)), JoinedQuery(-1, (2, 2)))
    check_tiles(queries, 2, 9)


@pytest.mark.parametrize("rolls", [False, True])
def test_queries_on_tables_as_they_are_count_what_changed_once(rolls: bool) -> None:
    begin, goal = 2, 7
    for seed in range(3):
        tables, join = moving(seed, 14, goal), joined({"a": "x", "b": "y", "c": "y"})
        run = QueryRun(join, {name: Named(name, "x") for name in COLUMNS}, tables)  # type: ignore[arg-type, type-var]
        if rolls:
            roll_to(run, Rolling(3, run.execute, begin=begin), goal, [IntervalWidth(12, csns=2) for _ in range(3)])
        else:
            propagate_to(run, 3, Interval(begin, goal), IntervalWidth(12, csns=2))
        found = run.joined()
        # What gives no rows need not be executed.
        changed = [selected_csns(join, name, tables, goal) for name in found.tables]
        for point in product(*({max(begin, csn) for csn in csns} for csns in changed)):
            assert counted(found.queries, point) == (max(point) > begin), (seed, point)
        assert {one.sign for one in found.queries} == {1, -1}


def selected_csns(join: NaturalJoin, name: str, tables: Moving, last: int) -> set[int]:
    """At which the view's rows of a table changed."""
    (table,) = (one for one in join.tables.values() if one.relation == name)
    net = Counter[tuple[int, Row]]()
    for csn, row, count in tables.changes[name]:
        if table.selects(dict(zip(COLUMNS[name], row, strict=True))):
            net[csn, tuple(dict(zip(COLUMNS[name], row, strict=True))[c] for c in table.columns)] += count
    return {csn for (csn, _), count in net.items() if count and csn <= last}


def test_of_many_queries_the_first_are_told_and_the_others_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(told, "_MOST", 3)
    queries = tuple(JoinedQuery(1, (Interval(csn, csn + 1),)) for csn in range(5))
    found = joined_in({JOINED: JoinedQueries(("t",), queries).to_json()})
    assert found == JoinedQueries(("t",), queries[:3], 2)
    assert joined_in({"mode": "incremental"}) is None


def test_a_query_is_told_in_words() -> None:
    names = ("orders", "customers")
    assert JoinedQuery(1, (Interval(2, 9), 3)).told(names) == "+ orders (2, 9] ⋈ customers at 3"
    assert JoinedQuery(-1, (9, Interval(0, 1)), executed=False).told(names) == (
        "− orders at 9 ⋈ customers (0, 1]: no changes"
    )
