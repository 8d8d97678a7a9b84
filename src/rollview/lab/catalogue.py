"""The experiments by name: each can be run, drawn, and judged where it publishes a view."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rollview.consistency.judge import judge
from rollview.consistency.record import write_history
from rollview.errors import NotFound
from rollview.lab.charts import draw_messages
from rollview.lab.examples import EXAMPLES, Example
from rollview.lab.figures import FIGURES, Figure, told
from rollview.lab.rectangles import draw_rectangles
from rollview.lab.verdicts import judged
from rollview.results import ExperimentLine, ExperimentList, ExperimentRun


@dataclass(frozen=True, slots=True)
class Experiment:
    """``history`` is JSON, or None where no view is published."""

    line: ExperimentLine
    run: Callable[[], ExperimentRun]
    draw: Callable[[], str]
    history: Callable[[], str] | None


def experiments() -> Mapping[str, Experiment]:
    every = [*map(_of_example, EXAMPLES), *map(_of_figure, FIGURES)]
    return {one.line.name: one for one in every}


def find_experiment(name: str) -> Experiment:
    known = experiments()
    if name not in known:
        raise NotFound("experiment", name, hint="See 'rollview lab list'.")
    return known[name]


def list_experiments() -> ExperimentList:
    return ExperimentList(tuple(one.line for one in experiments().values()))


def _of_example(example: Example) -> Experiment:
    def run() -> ExperimentRun:
        simulation = example.run()
        lines = tuple(f"{line.kind:8}{line.source or '–':4}{line.text}" for line in simulation.trace)
        history = simulation.history()
        verdict = judged(example.name, history, judge(history, believe=False))
        return ExperimentRun(example.name, example.title, example.paper, lines, verdict)

    def draw() -> str:
        simulation = example.run()
        return draw_messages(example.title, tuple(simulation.sources), simulation.trace)

    line = ExperimentLine(example.name, example.title, example.paper)
    return Experiment(line, run, draw, lambda: write_history(example.run().history()))


def _of_figure(figure: Figure) -> Experiment:
    def run() -> ExperimentRun:
        lines = tuple(told(*figure.run()))
        return ExperimentRun(figure.name, figure.title, figure.paper, lines, None)

    def draw() -> str:
        done, mark = figure.run()
        names = [one.name for one in done.tables.view.occurrences]
        return draw_rectangles(figure.title, names, done.executed, mark)

    return Experiment(ExperimentLine(figure.name, figure.title, figure.paper), run, draw, None)
