"""init, sql, shell, capture, refresh, run, status, log."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from rollview import results, schedule
from rollview.cli.answers import Ledger
from rollview.cli.exits import ExitCode
from rollview.cli.files import read_text
from rollview.cli.invocation import Invocation, command
from rollview.cli.shell import run_shell
from rollview.cli.statements import QueryWish, run_query, run_statements, split_statements
from rollview.core.interval import Interval
from rollview.core.states import Rewrite
from rollview.errors import RollviewError, UsageError
from rollview.project import start_project

app = typer.Typer()

Limit = Annotated[
    int | None, typer.Option("--limit", "-n", min=0, help="Show at most this many rows of a query; 0 shows all.")
]
AllowUnsafe = Annotated[
    bool,
    typer.Option("--allow-unsafe", help="Let statements call Java, run programs and read files outside the warehouse."),
]


@command(app, "init")
def init(
    run: Invocation,
    folder: Annotated[Path, typer.Argument(help="The project's folder.")] = Path(),
    catalog: Annotated[
        str | None,
        typer.Option(
            "--catalog", help="A PostgreSQL URL for the catalog, as env:NAME or file:PATH; SQLite by default."
        ),
    ] = None,
) -> None:
    """Start a project: a folder with rollview.yaml, views/ and an empty warehouse.

    Example: rollview init shop && cd shop
    """
    base = run.project_dir or Path()
    run.output.show(start_project((base / folder).resolve(), catalog))


@command(app, "sql")
def sql(
    run: Invocation,
    statements: Annotated[list[str] | None, typer.Argument(help="SQL text; '-' reads it from stdin.")] = None,
    file: Annotated[list[Path] | None, typer.Option("--file", "-f", help="Read statements from a file.")] = None,
    limit: Limit = None,
    allow_unsafe: AllowUnsafe = False,
    as_of: Annotated[str | None, typer.Option("--as-of", help="Answer a query as of a csn or a time.")] = None,
    max_staleness: Annotated[
        str | None, typer.Option("--max-staleness", help="How old a query's answer may be: '5 minutes', '10 commits'.")
    ] = None,
    rewrite: Annotated[
        Rewrite, typer.Option("--rewrite", help="Whether the answer may come from views that the query does not name.")
    ] = Rewrite.AUTO,
    explain: Annotated[
        bool, typer.Option("--explain", help="Tell how a query would be answered, without Spark and without rows.")
    ] = False,
) -> None:
    """Run SQL. Changes of several statements are one transaction: all of them or none.

    A query is answered at one csn, the newest unless said otherwise, from whatever is cheapest: tables, views that it
    names, or views that hold what it asks for.

    Examples:

      rollview sql "CREATE TABLE orders (id BIGINT PRIMARY KEY, amount DECIMAL(12,2))"

      rollview sql "INSERT INTO orders VALUES (1, 9.90)" "DELETE FROM orders WHERE id = 7"

      rollview sql -f changes.sql

      rollview sql "SELECT * FROM orders" --output json

      rollview sql -f revenue_of_states.sql --max-staleness '5 minutes' --explain
    """
    texts = [*(read_text(path) for path in file or ()), *(_given(text) for text in statements or ())]
    pieces = tuple(piece for text in texts for piece in split_statements(text))
    if not pieces:
        raise UsageError("There is no SQL to run.", hint="Give statements, or a file with -f.")
    if explain or as_of is not None or max_staleness is not None or rewrite is not Rewrite.AUTO:
        _answer_query(run, pieces, QueryWish(as_of, max_staleness, rewrite, explain), limit)
        return
    with run.warehouse() as warehouse, run.working("Running SQL"):
        answers = run_statements(warehouse, pieces, run.limit(limit), allow_unsafe)
    run.output.show(answers)


def _answer_query(run: Invocation, pieces: tuple[str, ...], wish: QueryWish, limit: int | None) -> None:
    if len(pieces) != 1:
        raise UsageError("These options are for one query.", hint="Give one SELECT.")
    with run.warehouse() as warehouse, run.working("Asking"):
        answer = run_query(warehouse, pieces[0], wish, run.limit(limit), run.output.note)
    run.output.show(answer)


@command(app, "shell")
def shell(run: Invocation, limit: Limit = None, allow_unsafe: AllowUnsafe = False) -> None:
    """Type SQL statement by statement in one warm Spark session.

    Each statement ends with a semicolon and is a transaction of its own, unless BEGIN; and COMMIT; hold several
    together.
    """
    with run.warehouse() as warehouse:
        run_shell(run, warehouse, run.limit(limit), allow_unsafe)


@command(app, "capture")
def capture(
    run: Invocation,
    names: Annotated[list[str] | None, typer.Argument(help="Only these sources; all by default.")] = None,
) -> None:
    """Take in what the sources have committed since they were last read. Starts no Spark.

    A source that fails stops no other; the command then ends with 1, or with 3 if trying again may help.
    """
    with run.warehouse() as warehouse, run.working("Capturing"):
        captured = warehouse.capture(tuple(names or ()))
    run.output.show(captured)
    failed = [source for source in captured.sources if source.problem is not None]
    if failed:
        raise typer.Exit(ExitCode.TRY_AGAIN if all(source.retryable for source in failed) else ExitCode.FAILED)


@command(app, "run")
def run_(
    run: Invocation,
    interval: Annotated[float, typer.Option("--interval", min=0.1, help="Seconds from one round to the next.")] = 10.0,
    rounds: Annotated[int, typer.Option("--rounds", min=0, help="Stop after this many rounds; 0 never stops.")] = 0,
) -> None:
    """Capture the sources, refresh the views and deliver to subscribers, each as it asks, until SIGTERM or Ctrl-C.

    A source or view without a schedule gets its turn every --interval seconds. 'schedule' in rollview.yaml and the view
    property 'rollview.schedule' set one: every 10 seconds, cron 0 * * * *, within 5 minutes, continuous, or manual;
    'propagate' and 'rollview.propagate' do so for propagation alone. Work in progress is finished before the command
    stops. Work that failed is reported, and retried with growing pauses. Several of these commands may run at once.
    """
    told = run.project().config
    with run.warehouse() as warehouse, schedule.stopping() as stop:
        for event in warehouse.run(interval, stop, rounds or None, told.schedule, told.propagate):
            show_event(run, event)
            sys.stdout.flush()


def show_event(
    run: Invocation, event: results.Captured | results.Refreshed | results.Delivered | RollviewError
) -> None:
    """Only what is worth a line."""
    match event:
        case RollviewError():
            run.output.error(event)
        case results.Refreshed() if event.views:
            run.output.show(event)
        case results.Delivered():
            given = tuple(one for one in event.subscribers if one.batches or one.problem)
            if given:
                run.output.show(replace(event, subscribers=given))
        case results.Captured():
            told = tuple(one for one in event.sources if one.units or one.problem or one.notes)
            if told:
                run.output.show(replace(event, sources=told))


@command(app, "refresh")
def refresh(
    run: Invocation,
    select: Annotated[
        list[str] | None,
        typer.Option("--select", "-s", help="Only these views: v, +v with what it reads, v+ with what reads it."),
    ] = None,
    to: Annotated[str, typer.Option("--to", help="Refresh up to this csn or time.")] = "latest",
    mode: Annotated[
        str | None,
        typer.Option("--mode", help="auto: the cheaper way; incremental: refuse to recompute; or recompute."),
    ] = None,
    profile: Annotated[bool, typer.Option("--profile", help="Show where the time went, and which terms ran.")] = False,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers", min=1, help="Number of threads, for views that do not read each other.", show_default=False
        ),
    ] = None,
) -> None:
    """Bring views up to date: propagate what changed and apply it, in dependency order.

    Examples:

      rollview refresh

      rollview refresh --select +revenue_by_state

      rollview refresh --mode incremental --profile

      rollview refresh --workers 4
    """
    point = run.point(to).at
    with run.warehouse() as warehouse, run.working("Refreshing views") as working:
        answer = warehouse.refresh(tuple(select or ()), point, mode, working.tell, workers)
    run.output.show(results.Profile(answer.csn, answer.views, answer.lagging) if profile else answer)


@command(app, "propagate")
def propagate(
    run: Invocation,
    select: Annotated[
        list[str] | None,
        typer.Option("--select", "-s", help="Only these views: v, +v with what it reads, v+ with what reads it."),
    ] = None,
    to: Annotated[str, typer.Option("--to", help="Propagate up to this csn or time.")] = "latest",
) -> None:
    """Compute the changes of views, but do not apply them: readers see them after 'refresh' or 'view roll'.

    Example: rollview propagate --select revenue_by_state
    """
    point = run.point(to).at
    with run.warehouse() as warehouse, run.working("Propagating") as working:
        answer = warehouse.propagate(tuple(select or ()), to=point, on_progress=working.tell)
    run.output.show(answer)


@command(app, "status")
def status(run: Invocation) -> None:
    """Show the views: csn, high-water mark, staleness, policy, last refresh. Starts no Spark."""
    with run.warehouse() as warehouse:
        run.output.show(warehouse.status())


@command(app, "log")
def log(
    run: Invocation,
    after: Annotated[int, typer.Option("--after", min=0, help="Only commits after this csn.")] = 0,
    through: Annotated[int | None, typer.Option("--through", help="Only commits up to this csn.")] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=0, help="Show only this many of the newest; 0 shows all.")
    ] = 20,
) -> None:
    """Show the ledger: every committed transaction, its csn, time and changes. Starts no Spark."""
    with run.warehouse() as warehouse:
        end = warehouse.snapshot().moment.csn if through is None else through
        if end < after:
            raise UsageError(f"There is no commit after {after} and up to {end}.")
        run.output.show(Ledger(warehouse.catalog.ledger(Interval(after, end), limit or None)))


def _given(text: str) -> str:
    return typer.get_text_stream("stdin").read() if text == "-" else text
