"""Arguments that are taken as they are mean what they mean when typer converts them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pytest
import typer

from rollview.cli.arguments import Command
from rollview.cli.output import Form

LINES = [
    "a",
    "a --output json --project-dir /x/y",
    "a -o text --limit 3 --select b --select c --flag",
    "a --name b --to latest --path f",
    "a --limit 20",
    "",
    "a --output xml",
    "a --limit x",
    "a --limit -1",
    "a b",
]


def _app(command: type[Command] | None, said: list[Any]) -> typer.Typer:
    app = typer.Typer(add_completion=False)

    @app.command("do", cls=command)
    def do(
        what: Annotated[str, typer.Argument()],
        output: Annotated[Form, typer.Option("--output", "-o")] = Form.TEXT,
        project_dir: Annotated[Path | None, typer.Option("--project-dir")] = None,
        limit: Annotated[int, typer.Option("--limit", min=0)] = 20,
        select: Annotated[list[str] | None, typer.Option("--select")] = None,
        name: Annotated[str | None, typer.Option("--name")] = None,
        to: Annotated[str, typer.Option("--to")] = "latest",
        path: Annotated[Path, typer.Option("--path")] = Path("x"),
        flag: Annotated[bool, typer.Option("--flag")] = False,
    ) -> None:
        said.append((what, output, project_dir, limit, select, name, to, path, flag))

    return app


def _outcome(command: type[Command] | None, line: str) -> list[Any]:
    said: list[Any] = []
    try:
        _app(command, said)(line.split(), standalone_mode=False)
    except typer.TyperException as error:
        said.append(error.format_message())
    return [*said, [type(value) for value in said[0]]]


@pytest.mark.parametrize("line", LINES)
def test_an_argument_means_the_same_with_and_without_a_conversion(line: str) -> None:
    assert _outcome(Command, line) == _outcome(None, line)
