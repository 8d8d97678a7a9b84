"""schema log, schema show, schema rename. No Spark."""

from __future__ import annotations

from typing import Annotated

import typer

from rollview.cli.answers import RenameSaid
from rollview.cli.invocation import Invocation, command

app = typer.Typer(no_args_is_help=True, help="Columns of tables and views, by csn.")


@command(app, "log")
def log(
    run: Invocation,
    name: Annotated[str | None, typer.Argument(help="Only this table or view, by any name it has had.")] = None,
) -> None:
    """Show every column that tables and views have had, and the csns from which and before which they had it.

    Example: rollview schema log orders
    """
    with run.warehouse() as warehouse:
        run.output.show(warehouse.schema_log(name))


@command(app, "show")
def show(
    run: Invocation,
    name: Annotated[str, typer.Argument(help="The table or view, by the name that it had then.")],
    at: Annotated[str, typer.Option("--at", help="A csn or time.")] = "latest",
) -> None:
    """Show the columns that a table or view had at a csn.

    Example: rollview schema show orders --at 12
    """
    point = run.point(at).at
    with run.warehouse() as warehouse:
        run.output.show(warehouse.schema_at(name, point))


@command(app, "rename")
def rename(
    run: Invocation,
    table: Annotated[str, typer.Argument(help="A captured table of files, of Debezium's events, or of Delta.")],
    old: Annotated[str, typer.Argument(help="The column's name.")],
    new: Annotated[str, typer.Argument(help="The name that it will have at its source.")],
) -> None:
    """Say, before its source shows it, that a column with another name is the same column.

    Files and events prove no change of a name, nor does a Delta table without column mapping: without this, the new
    name is another column.

    Example: rollview schema rename orders state status
    """
    with run.warehouse() as warehouse:
        warehouse.say_rename(table, old, new)
    run.output.show(RenameSaid(table, old, new))
