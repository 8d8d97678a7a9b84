"""What another process does to a catalog. Run as a program: ``worker.py TASK URL ...``; answers on stdout, by line."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime

from rollview import errors
from rollview.catalog import Catalog


def create(url: str) -> None:
    """Create the catalog, or find that another was first."""
    try:
        Catalog.create(url)
        say("created")
    except errors.AlreadyExists:
        say("exists")


def commit(url: str, times: str) -> None:
    """Commit units of work one after another, as fast as they come."""
    catalog = Catalog.open(url)
    hear()
    for _ in range(int(times)):
        commit_one(catalog)


def fork(url: str) -> None:
    """Commit, let a forked child commit, and commit again."""
    catalog = Catalog.open(url)
    commit_one(catalog)
    child = os.fork()
    if child:
        os.waitpid(child, 0)
    commit_one(catalog)


def commit_one(catalog: Catalog) -> None:
    with catalog.write() as writer:
        moment = writer.commit_unit(
            source="local", position="", transaction="", source_time=datetime.now(UTC), changes=()
        )
    say(str(moment.csn))


def hold(url: str, seconds: str, *things: str) -> None:
    """Hold a lease, and write under it when told to."""
    catalog = Catalog.open(url, lease_seconds=float(seconds))
    with catalog.lease(*things, wait=0) as lease:
        say("held")
        hear()
        try:
            with catalog.write(lease) as writer:
                writer.commit_unit(
                    source="slow", position="", transaction="", source_time=datetime.now(UTC), changes=()
                )
            say("wrote")
        except errors.RollviewError as error:
            say(error.code)


def count(url: str, file: str, times: str) -> None:
    """Read, wait and write a number in a file: right only if nobody else does so meanwhile."""
    catalog = Catalog.open(url)
    hear()
    for _ in range(int(times)):
        with catalog.lease("relation:counter", wait=60), open(file, "r+") as shared:  # noqa: PTH123
            number = int(shared.read())
            time.sleep(0.002)
            shared.seek(0)
            shared.write(str(number + 1))


def wait(url: str, *things: str) -> None:
    """Wait for things that somebody else holds, and take them."""
    with Catalog.open(url).lease(*things, wait=120):
        say("held")


def say(text: str) -> None:
    print(text, flush=True)


def hear() -> None:
    say("ready")
    sys.stdin.readline()


TASKS: dict[str, Callable[..., None]] = {task.__name__: task for task in (create, commit, fork, hold, count, wait)}

if __name__ == "__main__":
    TASKS[sys.argv[1]](*sys.argv[2:])
