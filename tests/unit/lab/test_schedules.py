"""A schedule behind the map is an experiment like any other."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from rollview.consistency.levels import Level
from rollview.errors import NotFound
from rollview.lab.catalogue import find_experiment
from rollview.lab.schedules import find_schedule
from rollview.lab.spectrum import measure_cell
from rollview.lab.worlds import Scenario


@pytest.mark.parametrize(
    ("name", "scenario", "level"),
    [
        ("conventional/single-updates", Scenario.SINGLE, Level.NONE),
        ("t-strobe/global", Scenario.GLOBAL, Level.WEAK),
        ("sweep/source-local", Scenario.LOCAL, Level.COMPLETE),
    ],
)
def test_without_a_number_it_is_the_first_of_the_worst(name: str, scenario: Scenario, level: Level) -> None:
    worst = find_schedule(name)
    assert worst is not None
    assert worst.scenario is scenario
    algorithm = name.partition("/")[0]
    assert measure_cell(algorithm, scenario, [worst.number]).level is level
    assert all(one > level for one in measure_cell(algorithm, scenario, range(worst.number)).found)
    run = find_experiment(f"{name}/{worst.number}").run()
    assert run.judged is not None
    assert run.judged.level == str(level)


def test_it_is_drawn_message_by_message_and_has_the_same_bytes_each_time() -> None:
    experiment = find_experiment("strobe/global/17")
    drawn = experiment.draw()
    assert drawn == experiment.draw()
    assert find_experiment("strobe/global/18").draw() != drawn
    said = [one.text for one in ElementTree.fromstring(drawn).iter("{http://www.w3.org/2000/svg}text")]
    assert "strobe, global: schedule 17" in said
    assert {line.split(maxsplit=1)[0] for line in experiment.run().lines} >= {
        "commit",
        "hear",
        "ask",
        "answer",
        "publish",
    }
    assert experiment.history is not None


@pytest.mark.parametrize(
    "name",
    ["strobe/", "strobe/nowhere", "nobody/global", "strobe/global/", "strobe/global/x", f"strobe/global/{'9' * 10}"],
)
def test_what_is_no_schedule_is_told(name: str) -> None:
    with pytest.raises(NotFound) as told:
        find_experiment(name)
    assert told.value.hint
