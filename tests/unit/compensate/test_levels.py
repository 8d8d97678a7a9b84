"""Every algorithm on random schedules reaches what it promises, and no more where the papers say so.

``ROLLVIEW_SCHEDULES`` in the environment runs more of them.
"""

from __future__ import annotations

import os
from random import Random

import pytest

from rollview.compensate.algorithms import ALGORITHMS
from rollview.compensate.c_strobe import CStrobe
from rollview.compensate.eca import Eca
from rollview.compensate.maintainer import Maintainer, Requirement
from rollview.consistency.bags import bag
from rollview.consistency.history import HistoryUnit, Update
from rollview.consistency.join_view import JoinView, Occurrence
from rollview.consistency.judge import judge
from rollview.consistency.levels import Level
from rollview.lab.simulator import Channels, Simulation
from rollview.lab.spectrum import STATED, measure_cell, run_schedule
from rollview.lab.variants import TRIALS, Trial, measure_trial
from rollview.lab.worlds import Scenario, World, make_world

SCHEDULES = int(os.environ.get("ROLLVIEW_SCHEDULES", "60"))
SOUND = [
    (name, scenario, level)
    for name, scenario, level in [
        ("eca", Scenario.ONE_SOURCE, Level.STRONG),
        ("strobe", Scenario.SINGLE, Level.STRONG),
        ("strobe", Scenario.GLOBAL, Level.CONVERGENT),
        ("t-strobe", Scenario.LOCAL, Level.STRONG),
        ("t-strobe", Scenario.GLOBAL, Level.WEAK),
        ("g-strobe", Scenario.GLOBAL, Level.STRONG),
        ("c-strobe", Scenario.SINGLE, Level.COMPLETE),
        ("c-strobe", Scenario.LOCAL, Level.CONVERGENT),
        ("c-tstrobe", Scenario.LOCAL, Level.COMPLETE),
        ("c-tstrobe", Scenario.GLOBAL, Level.WEAK),
        ("sweep", Scenario.GLOBAL, Level.COMPLETE),
        *((name, Scenario.CENTRALIZED, Level.COMPLETE) for name in ALGORITHMS),
    ]
]


@pytest.mark.parametrize(("name", "scenario", "level"), SOUND)
def test_a_cell_of_the_map(name: str, scenario: Scenario, level: Level) -> None:
    """Not one schedule is worse; and some is no better, which the lab's map would show otherwise."""
    found = measure_cell(name, scenario, range(SCHEDULES))
    assert found.level is level
    assert found.schedules == SCHEDULES


def test_what_is_stated_is_measured() -> None:
    assert {(name, scenario): level for name, scenario, level in SOUND if (name, scenario) in STATED} == {
        cell: level for cell, level in STATED.items() if cell != ("strobe", Scenario.LOCAL)
    }
    assert measure_cell("strobe", Scenario.LOCAL, range(SCHEDULES)).level is Level.CONVERGENT


@pytest.mark.parametrize("scenario", [Scenario.ONE_SOURCE, Scenario.SINGLE, Scenario.LOCAL, Scenario.GLOBAL])
def test_conventional_maintenance_diverges(scenario: Scenario) -> None:
    assert measure_cell("conventional", scenario, range(SCHEDULES)).level is Level.NONE


@pytest.mark.parametrize("scenario", [Scenario.SINGLE, Scenario.LOCAL, Scenario.GLOBAL])
def test_eca_diverges_over_several_sources(scenario: Scenario) -> None:
    assert measure_cell("eca", scenario, range(SCHEDULES)).level is Level.NONE


@pytest.mark.parametrize("trial", TRIALS, ids=lambda trial: trial.name)
def test_a_variant(trial: Trial) -> None:
    found = measure_trial(trial, 300 if trial.expected <= Level.CONVERGENT else SCHEDULES)
    assert found.level is trial.expected


@pytest.mark.parametrize("name", [name for name in ALGORITHMS if name != "conventional"])
def test_claims_are_true(name: str) -> None:
    """What a publication says it reflects is what it shows."""
    scenario = Scenario.ONE_SOURCE if name == "eca" else Scenario.SINGLE
    for schedule in range(SCHEDULES):
        told = run_schedule(name, scenario, schedule).history()
        assert all(version.through is not None for version in told.versions)
        assert judge(told).level >= ALGORITHMS[name](told.view).promises


def _run(world: World, maintainer: Maintainer, random: Random, channels: Channels | None = None) -> Level:
    done = Simulation(world.view, world.initial, world.transactions, maintainer, channels)
    done.run(random)
    return judge(done.history(), believe=False).level


def _unkeyed(world: World) -> World:
    view = JoinView(world.view.occurrences, ("v1", f"v{len(world.view.occurrences) + 1}"))
    return World(view, world.initial, world.transactions)


def test_bags_without_keys() -> None:
    """ECA and sweep count duplicates; nothing of the view tells rows apart."""
    for schedule in range(SCHEDULES):
        random = Random(schedule)
        world = _unkeyed(make_world(random, Scenario.ONE_SOURCE))
        assert _run(world, Eca(world.view), Random(schedule)) >= Level.STRONG
        world = _unkeyed(make_world(Random(schedule), Scenario.GLOBAL))
        assert _run(world, ALGORITHMS["sweep"](world.view), Random(schedule)) is Level.COMPLETE


def _self_join(random: Random) -> World:
    """A table that occurs twice: rows and those that they point at."""
    columns = [("k1", "v1", "v2"), ("k2", "v2", "v3")]
    occurrences = tuple(Occurrence(f"o{i}", names, (names[0],), "x", "t") for i, names in enumerate(columns))
    rows = {key: (key, random.randrange(2), random.randrange(2)) for key in range(3) if random.random() < 0.7}
    initial, transactions = {"t": bag(rows.values())}, []
    for _ in range(4):
        key = random.randrange(3)
        if key in rows:
            update = Update("t", rows.pop(key), -1)
        else:
            rows[key] = (key, random.randrange(2), random.randrange(2))
            update = Update("t", rows[key], 1)
        transactions.append((HistoryUnit("x", (update,)),))
    return World(JoinView(occurrences, ("k1", "k2", "v1")), initial, tuple(transactions))


@pytest.mark.parametrize("name", [name for name in ALGORITHMS if name != "conventional"])
def test_a_table_may_occur_twice(name: str) -> None:
    for schedule in range(SCHEDULES):
        world = _self_join(Random(schedule))
        maintainer = ALGORITHMS[name](world.view)
        assert _run(world, maintainer, Random(schedule)) >= maintainer.promises


def test_compensating_queries_may_be_asked_one_by_one() -> None:
    for schedule in range(SCHEDULES):
        world = make_world(Random(schedule), Scenario.SINGLE, tables=4, transactions=5)
        assert _run(world, CStrobe(world.view, grouped=False), Random(schedule)) is Level.COMPLETE


@pytest.mark.parametrize("name", ["strobe", "t-strobe", "g-strobe"])
def test_keys_of_deleted_rows_are_enough(name: str) -> None:
    """The log of some sources has no more."""
    for schedule in range(SCHEDULES):
        world = make_world(Random(schedule), Scenario.SINGLE)
        maintainer = ALGORITHMS[name](world.view)
        assert Requirement.WHOLE_OLD_ROWS not in maintainer.needs

        class KeysOnly:
            promises, needs, begin = maintainer.promises, maintainer.needs, maintainer.begin

            def on(self, state, event, inner=maintainer):  # type: ignore[no-untyped-def]
                if hasattr(event, "updates"):
                    cut = tuple(
                        one if one.count > 0 else Update(one.table, (one.row[0], None, None), -1)
                        for one in event.updates
                    )
                    event = type(event)(event.source, event.number, cut, event.transaction, event.parts)
                return inner.on(state, event)

        assert _run(world, KeysOnly(), Random(schedule)) >= Level.STRONG  # type: ignore[arg-type]


def _references(random: Random, *, local: bool) -> World:
    """Each row points at one of the next table by that one's key, so the view often knows what is asked for."""
    names = [("k1", "k2"), ("k2", "k3"), ("k3", "v")]
    occurrences = tuple(
        Occurrence(f"r{i}", columns, columns[:1], f"x{i}", f"r{i}") for i, columns in enumerate(names, start=1)
    )
    rows = {one.table: {key: (key, random.randrange(3)) for key in range(3)} for one in occurrences}
    initial, transactions = {table: bag(own.values()) for table, own in rows.items()}, []
    for _ in range(5):
        one, updates = random.choice(occurrences), list[Update]()
        own = rows[one.table]
        for _ in range(random.randint(1, 3) if local else 1):
            key = random.randrange(4)
            if key in own:
                updates.append(Update(one.table, own.pop(key), -1))
            else:
                own[key] = (key, random.randrange(3))
                updates.append(Update(one.table, own[key], 1))
        transactions.append((HistoryUnit(one.source, tuple(updates)),))
    return World(JoinView(occurrences, ("k1", "k2", "k3", "v")), initial, tuple(transactions))


@pytest.mark.parametrize("name", ["strobe", "t-strobe", "g-strobe", "c-strobe", "c-tstrobe"])
def test_what_the_view_knows_by_keys_is_as_good_as_an_answer(name: str) -> None:
    asks = 0
    for schedule in range(3 * SCHEDULES):
        world = _references(Random(schedule), local=name in ("t-strobe", "g-strobe", "c-tstrobe"))
        maintainer = ALGORITHMS[name](world.view)
        done = Simulation(world.view, world.initial, world.transactions, maintainer)
        done.run(Random(schedule))
        assert judge(done.history(), believe=False).level >= maintainer.promises, schedule
        asks += done.asks_sent
    assert asks
