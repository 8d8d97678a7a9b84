"""view create, list, show, log, changes, decide, set, drop, roll, read, delta, explain, verify, check-history."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from rollview.cli.answers import Dropped, LayoutDelta, LayoutDeltas, Verified, ViewsCreated, fetch, list_relations
from rollview.cli.exits import ExitCode
from rollview.cli.files import read_text
from rollview.cli.general import Limit
from rollview.cli.invocation import Invocation, command
from rollview.cli.relations import show_relation
from rollview.cli.statements import split_statements
from rollview.definitions import read_definitions
from rollview.errors import UsageError

app = typer.Typer(no_args_is_help=True, help="Materialized views.")

Name = Annotated[str, typer.Argument(help="The view's name.")]


@command(app, "create")
def create(
    run: Invocation,
    files: Annotated[list[Path], typer.Argument(help="SQL or Python files with definitions.")],
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Replace views that Python files define again; in SQL write CREATE OR REPLACE."),
    ] = False,
) -> None:
    """Create views from .sql files, or from .py files that use @rollview.materialized_view.

    A .py file is run as a program, with all that you may do: give only files that you trust.

    Example: rollview view create views/revenue_by_state.sql

    where the file says: CREATE MATERIALIZED VIEW revenue_by_state AS SELECT state, SUM(amount) AS revenue FROM ...
    """
    statements = [text for path in files for text in _definitions(path, replace)]
    if not statements:
        raise UsageError("The files define no view.", hint="Write CREATE MATERIALIZED VIEW name AS SELECT ….")
    with run.warehouse() as warehouse, run.working("Creating views"):
        created = tuple(warehouse.create_view(text) for text in statements)
    run.output.show(ViewsCreated(created))


@command(app, "list")
def list_(run: Invocation) -> None:
    """List the views, each after what it reads."""
    with run.warehouse() as warehouse:
        run.output.show(list_relations("view", warehouse.snapshot().views()))


@command(app, "show")
def show(
    run: Invocation,
    name: Name,
    at: Annotated[str | None, typer.Option("--at", help="As it is defined at this csn or time.")] = None,
) -> None:
    """Show one view: columns, definition, stored parts, what it reads and what reads it.

    Example: rollview view show revenue_by_state --at 790
    """
    point = None if at is None else run.point(at).at
    with run.warehouse() as warehouse:
        run.output.show(show_relation(warehouse, name, "view", point))


@command(app, "log")
def log(run: Invocation, name: Name) -> None:
    """List the definitions that a view has had, from which csn on each holds, and why."""
    with run.warehouse() as warehouse:
        run.output.show(warehouse.view_log(name))


@command(app, "changes")
def changes(run: Invocation, name: Name) -> None:
    """Show what a view could become that a schema change stopped: each definition, its rows, and what it costs.

    Tables that may stand for others are declared in rollview.yaml under substitutes; what the view can do without, and
    which rows are acceptable, in its properties rollview.dispensable and rollview.extent.

    Example: rollview view changes revenue_by_state
    """
    with run.warehouse() as warehouse:
        with run.working(f"Looking for definitions of {name}"):
            answer = warehouse.view_changes(name)
        run.output.show(answer)


@command(app, "decide")
def decide(
    run: Invocation,
    name: Name,
    number: Annotated[int, typer.Argument(help="The number that 'view changes' shows.")],
) -> None:
    """Take one of the definitions that 'view changes' shows. It counts from the csn of the change on.

    Example: rollview view decide revenue_by_state 1
    """
    with run.warehouse() as warehouse, run.working(f"Deciding for {name}"):
        answer = warehouse.decide_view(name, number)
    run.output.show(answer)


@command(app, "set")
def set_(
    run: Invocation,
    name: Name,
    properties: Annotated[list[str], typer.Argument(help="KEY=VALUE, as in TBLPROPERTIES; KEY= removes one.")],
) -> None:
    """Set properties of a view, for example its policy or schedule. Nothing is rebuilt.

    Example: rollview view set revenue_by_state rollview.policy=ipda
    """
    pairs = [given.partition("=") for given in properties]
    wrong = [key for key, equals, _ in pairs if not equals or not key]
    if wrong:
        raise UsageError(f"'{wrong[0]}' is not KEY=VALUE.", hint="For example: rollview.policy=ipda")
    with run.warehouse() as warehouse, run.working(f"Setting properties of {name}"):
        answer = warehouse.set_view(name, {key: value for key, _, value in pairs})
    run.output.show(answer)


@command(app, "drop")
def drop(run: Invocation, name: Name) -> None:
    """Drop a view that no other view reads."""
    with run.warehouse() as warehouse:
        warehouse.drop_view(name)
    run.output.show(Dropped("view", name))


@command(app, "roll")
def roll(
    run: Invocation,
    names: Annotated[list[str], typer.Argument(help="The views; several are published together.")],
    to: Annotated[str, typer.Option("--to", help="A csn, 'latest', or a time (local unless it has an offset).")],
) -> None:
    """Roll views to a commit or a moment, all of them at once for every reader.

    Examples:

      rollview view roll revenue_by_state --to 812

      rollview view roll revenue_by_state top_customers --to '2026-12-13 17:00'
    """
    point = run.point(to).at
    with run.warehouse() as warehouse, run.working(f"Rolling {', '.join(names)}") as working:
        answer = warehouse.roll(tuple(names), point, on_progress=working.tell)
    run.output.show(answer)


@command(app, "read")
def read(
    run: Invocation,
    name: Name,
    as_of: Annotated[str | None, typer.Option("--as-of", help="A csn or time; the view's own by default.")] = None,
    limit: Limit = None,
) -> None:
    """Read a view, as it is or as of any csn its deltas still cover.

    Example: rollview view read revenue_by_state --as-of 790
    """
    point = None if as_of is None else run.point(as_of).at
    with run.warehouse() as warehouse:
        with run.working(f"Reading {name}"):
            read = warehouse.read_labelled(name, as_of=point)
            rows = replace(fetch(read.frame, run.limit(limit)), places=read.places)
        run.output.show(rows)


@command(app, "delta")
def delta(
    run: Invocation,
    name: Name,
    after: Annotated[str, typer.Option("--after", help="A csn or time; changes come after it.")],
    through: Annotated[str, typer.Option("--through", help="A csn or time; the last one included.")] = "latest",
    by_layout: Annotated[
        bool, typer.Option("--by-layout", help="Apart for each definition that the view has had, in its columns.")
    ] = False,
    limit: Limit = None,
) -> None:
    """Read a view's changes over (after, through]: its columns with _count and _csn.

    The columns are those of the interval's end. One that the view did not have before is NULL in earlier changes; with
    --by-layout all are as they were.

    Example: rollview view delta revenue_by_state --after 790 --through 812
    """
    begin, end = run.point(after).at, run.point(through).at
    with run.warehouse() as warehouse:
        if by_layout:
            with run.working(f"Reading changes of {name}"):
                pieces = [(one.after, one.through) for one in warehouse.layouts_over(name, begin, end)]
                rows = [fetch(warehouse.delta(name, *piece), run.limit(limit)) for piece in pieces]
            told = (LayoutDelta(*piece, some) for piece, some in zip(pieces, rows, strict=True))
            run.output.show(LayoutDeltas(tuple(told)))
            return
        with run.working(f"Reading changes of {name}"):
            frame = warehouse.delta(name, warehouse.resolve(begin, name), warehouse.resolve(end, name))
            changes = fetch(frame, run.limit(limit))
        run.output.show(changes)


@command(app, "explain")
def explain(
    run: Invocation,
    name: Name,
    replace: Annotated[
        Path | None, typer.Option("--replace", help="A file with another definition: tell what replacing would do.")
    ] = None,
) -> None:
    """Show how each operator of a view is maintained, and the propagation SQL. Starts no Spark.

    With --replace: how the view would get the rows of another definition, and what would be read for that.

    Example: rollview view explain revenue_by_state --replace views/revenue_by_state.sql
    """
    with run.warehouse() as warehouse:
        if replace is None:
            run.output.show(warehouse.explain(name))
            return
        texts = _definitions(replace, replace=True)
        with run.working(f"Comparing definitions of {name}"):
            plan = warehouse.explain_replace(name, *texts)
        run.output.show(plan)


@command(app, "verify")
def verify(
    run: Invocation,
    names: Annotated[list[str] | None, typer.Argument(help="The views; all by default.")] = None,
    at: Annotated[str | None, typer.Option("--at", help="At this csn or time; the view's own by default.")] = None,
    ask_sources: Annotated[
        bool, typer.Option("--ask-sources", help="Read tables that are not copied once, whole, at their sources.")
    ] = False,
) -> None:
    """Compare views with recomputation at the same csn. Fails with 1 when any differs."""
    point = None if at is None else run.point(at).at
    with run.warehouse() as warehouse, run.working("Recomputing") as working:
        done = []
        for name in names or [view.name for view in warehouse.snapshot().views()]:
            working.now(f"Recomputing {name}")
            done.append(warehouse.verify(name, at=point, ask_sources=ask_sources))
    run.output.show(Verified(tuple(done)))
    if not all(view.equal for view in done):
        raise typer.Exit(ExitCode.FAILED)


@command(app, "check-history")
def check_history(
    run: Invocation,
    name: Name,
    after: Annotated[str | None, typer.Option("--after", help="A csn or time; the oldest in reach by default.")] = None,
    through: Annotated[
        str | None, typer.Option("--through", help="A csn or time; the view's newest by default.")
    ] = None,
    published: Annotated[
        bool, typer.Option("--published", help="Judge the versions that readers got, and not all that can be read.")
    ] = False,
    ask_sources: Annotated[
        bool, typer.Option("--ask-sources", help="Read tables that are not copied once, whole, at their sources.")
    ] = False,
) -> None:
    """Judge a view's history: its rows at every csn against its definition over the tables at that csn.

    Complete: readers can see every state that the tables passed through, and each is right. With --published: they got
    every one, in order; strong, if some were skipped. Fails with 1 when any version is wrong. Each csn is recomputed:
    give an interval where there are many.

    Example: rollview view check-history revenue_by_state --after 790
    """
    begin, end = (None if text is None else run.point(text).at for text in (after, through))
    with run.warehouse() as warehouse, run.working(f"Recomputing {name}") as working:
        verdict = warehouse.check_history(
            name,
            begin,
            end,
            lambda csn: working.now(f"Recomputing {name} at {csn}"),
            published=published,
            ask_sources=ask_sources,
        )
    run.output.show(verdict)
    if not all(version.reflects for version in verdict.versions):
        raise typer.Exit(ExitCode.FAILED)


def _definitions(path: Path, replace: bool) -> tuple[str, ...]:
    if path.suffix == ".py":
        return tuple(definition.to_sql(replace=replace) for definition in read_definitions(path))
    return split_statements(read_text(path))
