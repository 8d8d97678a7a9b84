"""The first copy while four writers work as fast as they can, and then the log from exactly there.

``ROLLVIEW_HANDOVERS=20`` runs for each kind are promised.
"""

from __future__ import annotations

import os
import random
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg

from rollview.warehouse import Warehouse
from tests.sources.harness import capture, stored

RUNS = int(os.environ.get("ROLLVIEW_HANDOVERS", "2"))
ROWS = 200
MOST = 400 * RUNS
"""Transactions of one writer: on a slow machine the log would otherwise grow faster than it is read."""


@contextmanager
def executor(bank: Any) -> Iterator[Callable[..., None]]:
    """A connection of its own, which runs statements as one transaction."""
    if bank.kind == "sqlite":
        own: Any = sqlite3.connect(bank.path, isolation_level=None, timeout=60, check_same_thread=False)
        own.execute("PRAGMA synchronous = OFF")
        run = own.execute
    elif bank.kind == "postgres":
        own = psycopg.connect(bank.url, autocommit=True)
        run = lambda text: own.execute(text.encode())  # noqa: E731
    else:
        own = bank.server.connect(bank.database)
        run = own.cursor().execute

    def execute(*texts: str) -> None:
        for text in ("BEGIN IMMEDIATE" if bank.kind == "sqlite" else "BEGIN", *texts, "COMMIT"):
            run(text)

    with closing(own):
        yield execute


def test_the_log_goes_on_where_the_copy_ends(bank: Any, tmp_path: Path) -> None:
    with executor(bank) as execute:
        execute(*(f"INSERT INTO account VALUES ({number}, 'w', 0)" for number in range(100, 100 + ROWS)))
    for run in range(RUNS):
        with Warehouse.create(tmp_path / f"w{run}") as warehouse:
            written = _hand_over(warehouse, bank, run)
            assert written > 20
            for table in ("account", "note"):
                assert stored(warehouse, table) == bank.rows(table)
            warehouse.remove_source("bank")
    assert bank.leftovers() == []


def _hand_over(warehouse: Warehouse, bank: Any, seed: int) -> int:
    stop = threading.Event()
    done = [0, 0, 0, 0]
    problems: list[BaseException] = []

    def work(number: int) -> None:
        chance = random.Random(f"{seed}{number}")
        try:
            with executor(bank) as execute:
                while not stop.is_set() and done[number] < MOST:
                    row = 100 + number * ROWS // 4 + chance.randrange(ROWS // 4)
                    execute(
                        f"UPDATE account SET balance = balance + 1, owner = '{chance.random()}' WHERE id = {row}",
                        f"INSERT INTO note VALUES ('{seed}.{number}.{done[number]}')",
                    )
                    done[number] += 1
        except BaseException as error:
            problems.append(error)

    writers = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for writer in writers:
        writer.start()
    try:
        warehouse.add_source("bank", bank.settings())
        for _ in range(3):
            capture(warehouse)
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    assert problems == []
    capture(warehouse)
    return sum(done)
