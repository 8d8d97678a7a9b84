"""A bank in PostgreSQL in which money moves all the time, and ``rollview run`` beside it as a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import psycopg

from rollview.catalog import Part
from rollview.sources import SourceSettings, TableSettings
from rollview.warehouse import Warehouse
from tests.sources.postgres_harness import PostgresHarness

ACCOUNTS, OWNERS, EACH = 200, 7, 1000
TOTAL = ACCOUNTS * EACH

VIEWS = {
    "sums": "SELECT owner, SUM(balance) AS balance, COUNT(*) AS n FROM accounts GROUP BY owner",
    "largest": "SELECT owner, MAX(balance) AS balance FROM accounts GROUP BY owner",
    "different": "SELECT DISTINCT owner, balance FROM accounts",
    "named": "SELECT a.id, a.balance, o.name FROM accounts AS a LEFT JOIN owners AS o ON a.owner = o.id",
    "both": "SELECT a.id, a.balance, o.id AS oid FROM accounts AS a FULL JOIN owners AS o ON a.owner = o.id",
    "counted": "SELECT owner, COUNT(DISTINCT balance) AS n FROM accounts GROUP BY owner",
    "rich": "SELECT name FROM owners AS o WHERE EXISTS (SELECT 1 FROM accounts WHERE owner = o.id AND balance > 1400)",
}


class BusyBank:
    """Each commit moves money between two accounts; now and then an account changes hands, or an owner the name."""

    def __init__(self, pg: PostgresHarness, per_second: float) -> None:
        self.pg, self.per_second, self.commits, self.failures = pg, per_second, 0, list[Exception]()
        pg.connection.execute(
            "CREATE TABLE accounts (id INT PRIMARY KEY, owner INT, balance BIGINT);"
            "CREATE TABLE owners (id INT PRIMARY KEY, name TEXT);"
            "ALTER TABLE accounts REPLICA IDENTITY FULL; ALTER TABLE owners REPLICA IDENTITY FULL"
        )
        pg.connection.execute(
            f"INSERT INTO accounts SELECT i, i % {OWNERS}, {EACH} FROM generate_series(0, {ACCOUNTS - 1}) AS i;"
            f"INSERT INTO owners SELECT i, 'owner ' || i FROM generate_series(1, {OWNERS}) AS i".encode()
        )
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._write)
        self._chance = Random(11)

    def settings(self, address: str) -> SourceSettings:
        return SourceSettings("postgres", address, tuple(TableSettings(name, name) for name in ("accounts", "owners")))

    def begin(self, at_once: int) -> None:
        """So many commits as quickly as they go, and then so many per second."""
        with psycopg.connect(self.pg.url, autocommit=True) as connection:
            self._change_often(connection, at_once)
        self._thread.start()

    def end(self) -> None:
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()
        assert self.failures == []

    def answer(self, view: str) -> Counter[tuple[Any, ...]]:
        return Counter(self.pg.connection.execute(VIEWS[view].encode()).fetchall())

    def _write(self) -> None:
        began, before = time.monotonic(), self.commits
        try:
            with psycopg.connect(self.pg.url, autocommit=True) as connection:
                while not self._stop.is_set():
                    self._change_often(connection, 1)
                    ahead = (self.commits - before) / self.per_second - (time.monotonic() - began)
                    if ahead > 0:
                        self._stop.wait(ahead)
        except Exception as error:
            self.failures.append(error)

    def _change_often(self, connection: psycopg.Connection[Any], times: int) -> None:
        for _ in range(times):
            self._change(connection, self._chance)
            self.commits += 1

    def _change(self, connection: psycopg.Connection[Any], chance: Random) -> None:
        one, two = chance.sample(range(ACCOUNTS), 2)
        if chance.random() < 0.02:
            other = f"UPDATE accounts SET owner = (owner + %s) %% {OWNERS + 2} WHERE id = %s"
            connection.execute(other.encode(), (chance.randint(1, OWNERS + 1), one))
        elif chance.random() < 0.02:
            connection.execute("UPDATE owners SET name = name || '.' WHERE id = %s", (chance.randint(1, OWNERS),))
        else:
            moved = "UPDATE accounts SET balance = balance + CASE id WHEN %s THEN %s ELSE %s END WHERE id IN (%s, %s)"
            money = chance.randint(1, 50)
            connection.execute(moved, (one, money, -money, one, two))


class Daemon:
    """``rollview run`` in a project's folder; a kill takes its Java with it."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / f"run-{time.monotonic_ns()}.log"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "rollview.cli.main", "run", "--output", "json"],
                # As it is installed: Python keeps what it has compiled, or each life would begin with that.
                env={**os.environ, "PYTHONPATH": ":".join(sys.path), "PYTHONDONTWRITEBYTECODE": ""},
                cwd=folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def said(self) -> str:
        return self._log.read_text()

    def turns(self) -> list[str]:
        """The views that were refreshed, in order. A kill may cut the last line."""
        lines = [json.loads(line) for line in self.said().splitlines() if line.startswith("{") and line.endswith("}")]
        return [view["name"] for line in lines for view in line.get("views", ())]

    def kill(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(60)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(300)

    def memory(self) -> dict[str, int]:
        """Resident bytes of the daemon and of its driver."""
        found = {"daemon": 0, "driver": 0}
        for status in Path("/proc").glob("[0-9]*/stat"):
            try:
                name, _, rest = status.read_text().partition(" (")[2].rpartition(") ")
            except OSError:
                continue
            fields = rest.split()
            if int(fields[2]) == self.process.pid:
                found["driver" if name == "java" else "daemon"] += int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
        return found


def marks(warehouse: Warehouse) -> dict[str, int]:
    return {view.name: view.pins[Part.DELTA].through for view in warehouse.snapshot().views()}
