"""A view gets its next definition at one csn: not before it, not without what that reads, and never passed by."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.propagate.world import KX, World

from rollview.algebra.view import Mode
from rollview.catalog import ChangeCount, Definition, Part
from rollview.catalog.values import DefinitionVersion
from rollview.propagate.adapt import _by_size, _changes_at, _derivation, plan_adapt
from rollview.propagate.derive import AdaptMode, Derivation
from rollview.propagate.plan import plan_propagate
from rollview.propagate.recompute import plan_recompute
from rollview.relations.reader import Reader
from rollview.store.writing import BOUND

CSN = 5
TEXT = Definition("SELECT k, x FROM t WHERE x > 1", (), None, {}, {})


def version(csn: int, *reads: str, anew: bool = True, pending: bool = False) -> DefinitionVersion:
    return DefinitionVersion(csn, TEXT, KX, reads or ("t",), "", datetime.now(UTC), anew=anew, pending=pending)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """v has come to the last csn of its definition; the next one reads a view below too."""
    world = World(tmp_path, 9)
    world.table("t")
    world.view("below", "SELECT k, x FROM t", mark=7)
    world.view("v", "SELECT k, x FROM t", mark=CSN - 1)
    world.view("above", "SELECT k, x FROM v", reads=("v",))
    versions = (version(0), version(CSN, "t", "below", pending=True))
    world.relations["v"] = replace(world.relations["v"], versions=versions, until=CSN)
    return world


@pytest.mark.parametrize(("target", "there"), [(CSN - 1, False), (CSN, True), (9, True)])
def test_the_next_definition_is_taken_where_the_way_to_the_target_leads_over_it(
    world: World, target: int, there: bool
) -> None:
    step = plan_adapt(world.snapshot, "v", target)
    assert (step is not None) is there
    if step is not None:
        assert (step.view, step.at, step.version) == ("v", CSN, world.relations["v"].pending)


def test_a_view_that_is_not_there_yet_goes_on_by_the_definition_that_it_has(world: World) -> None:
    world.pin("v", Part.DELTA, through=CSN - 2)
    assert plan_adapt(world.snapshot, "v", 9) is None
    step = plan_propagate(world.snapshot, world.root, "v", 9, world.changes_of, tuple)
    assert step is not None
    assert (step.interval.through, step.more) == (CSN - 1, True)


@pytest.mark.parametrize(("target", "more"), [(CSN - 1, False), (CSN, True)])
def test_more_follows_only_where_the_target_lies_behind_the_definition(world: World, target: int, more: bool) -> None:
    world.pin("v", Part.DELTA, through=CSN - 2)
    step = plan_propagate(world.snapshot, world.root, "v", target, world.changes_of, tuple)
    assert step is not None
    assert step.more is more


def test_a_view_without_another_definition_stays_as_it_is(world: World) -> None:
    assert plan_adapt(world.snapshot, "below", 9) is None


@pytest.mark.parametrize(("mark", "there"), [(CSN - 1, False), (CSN, True)])
def test_it_waits_for_all_that_the_next_definition_reads(world: World, mark: int, there: bool) -> None:
    world.pin("below", Part.DELTA, through=mark)
    assert (plan_adapt(world.snapshot, "v", 9) is not None) is there


def test_rows_below_change_with_a_definition_that_has_its_own_ones_at_that_csn(world: World) -> None:
    snapshot = world.snapshot
    assert _changes_at(snapshot, "v", CSN)
    assert _changes_at(snapshot, "above", CSN), "a view below it changes"
    assert not _changes_at(snapshot, "v", CSN + 1)
    assert not _changes_at(snapshot, "below", CSN)
    assert not _changes_at(snapshot, "gone", CSN)
    renamed = (version(0), version(CSN, anew=False))
    world.relations["v"] = replace(world.relations["v"], versions=renamed)
    assert not _changes_at(world.snapshot, "above", CSN)


@pytest.mark.parametrize(
    ("changes", "reads", "why"),
    [
        ([(), ("t",)], ("t",), "rows of tables change with it"),
        ([()], ("t", "v"), "a view that it reads gets another definition with it"),
    ],
)
def test_what_is_stored_tells_nothing_where_rows_change_with_the_definition(
    world: World, changes: list[tuple[str, ...]], reads: tuple[str, ...], why: str
) -> None:
    catalog: Any = SimpleNamespace(ledger=lambda _: [SimpleNamespace(changes=some) for some in changes])
    view: Any = SimpleNamespace(at=CSN, depends_on=reads)
    reader = Reader(None, world.root, world.snapshot)  # type: ignore[arg-type]
    found = _derivation(reader, catalog, world.relations["below"], view)
    assert found == Derivation(AdaptMode.RECOMPUTED, why)


def test_a_view_is_computed_anew_up_to_where_all_that_it_reads_has_come(world: World) -> None:
    world.view("both", "SELECT below.k, t.x FROM t JOIN below ON t.k = below.k", reads=("t", "below"), extent=6)
    assert plan_recompute(world.snapshot, "both", 9) == 7
    world.pin("below", Part.DELTA, through=6)
    assert plan_recompute(world.snapshot, "both", 9) is None


@pytest.mark.parametrize(
    ("rows", "mode", "few"),
    [
        (BOUND // 2, AdaptMode.STORED, True),
        (BOUND // 2 + 1, AdaptMode.STORED, False),
        (BOUND // 4, AdaptMode.PARTLY, False),
    ],
)
def test_few_stored_rows_are_read_with_fewer_preparations(
    world: World, monkeypatch: pytest.MonkeyPatch, rows: int, mode: AdaptMode, few: bool
) -> None:
    monkeypatch.setattr("rollview.propagate.adapt.for_few_rows", lambda spark: "for few rows")
    world.pin("v", Part.EXTENT, rows=rows)
    reader = Reader(None, world.root, world.snapshot)  # type: ignore[arg-type]
    chosen = _by_size(reader, world.relations["v"], Derivation(mode, ""))
    assert (chosen.spark == "for few rows") is few  # type: ignore[comparison-overlap]


def test_a_view_that_is_recomputed_whole_goes_in_one_step_and_is_not_linear(world: World) -> None:
    world.csn = 60_000
    world.counts = [ChangeCount("t", csn, 1, 0, None) for csn in range(1, world.csn + 1)]
    world.view("first", "SELECT k, x FROM t ORDER BY k, x LIMIT 3")
    step = plan_propagate(world.snapshot, world.root, "first", world.csn, world.changes_of, tuple)
    assert step is not None
    assert (step.mode, step.interval.through, step.is_linear, step.at_once) == (Mode.WHOLE, world.csn, False, False)
