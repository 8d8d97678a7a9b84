"""subscriber add, pull, ack, deliver, list, show, resync, remove."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from rollview.cli.answers import Dropped, SubscriberList, pulled
from rollview.cli.exits import ExitCode
from rollview.cli.invocation import Invocation, command
from rollview.core.interval import Csn
from rollview.errors import UsageError

app = typer.Typer(no_args_is_help=True, help="Programs outside that get a view's changes, each at its own position.")

Name = Annotated[str, typer.Argument(help="The subscriber's name.")]


@command(app, "add")
def add(
    run: Invocation,
    name: Name,
    view: Annotated[str, typer.Argument(help="The view whose changes it gets.")],
    from_: Annotated[
        str,
        typer.Option("--from", help="start: all rows, then changes; a csn: changes after it; now: later changes."),
    ] = "start",
    to: Annotated[
        str | None,
        typer.Option("--to", help="Deliver to a folder, http(s):// or kafka://; secrets by env:NAME or file:PATH."),
    ] = None,
) -> None:
    """Hand out a view's changes to a program outside, and keep them until it has acknowledged them.

    The program pulls, stores the rows and their csn together, and acknowledges. With --to, 'rollview run' and
    'rollview subscriber deliver' bring the changes to it. 'maintain' gives up nothing that it does not have yet.

    Examples:

      rollview subscriber add billing revenue_by_state

      rollview subscriber add alerts large_orders --from now

      rollview subscriber add archive revenue_by_state --to exports/revenue
    """
    with run.warehouse() as warehouse:
        run.output.show(warehouse.add_subscriber(name, view, _from(from_), to))


@command(app, "pull")
def pull(
    run: Invocation,
    name: Name,
    wait: Annotated[float, typer.Option("--wait", min=0, help="Seconds to wait for a change.")] = 0.0,
    most_rows: Annotated[
        int, typer.Option("--most-rows", min=1, help="End after the commit with which there are so many rows.")
    ] = 10_000,
) -> None:
    """Show the changes after the subscriber's position: whole commits, the same ones again until they are acknowledged.

    Every row has _change_type (insert, delete, update_preimage, update_postimage), _commit_version (the csn) and
    _commit_timestamp. Store the rows together with the csn that 'ack' is to be called with.

    Examples:

      rollview subscriber pull billing --wait 30

      rollview subscriber pull billing --output json
    """
    with run.warehouse() as warehouse:
        batch = warehouse.pull(name, wait, most_rows)
        (status,) = warehouse.subscribers(name)
    run.output.show(pulled(batch, status))


@command(app, "ack")
def ack(
    run: Invocation,
    name: Name,
    csn: Annotated[int, typer.Argument(help="Everything up to this csn is stored.", min=0)],
    full: Annotated[bool, typer.Option("--full", help="Of a batch with all rows at the csn.")] = False,
) -> None:
    """Acknowledge the changes up to a csn. Idempotent: a csn before the position changes nothing.

    All rows at a csn, which come first after 'add --from start' and 'resync', are acknowledged with --full, so that a
    late acknowledgement from before cannot stand for them.

    Example: rollview subscriber ack billing 812
    """
    with run.warehouse() as warehouse:
        run.output.show(warehouse.ack(name, csn, full=full))


@command(app, "deliver")
def deliver(
    run: Invocation,
    names: Annotated[list[str] | None, typer.Argument(help="Only these; all that have an address by default.")] = None,
) -> None:
    """Bring changes to the subscribers that have an address, as 'rollview run' does. Starts Spark only if it must.

    One that fails stops no other; the command then ends with 1, or with 3 if trying again may help.
    """
    with run.warehouse() as warehouse, run.working("Delivering"):
        done = warehouse.deliver(tuple(names or ()))
    run.output.show(done)
    failed = [one for one in done.subscribers if one.problem is not None]
    if failed:
        raise typer.Exit(ExitCode.TRY_AGAIN if all(one.retryable for one in failed) else ExitCode.FAILED)


@command(app, "list")
def list_(run: Invocation) -> None:
    """List the subscribers: view, position, how far behind. Starts no Spark."""
    with run.warehouse() as warehouse:
        run.output.show(SubscriberList(warehouse.subscribers()))


@command(app, "show")
def show(run: Invocation, name: Name) -> None:
    """Show one subscriber: its view, its position, and what keeps it from going on. Starts no Spark."""
    with run.warehouse() as warehouse:
        (status,) = warehouse.subscribers(name)
    run.output.show(status)


@command(app, "resync")
def resync(run: Invocation, name: Name) -> None:
    """Begin anew, for a subscriber that is out of reach: all rows at one csn come next, then changes.

    Example: rollview subscriber resync billing && rollview subscriber pull billing
    """
    with run.warehouse() as warehouse:
        run.output.show(warehouse.resync_subscriber(name))


@command(app, "remove")
def remove(run: Invocation, name: Name) -> None:
    """Forget a subscriber: it holds nothing back any more. What it was given stays where it is."""
    with run.warehouse() as warehouse:
        warehouse.remove_subscriber(name)
    run.output.show(Dropped("subscriber", name))


def _from(text: str) -> Csn | Literal["start", "now"]:
    word = text.strip().lower()
    if word == "start" or word == "now":
        return "start" if word == "start" else "now"
    if word.isdecimal():
        return int(word)
    raise UsageError(f"'{text}' is no place to begin from.", hint="Write start, now or a csn (812).")
