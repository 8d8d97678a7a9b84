"""The ``rollview`` command."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from importlib import import_module
from typing import Annotated, NoReturn

import typer

from rollview.cli.arguments import Group
from rollview.cli.exits import ExitCode
from rollview.cli.invocation import wants_json
from rollview.cli.output import Form, make_output
from rollview.core.references import holds_secret
from rollview.errors import UsageError

_UNNAMED = ("rollview.cli.general", "rollview.cli.space")
_NAMED = {
    "source": "rollview.cli.sources",
    "subscriber": "rollview.cli.subscribers",
    "table": "rollview.cli.tables",
    "view": "rollview.cli.views",
    "schema": "rollview.cli.schemas",
    "lab": "rollview.cli.lab",
}
"""Commands of two words, by the first."""
_COLLECT_AFTER = 100_000
"""Python looks for garbage when there are so many new objects: modules that are loaded make many, and no garbage."""


def _version(asked: bool) -> None:
    if asked:
        # It takes as long to load as all else that the command line needs to say its version.
        from importlib import metadata

        typer.echo(f"rollview {metadata.version('rollview')}")
        raise typer.Exit


def _rollview(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Incremental materialized views for Apache Spark.

    First steps:

        rollview init shop && cd shop
        rollview sql "CREATE TABLE orders (id BIGINT, state STRING, amount DECIMAL(12,2))"
        rollview view create views/revenue_by_state.sql
        rollview sql "INSERT INTO orders VALUES (1, 'CA', 9.90)"
        rollview refresh
        rollview view read revenue_by_state

    Exit codes: 0 done, 1 failed, 2 wrong usage, 3 try again later.
    """


def application(words: Sequence[str] = ()) -> typer.Typer:
    """The commands, as far as these words can ask for one: loading all of them takes longer than most of them do."""
    app = typer.Typer(
        cls=Group, no_args_is_help=True, add_completion=False, rich_markup_mode="markdown", callback=_rollview
    )
    first = next(iter(words), "")
    if first not in _NAMED:
        for place in _UNNAMED:
            app.add_typer(import_module(place).app)
    for name in _needed(app, first):
        app.add_typer(import_module(_NAMED[name]).app, name=name, cls=Group)
    return app


def _needed(app: typer.Typer, first: str) -> tuple[str, ...]:
    if first in _NAMED:
        return (first,)
    loaded = (group.typer_instance for group in app.registered_groups)
    is_found = any(command.name == first for group in loaded if group for command in group.registered_commands)
    return () if is_found else tuple(_NAMED)


def main(arguments: list[str] | None = None) -> NoReturn:
    """Without arguments, the command of this process; then it ends with it."""
    if arguments is not None:
        sys.exit(_run(arguments))
    gc.set_threshold(_COLLECT_AFTER, *gc.get_threshold()[1:])
    code = _run(sys.argv[1:])
    # At its end Python looks through everything that is loaded once more, unless told that it stays.
    gc.freeze()
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    try:
        code = application(arguments)(arguments, prog_name="rollview", standalone_mode=False) or ExitCode.DONE
        sys.stdout.flush()
    except typer.TyperException as error:
        code = _wrong_usage(error, arguments)
    except (typer.Abort, KeyboardInterrupt):
        code = ExitCode.INTERRUPTED
    except BrokenPipeError:
        code = _reader_left()
    return int(code)


def _wrong_usage(error: typer.TyperException, arguments: list[str]) -> int:
    """What the parser says, in our own words and form."""
    context = getattr(error, "ctx", None)
    form = Form.JSON if wants_json(arguments) else Form.TEXT
    if context is not None and type(error).__name__ == "NoArgsIsHelpError":
        # Nothing was asked for, so nothing belongs on stdout.
        with redirect_stdout(sys.stderr):
            context.get_help()
    else:
        path = context.command_path if context is not None else "rollview"
        make_output(form).error(UsageError(_sentence(error), hint=_way(error, path)))
    return ExitCode.USAGE


def _way(error: typer.TyperException, path: str) -> str:
    if getattr(error, "option_name", None) in ("--output", "-o", "--project-dir", "--debug"):
        return "Write it behind the command: rollview status --output json."
    return f"See '{path} --help'."


def _sentence(error: typer.TyperException) -> str:
    said = str(getattr(error, "format_message", lambda: str(error))()).strip()
    # The parser quotes what it does not expect, and that may be an address with its password.
    return "The arguments cannot be understood." if holds_secret(said) else said


def _reader_left() -> int:
    """Whoever read our output has what they wanted; Python must not complain about it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return ExitCode.DONE


if __name__ == "__main__":
    main()
