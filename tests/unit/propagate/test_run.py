"""What a step of propagation records besides rows: its terms, and the stretches of csns that became one change."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.propagate.test_closed import PAIR, family
from tests.unit.propagate.world import World

from rollview.algebra.script import Motion
from rollview.algebra.view import Mode
from rollview.catalog import Part
from rollview.core.interval import Interval
from rollview.engine.meter import Meter, Usage
from rollview.propagate import run
from rollview.propagate.choice import RefreshWork
from rollview.propagate.plan import Box, PropagateStep
from rollview.propagate.run import _coarse, _terms, closed_in
from rollview.relations.plans import plan_of
from rollview.relations.reader import stored_as
from rollview.relations.shared import SHARES

Csns = tuple[int, int] | None


@pytest.fixture
def reader(tmp_path: Path) -> Any:
    world = World(tmp_path, 9)
    world.table("t")
    world.relations["t"] = replace(world.relations["t"], coarse=(Interval(0, 2), Interval(5, 7)))
    world.view("v", "SELECT k, x FROM t")
    world.view("pairs", "SELECT a.k, b.x FROM t AS a JOIN t AS b ON a.k = b.k")
    snapshot = world.snapshot
    return SimpleNamespace(snapshot=snapshot, plan=lambda name: plan_of(snapshot, snapshot.get(name)))


def step(mode: Mode, csns: Csns, view: str = "v", *, moves: bool = True) -> PropagateStep:
    motion = {"t": Motion(changed=moves)}
    return PropagateStep(view, Interval(3, 9), mode, motion, {}, RefreshWork(1, 1, csns), "")


@pytest.mark.parametrize(
    ("mode", "csns", "own"),
    [
        (Mode.WHOLE, (4, 6), [Interval(3, 6)]),
        (Mode.WHOLE, (4, 4), []),
        (Mode.WHOLE, None, []),
        (Mode.INCREMENTAL, (4, 6), []),
    ],
)
def test_a_recomputation_makes_its_csns_one_and_what_is_read_keeps_its_own(
    reader: Any, mode: Mode, csns: Csns, own: list[Interval]
) -> None:
    assert list(_coarse(reader, step(mode, csns))) == [Interval(5, 7), *own]


def test_changes_that_become_one_make_their_csns_one(reader: Any) -> None:
    merged = replace(step(Mode.INCREMENTAL, (4, 6)), merged=True)
    assert list(_coarse(reader, merged)) == [Interval(5, 7), Interval(3, 6)]


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A reader of views ``v`` and ``copy``, which shares the delta of the other, while nothing is recorded."""
    world = World(tmp_path, 9)
    world.table("t")
    world.view("v", "SELECT k, x FROM t", mark=9)
    world.view("copy", "SELECT k, x FROM v", reads=("v",), facts={SHARES: True})
    snapshot = world.snapshot
    running = SimpleNamespace(begun=lambda: None, log=lambda *_: ("version",))
    monkeypatch.setattr(run, "recorded", lambda *_: nullcontext(running))
    reader = SimpleNamespace(
        root=world.root,
        snapshot=snapshot,
        stored=lambda name: stored_as(world.root, snapshot.get(name), None),
        plan=lambda _: None,
        metered=lambda _: reader,
        seen_by=lambda _: reader,
        over=lambda _: reader,
    )
    return reader


def profile(reader: Any, view: str, meter: Meter) -> Any:
    unused: Any = None
    computed = run.compute_propagate(reader, unused, unused, step(Mode.WHOLE, (4, 6), view), meter)
    assert computed.done.added == 0
    opened = run._log(computed, replace(reader.snapshot.get(view).pins[Part.DELTA], through=3))
    assert [shown.through for shown in opened.shown] == [9]
    return opened.profile


def test_a_view_that_shares_anothers_delta_only_moves_its_mark(copied: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    computed = list[str]()
    monkeypatch.setattr(run, "_computed", lambda _, step, *rest: (computed.append(step.view), ((), None))[1])
    for name in ("v", "copy"):
        profile(copied, name, Meter())
    assert computed == ["v"]


def test_where_nothing_moved_nothing_is_computed(copied: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    computed = list[str]()
    monkeypatch.setattr(run, "_computed", lambda _, step, *rest: (computed.append(step.view), ((), None))[1])
    unused: Any = None
    still = step(Mode.INCREMENTAL, None, moves=False)
    assert run.compute_propagate(copied, unused, unused, still, Meter()).files == ()
    assert computed == []


def test_a_step_records_what_it_has_cost_itself(copied: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not what the steps before it in the same refresh have."""

    def costs(reader: Any, step: Any, closed: Any, where: Any, meter: Meter, running: Any) -> Any:
        meter.add(run.LABEL, Usage(actions=1, seconds=2.0))
        meter.add("stage", Usage(actions=1, seconds=0.5))
        return (), None

    monkeypatch.setattr(run, "_computed", costs)
    meter = Meter()
    for _ in range(3):
        told = profile(copied, "v", meter)
        assert (told["actions"], told["seconds"]) == (2, 2.5)
    assert meter.total() == Usage(actions=6, seconds=7.5)


def test_terms_are_those_of_the_deltas_that_moved(reader: Any) -> None:
    assert len(_terms(reader, step(Mode.INCREMENTAL, (4, 6), "pairs"))) == 2
    assert not _terms(reader, step(Mode.INCREMENTAL, None, "pairs", moves=False))
    assert not _terms(reader, step(Mode.WHOLE, (4, 6), "pairs"))


def test_keys_are_looked_at_where_deltas_of_a_child_and_its_parent_are_joined(tmp_path: Path) -> None:
    world = family(tmp_path, [(1, 0, 1, 4)], [(7, 1, 1, 4)])
    reader: Any = SimpleNamespace(snapshot=world.snapshot, root=world.root)
    moved = replace(step(Mode.INCREMENTAL, None), motion={"p": Motion(), "c": Motion()}, rows={"p": 1, "c": 1})
    assert closed_in(reader, moved) == PAIR
    assert not closed_in(reader, replace(moved, mode=Mode.WHOLE))
    assert not closed_in(reader, replace(moved, motion=dict.fromkeys("pc", Motion(changed=False))))
    # the tables of a box are read over intervals of their own
    box = Box("c", {"c": moved.interval, "p": moved.interval})
    assert not closed_in(reader, replace(moved, box=box))
    # where all is read at once, nothing is gained by them
    assert not closed_in(reader, replace(moved, sizes={"p": 1, "c": 1}, is_linear=True))
