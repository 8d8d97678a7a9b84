"""table list, table show. No Spark."""

from __future__ import annotations

from typing import Annotated

import typer

from rollview.cli.answers import list_relations
from rollview.cli.invocation import Invocation, command
from rollview.cli.relations import show_relation

app = typer.Typer(no_args_is_help=True, help="Base tables.")

Name = Annotated[str, typer.Argument(help="The table's name.")]


@command(app, "list")
def list_(run: Invocation) -> None:
    """List the tables."""
    with run.warehouse() as warehouse:
        run.output.show(list_relations("table", warehouse.snapshot().tables()))


@command(app, "show")
def show(run: Invocation, name: Name) -> None:
    """Show one table: columns, constraints, stored parts, readers."""
    with run.warehouse() as warehouse:
        run.output.show(show_relation(warehouse, name, "table"))
