"""What a turn of the daemon publishes, and of which views it consists."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.propagate.world import World

from rollview.catalog import Part, Step
from rollview.core.interval import Interval
from rollview.core.order import Order
from rollview.core.states import SourceState, ViewState
from rollview.errors import EngineFailed
from rollview.relations.cadence import every
from rollview.results import Refreshed
from rollview.schedule.crew import GROUP, Crew, OwnPropagation
from rollview.schedule.due import Turns
from rollview.schedule.refresh import _reached
from rollview.schedule.view_steps import Refresh

QUERY = "SELECT k, x FROM t"
NO_STEPS: Any = {"steps": lambda *_: (), "last_step": lambda *_: None}


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path, 100)
    world.table("t")
    world.view("a", QUERY, mark=100)
    world.view("b", QUERY, mark=70)
    world.view("c", "SELECT k, x FROM b", mark=60, reads=("b",))
    return world


def reached(world: World, *names: str, failed: tuple[str, ...] = ()) -> int:
    catalog: Any = SimpleNamespace(snapshot=lambda: world.snapshot)
    spark: Any = None
    work = Refresh(spark, world.root, catalog, lambda progress: None)
    work.failures = {name: EngineFailed("no") for name in failed}
    return _reached(work, world.snapshot, names, 100)


def test_views_of_a_group_go_as_far_as_the_last_of_them(world: World) -> None:
    assert reached(world, "a") == 100
    assert reached(world, "a", "b", "c") == 60


def test_a_view_that_failed_or_reads_one_that_did_keeps_nobody_back(world: World) -> None:
    assert reached(world, "a", "b", failed=("b",)) == 100
    assert reached(world, "a", "c", failed=("b",)) == 100


def test_nothing_is_published_inside_a_coarse_stretch(world: World) -> None:
    world.relations["b"] = replace(world.relations["b"], coarse=(Interval(50, 90), Interval(40, 60)))
    assert reached(world, "b") == 40


def test_a_view_that_is_stopped_leaves_its_group(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        view = world.relations[name]
        assert view.definition is not None
        definition = replace(view.definition, properties={GROUP: "g"})
        world.relations[name] = replace(view, definition=definition)
    catalog: Any = SimpleNamespace(snapshot=lambda: world.snapshot, **NO_STEPS)
    refresh: Any = None
    crew = Crew(catalog, world.root, Order(), refresh, lambda going: None, refresh, None, 1.0)
    monkeypatch.setattr(type(crew._turns), "views", lambda turns, besides=(): ("a",))
    assert crew.due_views() == [("a", "b")]
    world.relations["b"] = replace(world.relations["b"], state=ViewState.SCHEMA_CHANGED)
    assert crew.due_views() == [("a",)]


def test_a_group_that_waits_for_one_of_its_views_has_its_turn_next(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or views that are propagated often would never be published together."""
    for name in ("a", "b"):
        view = world.relations[name]
        assert view.definition is not None
        world.relations[name] = replace(view, definition=replace(view.definition, properties={GROUP: "g"}))
    ran: list[tuple[str, tuple[str, ...]]] = []

    def run(what: str) -> Any:
        def runs(names: tuple[str, ...], seconds: float | None, due: Any) -> Refreshed:
            ran.append((what, names))
            return Refreshed(100, ())

        return runs

    catalog: Any = SimpleNamespace(snapshot=lambda: world.snapshot, **NO_STEPS)
    deliver: Any = None
    about = (None, 1.0, None, OwnPropagation(run("propagated"), "continuous"))
    crew = Crew(catalog, world.root, Order(), run("refreshed"), lambda going: None, deliver, *about)
    monkeypatch.setattr(Turns, "views", lambda turns, besides=(): ("b",) if besides else ("a", "b"))
    monkeypatch.setattr(Turns, "propagations", lambda turns, besides=(): ("b",))
    monkeypatch.setattr(Turns, "due_tables", lambda turns: None)
    assert crew.due_views({"a"}) == []
    assert crew.due_views() == [("a", "b")]
    for names in (("a",), ("a", "b")):
        crew.refresh(names)
    assert ran == [("propagated", ("a",)), ("refreshed", ("a", "b"))]


def test_whoever_is_furthest_behind_has_the_first_turn(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or a daemon that is killed again and again would see only to the first of them."""
    catalog: Any = SimpleNamespace(snapshot=lambda: world.snapshot, **NO_STEPS)
    refresh: Any = None
    crew = Crew(catalog, world.root, Order(), refresh, lambda going: None, refresh, None, 1.0)
    monkeypatch.setattr(type(crew._turns), "views", lambda turns, besides=(): ("a", "b", "c"))
    assert crew.due_views() == [("c",), ("b",), ("a",)]


def test_a_view_whose_steps_are_cut_off_lets_the_others_go_first(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or one that needs longer than any process lives would keep all of them where they are."""
    now = datetime.now(UTC)
    undone = Step(1, "b", "propagate", Interval(70, 90), "undone", now, now, "another", (), {})
    tries = {"a": 0, "b": 2, "c": 1}

    def steps(name: str, limit: int) -> tuple[Step, ...]:
        return (undone,) * tries[name]

    catalog: Any = SimpleNamespace(snapshot=lambda: world.snapshot, steps=steps, last_step=lambda *_: None)
    refresh: Any = lambda names, seconds, due: Refreshed(100, ())  # noqa: E731
    about = (Order(), refresh, lambda going: None, refresh, None, 1.0)
    monkeypatch.setattr(Turns, "views", lambda turns, besides=(): ("a", "b", "c"))
    assert Crew(catalog, world.root, *about).due_views() == [("a",), ("c",), ("b",)], "'c' reads 'b'"
    tries["a"] = 3
    crew = Crew(catalog, world.root, *about)
    assert crew.due_views() == [("c",), ("b",), ("a",)]
    crew._seen_to.add("a")
    assert crew.due_views() == [("a",), ("c",), ("b",)], "what happened to others counts until its first turn here"
    for names in (("a",), ("c",)):
        crew.refresh(names)
    assert crew.due_views() == [("b",), ("c",), ("a",)], "nobody has a second turn before it"


def test_nothing_is_looked_up_about_views_that_have_their_turn(world: World) -> None:
    """The daemon asks several times a second, and a step may take long."""
    asked: list[Interval] = []
    long_ago = datetime.now(UTC) - timedelta(days=1)

    def oldest_change(tables: Any, interval: Interval) -> datetime:
        asked.append(interval)
        return long_ago

    for name, through in (("a", 90), ("b", 70), ("c", 60)):
        world.pin(name, Part.EXTENT, through=through)
    catalog: Any = SimpleNamespace(snapshot=lambda: world.snapshot, oldest_change=oldest_change, **NO_STEPS)
    refresh: Any = None
    about = ("continuous", 1.0, None, OwnPropagation(refresh, "continuous"))
    crew = Crew(catalog, world.root, Order(), refresh, lambda going: None, refresh, *about)
    assert crew.due_views() == [("c",), ("b",), ("a",)]
    asked.clear()
    assert crew.due_views({"b", "c"}) == [("a",)]
    assert {interval.after for interval in asked} == {90}
    asked.clear()
    assert crew.due_views({"a", "b", "c"}) == ()
    assert asked == []


def test_the_first_turn_of_each_view_is_one_step(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        world.relations[name].pins[Part.EXTENT] = world.relations[name].pins[Part.DELTA]  # type: ignore[index]
    catalog: Any = SimpleNamespace(snapshot=lambda: world.snapshot)
    asked: list[tuple[tuple[str, ...], float | None]] = []

    def refresh(names: Any, seconds: float | None, due: Any) -> Any:
        asked.append((names, seconds))
        return Refreshed(100, ())

    deliver: Any = None
    crew = Crew(catalog, world.root, Order(), refresh, lambda going: None, deliver, None, 1.0)
    monkeypatch.setattr(type(crew._turns), "views", lambda turns, besides=(): ("a", "b"))
    for names in (("a",), ("b",), ("a",), ("b",)):
        crew.refresh(names)
    assert [seconds for _, seconds in asked] == [0.0, 0.0, 5.0, 5.0]


def test_a_view_whose_source_cannot_be_asked_waits_as_after_a_failure(world: World) -> None:
    """Or the daemon would ask again and again, without a pause."""
    long_ago = datetime.now(UTC) - timedelta(days=1)
    catalog: Any = SimpleNamespace(
        snapshot=lambda: world.snapshot, oldest_change=lambda *_: long_ago, last_step=lambda *_: None
    )
    for name, through in (("a", 100), ("b", 70), ("c", 60)):
        world.pin(name, Part.EXTENT, through=through)
    lagging, goes_on_to = ["b"], 60

    def refresh(names: Any, seconds: float | None, due: Any) -> Refreshed:
        world.pin("c", Part.EXTENT, through=goes_on_to)
        return Refreshed(100, (), tuple(lagging))

    deliver: Any = None
    propagation = OwnPropagation(refresh, "continuous")
    crew = Crew(
        catalog, world.root, Order(), refresh, lambda going: None, deliver, "continuous", 1.0, None, propagation
    )
    turns = crew._turns
    assert set(turns.views()) == {"b", "c"}
    for _ in range(3):
        crew.refresh(("c",))
    assert turns.views() == ("b",), "it reads the one that lags"
    assert turns._failures["c"][0] == 3
    goes_on_to = 65
    crew.refresh(("c",))
    assert turns._failures["c"][0] == 1, "it went on a little"
    assert "c" not in turns.views()
    lagging.clear()
    crew.refresh(("c",))
    assert "c" in turns.views(), "what is only unfinished has its next turn at once"
    lagging.append("b")
    world.pin("c", Part.EXTENT, through=100)
    assert "c" in turns.propagations()
    crew.refresh(("c",))
    assert "c" not in turns.propagations()


def test_a_source_that_takes_long_to_read_is_left_alone_for_a_while() -> None:
    """Or reading the few commits of each moment would leave the views no time."""
    source: Any = SimpleNamespace(name="s", settings={}, state=SourceState.ACTIVE, read=None, health={})
    catalog: Any = SimpleNamespace(sources=lambda: [source])
    turns = Turns(catalog, "continuous", every(1.0))
    assert turns.sources() == ("s",)
    turns.captured(["s"])
    assert turns.sources() == ("s",)
    turns.captured(["s"], timedelta(seconds=0.2))
    assert turns.sources() == ()
    assert 0.7 < (turns._resting["s"] - datetime.now(UTC)).total_seconds() <= 0.8
    turns.captured(["s"], timedelta(hours=1))
    assert (turns._resting["s"] - datetime.now(UTC)).total_seconds() <= 1.0
