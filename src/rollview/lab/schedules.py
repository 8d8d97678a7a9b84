"""A schedule behind the map of levels, by name: ``ALGORITHM/SCENARIO/NUMBER``.

Without a number it is the worst of the first ones: what the algorithm does not promise there is seen in it.
"""

from __future__ import annotations

from dataclasses import dataclass

from rollview.compensate.algorithms import ALGORITHMS
from rollview.consistency.judge import judge
from rollview.errors import NotFound
from rollview.lab.simulator import Simulation
from rollview.lab.spectrum import run_schedule
from rollview.lab.worlds import Scenario

_TRIED = 200
_DIGITS = 9
_SCENARIOS = {scenario.replace(" ", "-"): scenario for scenario in Scenario}


@dataclass(frozen=True, slots=True)
class Schedule:
    algorithm: str
    scenario: Scenario
    number: int

    @property
    def title(self) -> str:
        return f"{self.algorithm}, {self.scenario}: schedule {self.number}"

    def run(self) -> Simulation:
        return run_schedule(self.algorithm, self.scenario, self.number)


def find_schedule(name: str) -> Schedule | None:
    """None if this is no name of a schedule."""
    algorithm, _, rest = name.partition("/")
    if not rest:
        return None
    place, _, number = rest.partition("/")
    known = algorithm in ALGORITHMS and place in _SCENARIOS
    if not known or not (rest == place or (number.isdecimal() and len(number) <= _DIGITS)):
        hint = (
            f"ALGORITHM/SCENARIO, of {', '.join(ALGORITHMS)} and {', '.join(_SCENARIOS)}; and /NUMBER for one of many."
        )
        raise NotFound("experiment", name, hint=hint)
    scenario = _SCENARIOS[place]
    return Schedule(algorithm, scenario, int(number) if number else _worst(algorithm, scenario))


def _worst(algorithm: str, scenario: Scenario) -> int:
    """The first of those with the lowest level."""
    return min(range(_TRIED), key=lambda number: _level(algorithm, scenario, number))


def _level(algorithm: str, scenario: Scenario, number: int) -> int:
    return judge(run_schedule(algorithm, scenario, number).history(), believe=False).level
