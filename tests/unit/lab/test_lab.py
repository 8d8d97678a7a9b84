"""Experiments are functions of their seeds: the same numbers, the same bytes, and those that the docs show."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from rollview.consistency.levels import Level
from rollview.errors import NotFound
from rollview.lab import report
from rollview.lab.catalogue import experiments, find_experiment
from rollview.lab.curves import measure_cost
from rollview.lab.spectrum import STATED, measure_cell
from rollview.lab.worlds import Scenario

PUBLISHED = Path(__file__).parents[3] / "docs" / "lab"
LEVELS = {str(level): level for level in Level}


@pytest.mark.parametrize("name", experiments())
def test_a_picture_is_xml_and_has_the_same_bytes_each_time(name: str) -> None:
    drawn = find_experiment(name).draw()
    assert ElementTree.fromstring(drawn).tag.endswith("svg")
    assert find_experiment(name).draw() == drawn
    assert (PUBLISHED / f"{name}.svg").read_text(encoding="utf-8") == drawn


def test_everything_at_once_has_the_same_bytes_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "ALGORITHMS", ("strobe", "sweep"))
    monkeypatch.setattr(report, "measure_costs", lambda: (measure_cost(3, 2),))
    monkeypatch.setattr(report, "TRIALS", report.TRIALS[:2])
    for folder in ("one", "two"):
        answer = report.write_all(tmp_path / folder, 3)
        assert answer.files == tuple(sorted(path.name for path in (tmp_path / folder).iterdir()))
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


def test_an_experiment_that_is_not_there_is_told() -> None:
    with pytest.raises(NotFound) as told:
        find_experiment("nope")
    assert "lab list" in str(told.value.hint)


def test_the_published_map_has_two_thousand_schedules_in_every_cell_and_is_what_is_stated() -> None:
    published = json.loads((PUBLISHED / "results.json").read_text(encoding="utf-8"))
    assert published["schedules"] == 2000
    cells = {(one["algorithm"], Scenario(one["scenario"])): one for one in published["map"]}
    assert len(cells) == 8 * len(Scenario)
    for one in cells.values():
        assert sum(one["found"].values()) == 2000
    assert {cell: LEVELS[cells[cell]["level"]] for cell in STATED} == STATED


@pytest.mark.parametrize("scenario", [Scenario.LOCAL, Scenario.GLOBAL])
def test_the_published_map_is_what_schedules_give(scenario: Scenario) -> None:
    """The first schedules of a cell are among those that were published."""
    published = json.loads((PUBLISHED / "results.json").read_text(encoding="utf-8"))
    for one in published["map"]:
        if one["scenario"] == scenario:
            found = measure_cell(one["algorithm"], scenario, range(12))
            assert found.level >= LEVELS[one["level"]]
            for level, count in found.found.items():
                assert count <= one["found"].get(str(level), 0)


def test_published_variants_are_as_expected() -> None:
    published = json.loads((PUBLISHED / "results.json").read_text(encoding="utf-8"))
    found = {one["name"]: min(LEVELS[level] for level in one["found"]) for one in published["variants"]}
    assert found == {trial.name: trial.expected for trial in report.TRIALS}


@pytest.mark.parametrize(
    ("tables", "updates", "compensating", "grouped"),
    [(2, 8, 0, 0), (3, 5, 5, 2), (4, 3, 6, 9), (4, 8, 29, 9), (5, 4, 14, 40)],
)
def test_compensating_queries(tables: int, updates: int, compensating: int, grouped: int) -> None:
    """Both bounds hold; the grouped one is reached, and is above the other while updates are few."""
    cost = measure_cost(tables, updates)
    assert (cost.compensating, cost.grouped) == (compensating, grouped)
    assert cost.compensating <= cost.bound
    assert cost.grouped <= cost.grouped_bound
    assert (cost.strobe_asks, cost.sweep_asks) == (tables - 1, tables - 1)
