"""lab list, run, check, draw, figures, contention, all. No Spark, and no warehouse but to draw one's views."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rollview import lab
from rollview.cli.exits import ExitCode
from rollview.cli.files import read_text, write_text
from rollview.cli.invocation import Invocation, command
from rollview.core.names import physical
from rollview.core.references import resolve
from rollview.errors import UsageError
from rollview.results import FilesWritten

app = typer.Typer(
    no_args_is_help=True, help="Algorithms that ask sources, on simulated ones; and the judge of histories."
)

Name = Annotated[
    str, typer.Argument(help="The experiment's name, or ALGORITHM/SCENARIO for the worst of 200 schedules.")
]


@command(app, "list")
def list_(run: Invocation) -> None:
    """List the experiments, and the papers they are from."""
    run.output.show(lab.list_experiments())


@command(app, "run")
def run_(
    run: Invocation,
    name: Name,
    history: Annotated[Path | None, typer.Option("--history", help="Write the history here, for 'lab check'.")] = None,
    figure: Annotated[int | None, typer.Option("--figure", help="Which figure of 'txnwrap': 12 to 21.")] = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="Measure what queries cost here, instead of using what was recorded.")
    ] = False,
) -> None:
    """Run one experiment, message by message or on a virtual clock, and judge what came of it.

    Examples:

      rollview lab run strobe-3

      rollview lab run t-strobe/global

      rollview lab run txnwrap --figure 16
    """
    experiment = lab.find_experiment(name, figure, measure=measure)
    if history is not None:
        if experiment.history is None:
            raise UsageError(f"Experiment '{name}' publishes no view, so it has no history.")
        write_text(history, experiment.history())
    run.output.show(experiment.run())


@command(app, "check")
def check(run: Invocation, file: Annotated[Path, typer.Argument(help="A history as JSON; see docs/lab.md.")]) -> None:
    """Judge a recorded history: its level of consistency, and the mapping or the smallest counterexample.

    Fails with 1 when the view is not even right at rest.

    Example: rollview lab check history.json
    """
    verdict = lab.check_text(file.name, read_text(file))
    run.output.show(verdict)
    if verdict.level == "not convergent":
        raise typer.Exit(ExitCode.FAILED)


@command(app, "draw")
def draw(
    run: Invocation,
    name: Annotated[str, typer.Argument(help="The experiment's name, or a view's with --view.")],
    view: Annotated[bool, typer.Option("--view", help="Draw a view of this project: what its steps joined.")] = False,
    into: Annotated[Path | None, typer.Option("--into", help="The SVG file; NAME.svg here by default.")] = None,
) -> None:
    """Draw one experiment: its messages, or the rectangles of its propagation. Or those of a view.

    Examples:

      rollview lab draw rolling --into rolling.svg

      rollview lab draw strobe/source-local/17

      rollview lab draw --view revenue
    """
    path = into if into is not None else Path(f"{physical(name) if view else name.replace('/', '-')}.svg")
    write_text(path, _drawn_view(run, name) if view else lab.find_experiment(name).draw())
    run.output.show(FilesWritten(str(path.parent), (path.name,)))


def _drawn_view(run: Invocation, name: str) -> str:
    with run.warehouse() as warehouse:
        return warehouse.draw(name)


@command(app, "figures")
def figures(
    run: Invocation,
    into: Annotated[Path, typer.Option("--into", help="The folder.")] = Path("lab"),
    measure: Annotated[bool, typer.Option("--measure", help="Measure what queries cost here first.")] = False,
) -> None:
    """Write the figures of 'txnwrap', 12 to 21: a page with numbers and verdicts, and pictures.

    Example: rollview lab figures --into lab
    """
    run.output.show(lab.write_figures(into, measure=measure))


@command(app, "contention")
def contention(
    run: Invocation,
    postgres: Annotated[str, typer.Argument(help="A database in which a schema may be made: env:NAME or a URL.")],
    seconds: Annotated[float, typer.Option("--seconds", min=1.0, help="For each of four ways.")] = 10.0,
) -> None:
    """Measure writers on PostgreSQL beside those who keep a view: nobody, REFRESH, Propagate, rolling.

    Example: rollview lab contention env:LAB_URL --seconds 5
    """
    run.output.show(lab.run_contention(resolve(postgres, Path.cwd(), "the argument"), seconds))


@command(app, "all")
def all_(
    run: Invocation,
    into: Annotated[Path, typer.Option("--into", help="The folder.")] = Path("lab"),
    schedules: Annotated[int, typer.Option("--schedules", min=1, help="Random schedules in each cell.")] = 2000,
) -> None:
    """Run everything: numbers, pictures, and where they differ from the papers. Takes minutes.

    Example: rollview lab all --into lab --schedules 200
    """
    run.output.show(lab.write_all(into, schedules, run.output.progress))
