"""Which policy a view has, and which are legal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.propagate.world import World

from rollview.catalog import Part
from rollview.core.interval import Interval
from rollview.core.states import Policy
from rollview.errors import UsageError
from rollview.relations.cadence import every
from rollview.relations.plans import reads_rows_of
from rollview.relations.policies import Policies, check_legal, parse_policy
from rollview.relations.shared import SHARES, told_over
from rollview.schedule.due import Turns

QUERY = "SELECT k, x FROM t"


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path, 100)
    world.table("t")
    world.table("u")
    world.view("a", QUERY, mark=50, extent=50)
    world.view("b", "SELECT k, x FROM a", mark=50, extent=50, reads=("a",))
    world.view("c", "SELECT t.k, u.x FROM t JOIN u ON t.k = u.k", mark=50, extent=50, reads=("t", "u"))
    return world


def say(world: World, name: str, **properties: str) -> None:
    view = world.relations[name]
    assert view.definition is not None
    told = {f"rollview.{key}": value for key, value in properties.items()}
    world.relations[name] = replace(view, definition=replace(view.definition, properties=told))


def policies_of(world: World, policies: Policies) -> Mapping[str, str]:
    return {view.name: policies.of(world.snapshot, view).value for view in world.snapshot.views()}


def test_a_view_says_its_policy_else_the_project_by_name_by_tables_or_for_all(world: World) -> None:
    over = ((frozenset({"t"}), Policy.IPDA),)
    policies = Policies(Policy.SNAPSHOT, {"b": Policy.IMMEDIATE}, over)
    assert policies_of(world, Policies()) == {"a": "dpda", "b": "dpda", "c": "dpda"}
    assert policies_of(world, policies) == {"a": "ipda", "b": "immediate", "c": "snapshot"}
    say(world, "a", policy="IMMEDIATE")
    assert policies_of(world, policies)["a"] == "immediate"
    with pytest.raises(UsageError, match="no policy 'daily'"):
        parse_policy("daily")


@pytest.mark.parametrize("policy", Policy)
@pytest.mark.parametrize("below", Policy)
def test_what_is_in_commits_reads_only_what_is(world: World, policy: Policy, below: Policy) -> None:
    say(world, "a", policy=below)
    if policy.in_commits and not below.in_commits:
        with pytest.raises(UsageError, match=f"'b' cannot be {policy}: it reads view 'a', which is {below}") as raised:
            check_legal(world.snapshot, Policies(), "b", policy)
        assert raised.value.hint == "First run: rollview view set a rollview.policy=ipda"
        say(world, "b", policy=policy)
        with pytest.raises(UsageError, match=f"'a' cannot be {below}: view 'b' reads it"):
            check_legal(world.snapshot, Policies(), "a", below)
    else:
        check_legal(world.snapshot, Policies(), "b", policy)
        check_legal(world.snapshot, Policies(), "c", policy)


def test_a_snapshot_view_needs_all_rows_of_what_it_reads(world: World) -> None:
    assert reads_rows_of(world.snapshot, world.relations["a"]) == frozenset()
    say(world, "a", policy="snapshot")
    assert reads_rows_of(world.snapshot, world.relations["a"]) == {"t"}


def turns(world: World, **more: Any) -> Turns:
    long_ago = datetime.now(UTC) - timedelta(days=1)
    catalog: Any = SimpleNamespace(
        snapshot=lambda: world.snapshot, oldest_change=lambda *_: long_ago, last_step=lambda *_: None
    )
    return Turns(catalog, more.pop("words", None), every(1.0), **more)


def test_a_snapshot_has_its_turn_only_where_a_cadence_names_it(world: World) -> None:
    say(world, "a", policy="snapshot")
    assert turns(world).views() == ("c", "b")
    assert turns(world, words="continuous").views() == ("c", "b")
    assert "a" in turns(world, words={"default": "manual", "a": "continuous"}).views()
    say(world, "a", policy="snapshot", schedule="continuous")
    assert "a" in turns(world).views()


def test_propagation_has_a_cadence_of_its_own(world: World) -> None:
    assert turns(world).propagations() == ()
    say(world, "a", propagate="every 10 seconds")
    assert turns(world).propagations() == ("a",)
    world.pin("a", Part.DELTA, through=100)
    assert turns(world).propagations() == ()
    assert turns(world, propagate={"c": "continuous", "b": "manual"}).propagations() == ("c",)
    assert turns(world, propagate="continuous", policies=Policies(Policy.SNAPSHOT)).propagations() == ()


def test_a_propagation_that_failed_waits_longer_each_time_and_alone(world: World) -> None:
    given = turns(world, propagate="continuous")
    assert set(given.propagations()) == {"a", "b", "c"}
    given.propagated(["a"], ["a"])
    assert set(given.propagations()) == {"b", "c"}
    assert "a" in given.views(), "its own turn is another matter"
    given.propagated(["a"])
    assert "a" in given.propagations()


def test_a_copy_is_in_reach_from_where_the_delta_that_it_shares_can_be_read(world: World) -> None:
    world.view("copied", "SELECT k, x FROM a", mark=90, reads=("a",), facts={SHARES: True})
    world.pin("copied", Part.DELTA, after=30)
    assert told_over(world.snapshot, world.relations["copied"]) == Interval(30, 90)
    world.relations["a"] = replace(world.relations["a"], coarse=(Interval(20, 50), Interval(40, 60)))
    assert told_over(world.snapshot, world.relations["copied"]) == Interval(60, 90)
