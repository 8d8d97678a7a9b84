"""The experiments by name: each can be run, drawn, and judged where it publishes a view."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import starmap

from rollview.consistency.judge import judge
from rollview.consistency.record import write_history
from rollview.errors import NotFound
from rollview.lab import txnwrap
from rollview.lab.charts import draw_messages
from rollview.lab.examples import EXAMPLES, OURS, Example
from rollview.lab.figures import FIGURES, Figure, told
from rollview.lab.meta_relations import draw_text, told_example_two, told_figure_four
from rollview.lab.rectangles import draw_executed
from rollview.lab.schedules import Schedule, find_schedule
from rollview.lab.service_times import RECORDED, ServiceTimes, measure_service_times
from rollview.lab.simulator import Simulation
from rollview.lab.verdicts import judged
from rollview.results import ExperimentLine, ExperimentList, ExperimentRun


@dataclass(frozen=True, slots=True)
class Experiment:
    """``history`` is JSON, or None where no view is published."""

    line: ExperimentLine
    run: Callable[[], ExperimentRun]
    draw: Callable[[], str]
    history: Callable[[], str] | None


def experiments(times: ServiceTimes = RECORDED) -> Mapping[str, Experiment]:
    """``times``: what queries cost, for those experiments that count it."""
    measured = (_of_measured(number, times) for number in txnwrap.NUMBERS)
    every = [*map(_of_example, EXAMPLES), *map(_of_figure, FIGURES), *starmap(_of_told, _TOLD), *measured]
    return {one.line.name: one for one in every}


def find_experiment(name: str, figure: int | None = None, *, measure: bool = False) -> Experiment:
    """A schedule behind the map has a name too: ``strobe/global/17``. ``figure``: which of several that have one name.
    ``measure``: what queries cost on this machine."""
    if (schedule := find_schedule(name)) is not None:
        return _of_schedule(name, schedule)
    wanted = name if figure is None else f"{name}-{figure}"
    known = experiments(measure_service_times() if measure else RECORDED)
    if wanted not in known:
        if figure is not None and name == txnwrap.NAME:
            txnwrap.check_number(figure)
        hint = f"Say which: --figure {txnwrap.NUMBERS[0]}." if wanted == txnwrap.NAME else "See 'rollview lab list'."
        raise NotFound("experiment", wanted, hint=hint)
    return known[wanted]


def list_experiments() -> ExperimentList:
    return ExperimentList(tuple(one.line for one in experiments().values()))


def _of_example(example: Example) -> Experiment:
    return _of_simulation(ExperimentLine(example.name, example.title, example.paper), example.run)


def _of_schedule(name: str, schedule: Schedule) -> Experiment:
    return _of_simulation(ExperimentLine(name, schedule.title, OURS), schedule.run)


def _of_simulation(line: ExperimentLine, simulate: Callable[[], Simulation]) -> Experiment:
    def run() -> ExperimentRun:
        simulation = simulate()
        lines = tuple(f"{one.kind:8}{one.source or '–':4}{one.text}" for one in simulation.trace)
        history = simulation.history()
        verdict = judged(line.name, history, judge(history, believe=False))
        return ExperimentRun(line.name, line.title, line.paper, lines, verdict)

    def draw() -> str:
        simulation = simulate()
        return draw_messages(line.title, tuple(simulation.sources), simulation.trace)

    return Experiment(line, run, draw, lambda: write_history(simulate().history()))


def _of_figure(figure: Figure) -> Experiment:
    def run() -> ExperimentRun:
        lines = tuple(told(*figure.run()))
        return ExperimentRun(figure.name, figure.title, figure.paper, lines, None)

    def draw() -> str:
        done, mark = figure.run()
        names = [one.name for one in done.tables.view.occurrences]
        return draw_executed(figure.title, names, done.executed, mark)

    return Experiment(ExperimentLine(figure.name, figure.title, figure.paper), run, draw, None)


_TOLD: tuple[tuple[str, str, Callable[[], tuple[str, ...]]], ...] = (
    ("txnwrap-4", "figures 4 to 6: four updates, their TxnIDs, and the wrappers after them", told_figure_four),
    ("txnwrap-example-2", "example 2: a schema change and an update, in order and reordered", told_example_two),
)


def _of_told(name: str, title: str, tell: Callable[[], tuple[str, ...]]) -> Experiment:
    def run() -> ExperimentRun:
        return ExperimentRun(name, title, txnwrap.PAPER, tell(), None)

    return Experiment(ExperimentLine(name, title, txnwrap.PAPER), run, lambda: draw_text(title, tell()), None)


def _of_measured(number: int, times: ServiceTimes) -> Experiment:
    name, title = f"{txnwrap.NAME}-{number}", txnwrap.title_of(number)

    def run() -> ExperimentRun:
        return ExperimentRun(
            name, title, txnwrap.PAPER, txnwrap.told_lines(txnwrap.measure_figure(number, times)), None
        )

    def draw() -> str:
        return txnwrap.measure_figure(number, times).draw()

    return Experiment(ExperimentLine(name, title, txnwrap.PAPER), run, draw, None)
