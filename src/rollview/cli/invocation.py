"""What surrounds every command: the form of its output, its project, and what happens to its errors.

Law: ``--output``, ``--project-dir`` and ``--debug`` mean the same for every command, because they are declared here
once.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, ParamSpec

import typer

from rollview.cli.arguments import Command
from rollview.cli.exits import exit_code, unexpected
from rollview.cli.output import CommandOutput, Form, make_output
from rollview.cli.points import Point, parse_point
from rollview.cli.progress import Working
from rollview.core.references import masked
from rollview.errors import RollviewError
from rollview.project import Project, find_project

if TYPE_CHECKING:
    from rollview.warehouse import Warehouse

P = ParamSpec("P")
PANEL = "Everywhere"


@dataclass(frozen=True, slots=True)
class Invocation:
    """One run of one command."""

    form: Form
    output: CommandOutput
    project_dir: Path | None
    debug: bool

    def project(self) -> Project:
        return find_project(self.project_dir)

    @contextmanager
    def warehouse(self) -> Iterator[Warehouse]:
        with self.project().open() as warehouse:
            yield warehouse

    def working(self, doing: str) -> Working:
        return Working(self.output, self.form, doing)

    def point(self, text: str) -> Point:
        point = parse_point(text)
        if point.note:
            self.output.note(point.note)
        return point

    def limit(self, asked: int | None) -> int | None:
        """How many rows to show: 0 asks for all, nothing for what suits the form."""
        return self.output.row_limit if asked is None else asked or None

    @contextmanager
    def reporting(self) -> Iterator[None]:
        try:
            yield
        except RollviewError as error:
            raise self._report(error) from None
        except (typer.Exit, typer.Abort, typer.TyperException, BrokenPipeError):
            raise
        except Exception as error:
            raise self._report(unexpected(error)) from None

    def _report(self, error: RollviewError) -> typer.Exit:
        if self.debug:
            sys.stderr.write(masked("".join(traceback.format_exception(error))))
        self.output.error(error)
        return typer.Exit(exit_code(error))


_Output = Annotated[
    Form, typer.Option("--output", "-o", envvar="ROLLVIEW_OUTPUT", help="Form of the answer.", rich_help_panel=PANEL)
]
_ProjectDir = Annotated[
    Path | None,
    typer.Option(
        "--project-dir", help="Where to look for rollview.yaml; upwards from here by default.", rich_help_panel=PANEL
    ),
]
_Debug = Annotated[
    bool, typer.Option("--debug", envvar="ROLLVIEW_DEBUG", help="Show tracebacks of errors.", rich_help_panel=PANEL)
]
_SHARED = (("output", _Output, Form.TEXT), ("project_dir", _ProjectDir, None), ("debug", _Debug, False))


def command(app: typer.Typer, name: str) -> Callable[[Callable[Concatenate[Invocation, P], None]], None]:
    """Make a function of an invocation and its own arguments a command of the app."""

    def register(function: Callable[Concatenate[Invocation, P], None]) -> None:
        @functools.wraps(function)
        def run(output: Form, project_dir: Path | None, debug: bool, **arguments: Any) -> None:
            invocation = Invocation(output, make_output(output), project_dir, debug)
            with invocation.reporting():
                function(invocation, **arguments)  # type: ignore[call-arg]

        _declare(run, function)
        app.command(name, cls=Command)(run)

    return register


def _declare(run: Callable[..., None], function: Callable[..., None]) -> None:
    """Give ``run`` the function's own parameters and the shared ones, as typer reads them."""
    own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
    kind = inspect.Parameter.KEYWORD_ONLY
    shared = [inspect.Parameter(name, kind, default=value, annotation=form) for name, form, value in _SHARED]
    parameters = [parameter.replace(kind=kind) for parameter in own] + shared
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}


def wants_json(arguments: list[str]) -> bool:
    """Whether JSON was asked for, told from the bare arguments when they cannot be understood."""
    asked = any(name in ("--output", "-o") and value == Form.JSON for name, value in pairwise(arguments))
    return asked or "--output=json" in arguments or os.environ.get("ROLLVIEW_OUTPUT") == Form.JSON
