"""Schedules with messages, snapshots and processes that fail, and algorithms with one rule broken.

Law: what is sound reaches its level on every schedule; what is broken falls below it on some.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

from rollview.compensate.algorithms import ALGORITHMS
from rollview.compensate.courier import Courier
from rollview.compensate.deadline import Deadline
from rollview.compensate.eca import Eca
from rollview.compensate.g_strobe import GStrobe
from rollview.compensate.maintainer import Maintainer
from rollview.consistency.join_view import JoinView
from rollview.consistency.judge import judge
from rollview.consistency.levels import Level
from rollview.lab.simulator import Channels, Simulation
from rollview.lab.worlds import Scenario, make_world


@dataclass(frozen=True, slots=True)
class Trial:
    """``expected``: the level that a sound one keeps, or that a broken one is at most seen to have."""

    name: str
    scenario: Scenario
    make: Callable[[JoinView], Maintainer]
    expected: Level
    channels: Channels = Channels()
    crashes: int = 0
    dues: int = 0


@dataclass(frozen=True, slots=True)
class Variant:
    name: str
    expected: Level
    found: Mapping[Level, int]

    @property
    def level(self) -> Level:
        return min(self.found)


def _sound(name: str) -> Callable[[JoinView], Maintainer]:
    return lambda view: Courier(ALGORITHMS[name](view))


def _due(quiet: str, complete: str) -> Callable[[JoinView], Maintainer]:
    return lambda view: Deadline(ALGORITHMS[quiet](view), ALGORITHMS[complete](view))


_UNRULY = Channels(unruly=True)
_APART = Channels(apart=True)
_SNAPSHOTS = Channels(snapshots=True)

TRIALS: tuple[Trial, ...] = (
    Trial(
        "ECA that adds answers at once", Scenario.ONE_SOURCE, lambda view: Eca(view, collect=False), Level.CONVERGENT
    ),
    Trial(
        "T-Strobe that holds parts", Scenario.GLOBAL, lambda view: GStrobe(view, publish_early=True), Level.CONVERGENT
    ),
    Trial(
        "G-Strobe whose held parts are overtaken", Scenario.GLOBAL, lambda view: GStrobe(view, hold=False), Level.NONE
    ),
    Trial(
        "Strobe, answers and updates on two channels", Scenario.SINGLE, ALGORITHMS["strobe"], Level.CONVERGENT, _APART
    ),
    Trial(
        "the same, answers held until all that they saw has come",
        Scenario.SINGLE,
        _sound("strobe"),
        Level.STRONG,
        _APART,
    ),
    *(
        Trial(f"{name}, messages late and twice, put back in order", scenario, _sound(name), level, _UNRULY)
        for name, scenario, level in (
            ("strobe", Scenario.SINGLE, Level.STRONG),
            ("t-strobe", Scenario.LOCAL, Level.STRONG),
            ("g-strobe", Scenario.GLOBAL, Level.STRONG),
            ("c-strobe", Scenario.SINGLE, Level.COMPLETE),
            ("c-tstrobe", Scenario.LOCAL, Level.COMPLETE),
            ("sweep", Scenario.GLOBAL, Level.COMPLETE),
        )
    ),
    Trial(
        "sweep, older snapshots and such that miss a unit", Scenario.GLOBAL, _sound("sweep"), Level.COMPLETE, _SNAPSHOTS
    ),
    *(
        Trial(f"{name}, the same snapshots, asked again", scenario, _sound(name), level, _SNAPSHOTS)
        for name, scenario, level in (
            ("strobe", Scenario.SINGLE, Level.STRONG),
            ("t-strobe", Scenario.LOCAL, Level.STRONG),
            ("g-strobe", Scenario.GLOBAL, Level.STRONG),
            ("c-strobe", Scenario.SINGLE, Level.COMPLETE),
        )
    ),
    *(
        Trial(f"{name}, three crashes", scenario, ALGORITHMS[name], level, crashes=3)
        for name, scenario, level in (
            ("eca", Scenario.ONE_SOURCE, Level.STRONG),
            ("strobe", Scenario.SINGLE, Level.STRONG),
            ("t-strobe", Scenario.LOCAL, Level.STRONG),
            ("g-strobe", Scenario.GLOBAL, Level.STRONG),
            ("c-strobe", Scenario.SINGLE, Level.COMPLETE),
            ("c-tstrobe", Scenario.LOCAL, Level.COMPLETE),
            ("sweep", Scenario.GLOBAL, Level.COMPLETE),
        )
    ),
    Trial("strobe, due three times", Scenario.SINGLE, _due("strobe", "c-strobe"), Level.STRONG, dues=3),
    Trial("t-strobe, due three times", Scenario.LOCAL, _due("t-strobe", "c-tstrobe"), Level.STRONG, dues=3),
    Trial("g-strobe, due three times", Scenario.GLOBAL, _due("g-strobe", "sweep"), Level.STRONG, dues=3),
)


def measure_trial(trial: Trial, schedules: int) -> Variant:
    found = Counter[Level]()
    for schedule in range(schedules):
        random = Random(schedule)
        world = make_world(random, trial.scenario, transactions=random.randint(3, 5))
        simulation = Simulation(world.view, world.initial, world.transactions, trial.make(world.view), trial.channels)
        simulation.run(random, crashes=trial.crashes, dues=trial.dues)
        found[judge(simulation.history(), believe=False).level] += 1
    return Variant(trial.name, trial.expected, dict(sorted(found.items())))
