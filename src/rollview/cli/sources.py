"""source add, check, list, show, capture again, remove. No Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from rollview.cli.answers import Dropped, HeldList, Positions, SourceList
from rollview.cli.exits import ExitCode
from rollview.cli.invocation import Invocation, command
from rollview.errors import NotFound, UsageError
from rollview.sources.settings import SourceSettings, TableSettings, table_named

app = typer.Typer(no_args_is_help=True, help="Databases and folders whose tables are captured.")
global_ = typer.Typer(no_args_is_help=True, help="Transactions over several sources whose parts have not all come.")
app.add_typer(global_, name="global")

GlobalId = Annotated[str, typer.Argument(help="The transaction's global id.")]
Name = Annotated[str, typer.Argument(help="The source's name.")]
Kind = Annotated[
    str | None,
    typer.Argument(
        help="postgres, mariadb, mysql, sqlite, delta, files or debezium. Without it, what rollview.yaml says."
    ),
]
Address = Annotated[
    str | None, typer.Argument(help="A URL as env:NAME or file:PATH, or the path of a database or folder.")
]
Tables = Annotated[
    list[str] | None, typer.Option("--table", "-t", help="A table to capture; NAME=TABLE calls it NAME here.")
]
Types = Annotated[
    list[str] | None, typer.Option("--type", help="TABLE.COLUMN=TYPE: the Spark type a column is to have.")
]
Keys = Annotated[list[str] | None, typer.Option("--key", help="TABLE=COLUMN,…: what is unique in a table of files.")]
Format = Annotated[str | None, typer.Option("--format", help="csv, json or parquet, for tables of files.")]


@command(app, "add")
def add(
    run: Invocation,
    name: Name,
    kind: Kind = None,
    address: Address = None,
    table: Tables = None,
    type_: Types = None,
    key: Keys = None,
    format_: Format = None,
) -> None:
    """Capture tables of a database or folder from now on, beginning with a copy at one position.

    Examples:

      rollview source add bank postgres env:BANK_URL --table public.accounts

      rollview source add shop sqlite shop.db --table orders --table articles=article

      rollview source add drop files inbox --table orders --format csv --type orders.id=bigint --key orders=id
    """
    settings = _settings(run, name, kind, address, table, type_, key, format_)
    declared = run.project().declared() if any(one.is_open for one in settings.tables) else ()
    with run.warehouse() as warehouse, run.working(f"Copying {name}") as working:
        added = warehouse.add_source(name, settings, working.tell, declared)
    run.output.show(added)


@command(app, "check")
def check(
    run: Invocation,
    name: Name,
    kind: Kind = None,
    address: Address = None,
    table: Tables = None,
    type_: Types = None,
    key: Keys = None,
    format_: Format = None,
) -> None:
    """Say what is missing for a source, and the exact statement that repairs it. Changes nothing.

    Fails with 1 when something is in the way.
    """
    with run.warehouse() as warehouse:
        known = kind is None and any(source.name == name for source in warehouse.sources())
        settings = None if known else _settings(run, name, kind, address, table, type_, key, format_)
        checked = warehouse.check_source(name, settings)
    run.output.show(checked)
    if not checked.ready:
        raise typer.Exit(ExitCode.FAILED)


@command(app, "list")
def list_(run: Invocation) -> None:
    """List the sources: state, position, when each was last read."""
    with run.warehouse() as warehouse:
        run.output.show(SourceList(warehouse.sources()))


@command(app, "show")
def show(run: Invocation, name: Name) -> None:
    """Show one source: where it is, its tables, how far it was read, and what stopped it."""
    with run.warehouse() as warehouse:
        found = next((source for source in warehouse.sources() if source.name.lower() == name.lower()), None)
    if found is None:
        raise NotFound("source", name, hint="See 'rollview source list'.")
    run.output.show(found)


@command(app, "quarantine")
def quarantine(run: Invocation, name: Name) -> None:
    """List the rows of a source that have a value that cannot be represented, with their positions.

    They are put aside where the source's options say 'on_bad_value: quarantine'; without it the first one stops it.
    """
    with run.warehouse() as warehouse:
        run.output.show(warehouse.quarantine(name))


@command(app, "positions")
def positions(
    run: Invocation,
    at: Annotated[str, typer.Option("--at", help="A csn or time; the newest csn by default.")] = "latest",
) -> None:
    """Show how far a csn covers each source: the newest unit of work up to there. Starts no Spark.

    Example: rollview source positions --at 812
    """
    point = run.point(at).at
    with run.warehouse() as warehouse:
        csn = warehouse.resolve(point)
        run.output.show(Positions(csn, warehouse.positions(csn)))


@command(global_, "list")
def list_held(run: Invocation) -> None:
    """List the transactions over several sources that wait for parts, oldest first."""
    with run.warehouse() as warehouse:
        run.output.show(HeldList(warehouse.held()))


@command(global_, "wait")
def wait(run: Invocation, global_id: GlobalId) -> None:
    """Let a transaction wait on for its missing parts; its time begins anew, and the choice is recorded."""
    with run.warehouse() as warehouse:
        run.output.show(warehouse.decide(global_id, "wait"))


@command(global_, "release")
def release(run: Invocation, global_id: GlobalId) -> None:
    """Let the parts of a transaction go without those that are missing; the choice is recorded.

    Its parts are then taken by the next capture, each as a commit of its own. A part that comes later is taken too.
    """
    with run.warehouse() as warehouse:
        run.output.show(warehouse.decide(global_id, "release"))


@command(app, "ddl")
def ddl(
    run: Invocation,
    name: Name,
    statement: Annotated[str, typer.Argument(help="One ALTER TABLE, as the database itself understands it.")],
) -> None:
    """Run an ALTER TABLE at an SQLite source that its triggers would block, and capture it.

    Triggers are away only inside the transaction of the statement, so no row is missed. Other kinds need none of this:
    there capture follows what is run in the database.

    Example: rollview source ddl shop 'ALTER TABLE orders DROP COLUMN note'
    """
    with run.warehouse() as warehouse:
        done = warehouse.alter_source(name, statement)
    run.output.show(done)
    if done.problem is not None:
        raise typer.Exit(ExitCode.FAILED)


@command(app, "resnapshot")
def resnapshot(
    run: Invocation,
    name: Name,
    widen: Annotated[
        bool, typer.Option("--widen", help="Take columns and rows as well that are there and not here yet.")
    ] = False,
) -> None:
    """Copy a source again, for one that lost its position; the difference becomes one commit.

    With --widen, columns that the source has gained, or that rollview.yaml names by now, and the rows that it asks for,
    are here from that commit on.
    """
    named = widen and name in (run.project().config.sources or {})
    settings = run.project().source(name) if named else None
    with run.warehouse() as warehouse, run.working(f"Copying {name}"):
        done = warehouse.resnapshot(name, widen=widen, settings=settings)
    run.output.show(done)


@command(app, "remove")
def remove(
    run: Invocation,
    name: Name,
    forget: Annotated[
        bool, typer.Option("--forget", help="Leave the source as it is, for one that is gone for good.")
    ] = False,
) -> None:
    """Drop a source's tables here, and what capture put into the source."""
    with run.warehouse() as warehouse:
        warehouse.remove_source(name, forget=forget)
    run.output.show(Dropped("source", name))


def _settings(
    run: Invocation,
    name: str,
    kind: str | None,
    address: str | None,
    tables: list[str] | None,
    types: list[str] | None,
    keys: list[str] | None,
    format_: str | None,
) -> SourceSettings:
    project = run.project()
    if kind is None:
        return project.source(name)
    if address is None:
        raise UsageError("The source has no address.", hint="Give a URL as env:NAME, or a path.")
    named = [table_named(text) for text in tables or ()]
    named = [replace(one, format=format_, types=_types(one, types), key=_key(one, keys)) for one in named]
    return SourceSettings(kind, address, tuple(named)).anchored(run.project_dir or Path.cwd())


def _types(table: TableSettings, given: list[str] | None) -> dict[str, str]:
    found = {}
    for text in given or ():
        where, equals, type_ = text.partition("=")
        owner, dot, column = where.rpartition(".")
        if not (equals and dot and column and type_):
            raise UsageError(f"'{text}' does not name a column and its type.", hint="Write TABLE.COLUMN=TYPE.")
        if owner in (table.remote, table.relation):
            found[column] = type_.lower()
    return found


def _key(table: TableSettings, given: list[str] | None) -> tuple[str, ...]:
    for text in given or ():
        owner, equals, columns = text.partition("=")
        if not (equals and columns):
            raise UsageError(f"'{text}' does not name a table and its key.", hint="Write TABLE=COLUMN,COLUMN.")
        if owner in (table.remote, table.relation):
            return tuple(columns.split(","))
    return ()
