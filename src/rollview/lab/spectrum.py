"""Which algorithm reaches which level in which scenario, by experiment.

Zhuge et al., *The Strobe Algorithms*, figure 7.2. Law: schedule number s of a scenario is the same world for every
algorithm, so cells can be compared; a cell's level is the lowest of its schedules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from random import Random

from rollview.compensate.algorithms import ALGORITHMS
from rollview.consistency.judge import judge
from rollview.consistency.levels import Level
from rollview.lab.simulator import Simulation
from rollview.lab.svg import GREEN, INK, PALE, RED, Drawing
from rollview.lab.worlds import Scenario, make_world

STATED: Mapping[tuple[str, Scenario], Level] = {
    ("strobe", Scenario.SINGLE): Level.STRONG,
    ("strobe", Scenario.LOCAL): Level.CONVERGENT,
    ("strobe", Scenario.GLOBAL): Level.CONVERGENT,
    ("t-strobe", Scenario.LOCAL): Level.STRONG,
    ("t-strobe", Scenario.GLOBAL): Level.WEAK,
    ("g-strobe", Scenario.GLOBAL): Level.STRONG,
    ("c-strobe", Scenario.SINGLE): Level.COMPLETE,
    ("c-tstrobe", Scenario.LOCAL): Level.COMPLETE,
    ("sweep", Scenario.GLOBAL): Level.COMPLETE,
    ("eca", Scenario.ONE_SOURCE): Level.STRONG,
}
"""What the papers state of an algorithm in the hardest scenario for which they do; the rest is measured."""


@dataclass(frozen=True, slots=True)
class Cell:
    """``found``: how many schedules reached exactly which level."""

    algorithm: str
    scenario: Scenario
    found: Mapping[Level, int]
    asks: int

    @property
    def level(self) -> Level:
        return min(self.found)

    @property
    def schedules(self) -> int:
        return sum(self.found.values())


def measure_cell(algorithm: str, scenario: Scenario, schedules: Iterable[int]) -> Cell:
    found, asks = Counter[Level](), 0
    for schedule in schedules:
        simulation = run_schedule(algorithm, scenario, schedule)
        found[judge(simulation.history(), believe=False).level] += 1
        asks += simulation.asks_sent
    return Cell(algorithm, scenario, dict(sorted(found.items())), asks)


def run_schedule(algorithm: str, scenario: Scenario, schedule: int) -> Simulation:
    random = Random(schedule)
    world = make_world(random, scenario, transactions=random.randint(3, 5))
    maintainer = ALGORITHMS[algorithm](world.view)
    simulation = Simulation(world.view, world.initial, world.transactions, maintainer)
    simulation.run(random, one_by_one=scenario is Scenario.CENTRALIZED)
    return simulation


def draw_map(cells: Iterable[Cell]) -> str:
    """Scenarios across, levels up; an algorithm stands where it was measured."""
    cells = list(cells)
    levels = sorted(Level, reverse=True)
    width, height, left, top = 170, 96, 120, 60
    drawing = Drawing(left + width * len(Scenario) + 20, top + height * len(levels) + 30)
    drawing.text(16, 24, f"Lowest level in {cells[0].schedules} schedules per cell", size=15)
    for column, scenario in enumerate(Scenario):
        drawing.text(left + width * column + width / 2, top - 8, scenario, anchor="middle")
        for row, level in enumerate(levels):
            drawing.box(left + width * column, top + height * row, width, height, edge=PALE)
            here = [one for one in cells if one.scenario is scenario and one.level is level]
            for place, one in enumerate(here):
                stated = STATED.get((one.algorithm, scenario))
                colour = INK if stated is None else (GREEN if level >= stated else RED)
                x = left + width * column + 8 + place // 5 * 82
                drawing.text(x, top + height * row + 18 + place % 5 * 17, one.algorithm, colour)
    for row, level in enumerate(levels):
        drawing.text(left - 10, top + height * row + height / 2, str(level), anchor="end")
    return drawing.to_svg()
