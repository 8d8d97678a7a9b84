"""maintain, recover."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import typer

from rollview.cli.invocation import Invocation, command

app = typer.Typer()


@command(app, "maintain")
def maintain(
    run: Invocation,
    select: Annotated[
        list[str] | None,
        typer.Option("--select", "-s", help="Only these: a table, v, +v with what it reads, v+ with what reads it."),
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Say what would be done, and change nothing.")] = False,
    prune_before: Annotated[
        str | None, typer.Option("--prune-before", help="Drop changes before this csn or time, for good.")
    ] = None,
    compress_before: Annotated[
        str | None,
        typer.Option("--compress-before", help="Keep only the net effect of the changes before this csn or time."),
    ] = None,
    overtake: Annotated[
        list[str] | None,
        typer.Option("--overtake", help="Do not wait for this subscriber: it has to resync afterwards."),
    ] = None,
    grace: Annotated[
        float, typer.Option("--grace", min=0, help="Hours in which a reader may still hold a file that is out of use.")
    ] = 1.0,
) -> None:
    """Save space: merge small files, prune and compress what the settings give up, remove what nobody can be reading.

    Without retention or detail in rollview.yaml, and without a csn, every csn stays in reach. What a view or a
    subscriber still has to read stays, and the answer names who holds it.

    Examples:

      rollview maintain --explain

      rollview maintain --select +revenue_by_state --compress-before '2026-12-01 00:00'
    """
    prune = None if prune_before is None else run.point(prune_before).at
    compress = None if compress_before is None else run.point(compress_before).at
    settings = run.project().config
    with run.warehouse() as warehouse, run.working("Maintaining") as working:
        answer = warehouse.maintain(
            tuple(select or ()),
            explain=explain,
            retention=settings.retention,
            detail=settings.detail,
            prune_before=prune,
            compress_before=compress,
            overtake=tuple(overtake or ()),
            grace=timedelta(hours=grace),
            on_progress=working.tell,
        )
    run.output.show(answer)


@command(app, "recover")
def recover(
    run: Invocation,
    accept_catalog: Annotated[
        bool,
        typer.Option("--accept-catalog", help="Go on from a catalog that is older than the data, without the rest."),
    ] = False,
    accept_clock: Annotated[
        bool, typer.Option("--accept-clock", help="The clock is right, although it is far ahead of another.")
    ] = False,
) -> None:
    """See whether the catalog and the data belong together, and go on after a backup of the catalog was restored.

    Every command refuses a catalog that is older than the data. Without an option this changes nothing and shows what
    would be lost. With --accept-catalog the warehouse goes on at the catalog's csn: what was committed and defined
    since is not in it. Folders of tables and views that it does not know stay where they are, for good.

    A commit whose time is more than a day ahead of what another clock says is refused, because the ledger's time cannot
    be taken back. Set the clock right; where it was wrong before and is right now, say so with --accept-clock.

    Examples:

      rollview recover

      rollview recover --accept-catalog
    """
    run.output.show(run.project().recover(accept_catalog=accept_catalog, accept_clock=accept_clock))
