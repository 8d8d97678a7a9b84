"""The ``rollview`` command."""

from __future__ import annotations

import os
import sys
from contextlib import redirect_stdout
from typing import Annotated, NoReturn

import typer

from rollview.cli import general, lab, schemas, sources, space, subscribers, tables, views
from rollview.cli.exits import ExitCode
from rollview.cli.invocation import wants_json
from rollview.cli.output import Form, make_output
from rollview.core.references import holds_secret
from rollview.errors import UsageError

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode="markdown")
app.add_typer(general.app)
app.add_typer(space.app)
app.add_typer(sources.app, name="source")
app.add_typer(subscribers.app, name="subscriber")
app.add_typer(tables.app, name="table")
app.add_typer(views.app, name="view")
app.add_typer(schemas.app, name="schema")
app.add_typer(lab.app, name="lab")


def _version(asked: bool) -> None:
    if asked:
        # It takes as long to load as all else that the command line needs to say its version.
        from importlib import metadata

        typer.echo(f"rollview {metadata.version('rollview')}")
        raise typer.Exit


@app.callback()
def rollview(
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


def main(arguments: list[str] | None = None) -> NoReturn:
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        code = app(arguments, prog_name="rollview", standalone_mode=False) or ExitCode.DONE
        sys.stdout.flush()
    except typer.TyperException as error:
        code = _wrong_usage(error, arguments)
    except (typer.Abort, KeyboardInterrupt):
        code = ExitCode.INTERRUPTED
    except BrokenPipeError:
        code = _reader_left()
    sys.exit(int(code))


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
