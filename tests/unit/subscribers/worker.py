"""Delivers in a process of its own, to whoever has an address; and pulls in one, for who has none."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from multiprocessing import get_context
from random import Random

# Loaded once, before processes are forked.
import pyarrow.dataset
import pyarrow.parquet  # noqa: F401
import pyspark.sql.functions  # noqa: F401
import sqlalchemy.dialects.sqlite  # noqa: F401
from tests.unit.subscribers.consumer import told

from rollview import subscribers
from rollview.relations import reader as _reader  # noqa: F401
from rollview.subscribers import delivering as _delivering  # noqa: F401
from rollview.subscribers import files as _files  # noqa: F401
from rollview.warehouse import Warehouse

_processes = get_context("forkserver")
_processes.set_forkserver_preload([__name__])


def deliver_in_a_process(root: str, most_rows: int, fault: str | None = None) -> int | None:
    """Its exit code: 0, or that of a kill where it dies at the fault."""
    return _ended(_work, root, most_rows, fault)


def pull_in_a_process(root: str, store: str, most_rows: int, seed: int, fault: str | None = None) -> int | None:
    """The same for a puller, which keeps rows and csn in an SQLite file. ``fault``: ``pulled``, ``stored`` or
    ``acked``, and at which batch."""
    return _ended(_pull, root, store, most_rows, seed, fault)


def pulled(store: str) -> Iterator[tuple[list[tuple[object, ...]], int, int, bool]]:
    """What a puller has stored, batch by batch: changes, after, through, and whether they are all rows."""
    with closing(sqlite3.connect(store)) as file:
        for changes, after, through, full in file.execute("SELECT * FROM batch ORDER BY rowid"):
            yield [tuple(change) for change in json.loads(changes)], after, through, bool(full)


def _ended(work: Callable[..., None], *about: object) -> int | None:
    process = _processes.Process(target=work, args=about)
    process.start()
    process.join()
    return process.exitcode


def _work(root: str, most_rows: int, fault: str | None) -> None:
    if fault is not None:
        os.environ["ROLLVIEW_FAULT"] = fault
    with Warehouse.open(root) as warehouse:
        done = subscribers.deliver(warehouse._place, most_rows=most_rows)
    problems = [one.problem for one in done.subscribers if one.problem is not None]
    if problems:
        sys.exit(str(problems))


def _pull(root: str, store: str, most_rows: int, seed: int, fault: str | None) -> None:
    """Acknowledges some batches twice, and others again after later ones."""
    chance, acked, number = Random(seed), list[int](), 0

    def reach(step: str) -> None:
        if fault == f"{step}:{number}":
            os.kill(os.getpid(), signal.SIGKILL)

    with Warehouse.open(root) as warehouse, closing(sqlite3.connect(store)) as file:
        file.execute("CREATE TABLE IF NOT EXISTS batch (changes, after, through, is_full)")
        while (batch := warehouse.pull("x", most_rows=most_rows)) is not None:
            number += 1
            reach("pulled")
            (at,) = file.execute("SELECT MAX(through) FROM batch").fetchone()
            if at is None or batch.through > at:
                values = (json.dumps(told(batch.rows)), batch.after, batch.through, batch.full)
                with file:
                    file.execute("INSERT INTO batch VALUES (?, ?, ?, ?)", values)
            reach("stored")
            for _ in range(chance.randint(1, 2)):
                assert batch.ack() == batch.through
            if acked and chance.random() < 0.5:
                assert not warehouse.ack("x", chance.choice(acked)).moved
            acked.append(batch.through)
            reach("acked")
