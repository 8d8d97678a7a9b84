"""How fast sources are captured, and what that costs their writers: ``python -m bench.capture``.

Rows per second from a source's log to a committed base delta, beside the raw reader of the same driver over the same
log in the same run, which reads everything and keeps nothing. Then writers with and without a capture beside them.
"""

from __future__ import annotations

import argparse
import gc
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Protocol

import psycopg
from rich.console import Console
from rich.table import Table
from tests.servers.mariadb import MariadbServer, find_mariadb, running_mariadb
from tests.servers.postgres import PostgresServer, running_postgres

from bench.goals import Figures
from rollview.sources import SourceSettings, TableSettings
from rollview.warehouse import Warehouse

COLUMNS = "id INT PRIMARY KEY, owner VARCHAR(40), state VARCHAR(2), balance DECIMAL(12,2), at TIMESTAMP(6) NULL"
ROW = "({id}, 'owner number {id}', 'CA', {id}.25, '2026-12-13 17:00:00.123456')"
PER_COMMIT = 500
_PROGRAM = """
import sys, time
from rollview.warehouse import Warehouse
with Warehouse.open(sys.argv[1]) as warehouse:
    while True:
        warehouse.capture()
        time.sleep(1)
"""


class Side(Protocol):
    def settings(self) -> SourceSettings: ...
    def run(self, *texts: str) -> None:
        """One transaction."""

    def raw(self, rows: int) -> int:
        """Read the log from the beginning as fast as the driver can; how many rows were seen."""

    def writer(self) -> Callable[[int], None]:
        """Inserts a row of this number in a transaction of its own."""


class PostgresSide:
    def __init__(self, server: PostgresServer, stack: ExitStack) -> None:
        self._url = server.url()
        self._connection = stack.enter_context(psycopg.connect(self._url, autocommit=True))
        self._stack = stack
        self.run(f"CREATE TABLE account ({COLUMNS})", "ALTER TABLE account REPLICA IDENTITY FULL")

    def settings(self) -> SourceSettings:
        return SourceSettings("postgres", self._url, (TableSettings("account", "account"),))

    def run(self, *texts: str) -> None:
        with self._connection.transaction():
            for text in texts:
                self._connection.execute(text.encode())

    def raw(self, rows: int) -> int:
        (slot,) = self._connection.execute("SELECT slot_name FROM pg_replication_slots").fetchone() or ("",)
        query = (
            "SELECT data FROM pg_logical_slot_peek_binary_changes(%s, NULL, NULL, 'proto_version', '1', "
            "'publication_names', %s)"
        )
        seen = 0
        with self._connection.cursor(binary=True) as cursor:
            for (data,) in cursor.stream(query, (slot, slot), size=1000):
                seen += data[:1] == b"I"
        return seen

    def writer(self) -> Callable[[int], None]:
        own = self._stack.enter_context(psycopg.connect(self._url, autocommit=True))
        return lambda number: own.execute(f"INSERT INTO account VALUES {ROW.format(id=number)}".encode()) and None


class MariadbSide:
    def __init__(self, server: MariadbServer, stack: ExitStack) -> None:
        with closing(server.connect()) as admin:
            admin.cursor().execute("CREATE DATABASE shop")
        self._server, self._stack = server, stack
        self._connection = stack.enter_context(closing(server.connect("shop")))
        self.run(f"CREATE TABLE account ({COLUMNS})")
        self._start = ""

    def settings(self) -> SourceSettings:
        with self._connection.cursor() as cursor:
            cursor.execute("SELECT @@gtid_binlog_pos")
            self._start = str(cursor.fetchone()[0])
        return SourceSettings("mariadb", self._server.url("shop"), (TableSettings("account", "account"),))

    def run(self, *texts: str) -> None:
        with self._connection.cursor() as cursor:
            for text in ("BEGIN", *texts, "COMMIT"):
                cursor.execute(text)

    def raw(self, rows: int) -> int:
        from pymysqlreplication import BinLogStreamReader
        from pymysqlreplication.row_event import WriteRowsEvent

        seen = 0
        address = {"host": "127.0.0.1", "port": self._server.port, "user": "root"}
        about = {"is_mariadb": True, "auto_position": self._start, "blocking": True, "enable_logging": False}
        reader = BinLogStreamReader(
            connection_settings=address, server_id=4242, only_events=[WriteRowsEvent], only_schemas=["shop"], **about
        )
        with closing(reader) as events:
            for event in events:
                seen += len(event.rows)
                if seen >= rows:
                    break
        return seen

    def writer(self) -> Callable[[int], None]:
        own = self._stack.enter_context(closing(self._server.connect("shop")))
        return lambda number: own.cursor().execute(f"INSERT INTO account VALUES {ROW.format(id=number)}") and None


class SqliteSide:
    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._path, self._stack = folder / "shop.db", stack
        self._connection = self._open()
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute(f"CREATE TABLE account ({COLUMNS})")

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, isolation_level=None, timeout=30)
        connection.execute("PRAGMA synchronous = NORMAL")
        return self._stack.enter_context(closing(connection))

    def settings(self) -> SourceSettings:
        types = {"at": "string", "balance": "decimal(12,2)"}
        return SourceSettings("sqlite", str(self._path), (TableSettings("account", "account", types),))

    def run(self, *texts: str) -> None:
        for text in ("BEGIN IMMEDIATE", *texts, "COMMIT"):
            self._connection.execute(text)

    def raw(self, rows: int) -> int:
        query = "SELECT name FROM sqlite_schema WHERE name LIKE '%rollview%log%' AND type = 'table'"
        (log,) = self._connection.execute(query).fetchone()
        return len(self._connection.execute(f'SELECT * FROM "{log}"').fetchall())

    def writer(self) -> Callable[[int], None]:
        own = self._open()
        return lambda number: own.execute(f"INSERT INTO account VALUES {ROW.format(id=number)}") and None


@contextmanager
def sides(folder: Path, only: str | None = None) -> Iterator[Mapping[str, Side]]:
    with ExitStack() as stack:
        found: dict[str, Side] = {}
        if only in (None, "postgres"):
            found["postgres"] = PostgresSide(stack.enter_context(running_postgres()), stack)
        base = find_mariadb()
        if only in (None, "mariadb") and base is not None:
            found["mariadb"] = MariadbSide(stack.enter_context(running_mariadb(base)), stack)
        if only in (None, "sqlite"):
            found["sqlite"] = SqliteSide(folder, stack)
        yield found


def measure(rows: int, seconds: float, only: str | None = None) -> Figures:
    figures: Figures = {}
    with tempfile.TemporaryDirectory(prefix="rollview-capture-") as place, sides(Path(place), only) as found:
        for kind, side in found.items():
            alone = _throughput(side, seconds, 10**8)
            with Warehouse.create(Path(place) / f"warehouse-{kind}") as warehouse:
                warehouse.add_source(kind, side.settings())
                figures[kind] = _captured(side, warehouse, rows)
                figures[kind] |= _beside(side, warehouse, seconds, alone)
    return figures


def _captured(side: Side, warehouse: Warehouse, rows: int) -> dict[str, float]:
    # What is loaded once per process is not counted.
    side.run(f"INSERT INTO account VALUES {ROW.format(id=10**7)}")
    warehouse.capture()
    for first in range(0, rows, PER_COMMIT):
        values = ", ".join(ROW.format(id=number) for number in range(first, first + PER_COMMIT))
        side.run(f"INSERT INTO account VALUES {values}")
    raw = min(_seconds(lambda: side.raw(rows), rows) for _ in range(3))
    # Nor is what was loaded looked through for garbage meanwhile.
    gc.collect()
    began = time.perf_counter()
    (done,) = warehouse.capture().sources
    took = time.perf_counter() - began
    assert (done.problem, done.rows) == (None, rows), done
    return {"raw": rows / raw, "captured": rows / took}


def _seconds(run: Callable[[], int], rows: int) -> float:
    began = time.perf_counter()
    seen = run()
    assert seen >= rows, seen
    return time.perf_counter() - began


def _beside(side: Side, warehouse: Warehouse, seconds: float, first: float) -> dict[str, float]:
    """Commits per second alone and while another process captures, turn by turn."""
    alone, captured = [first], []
    for turn in range(3):
        program = [sys.executable, "-c", _PROGRAM, str(warehouse.root)]
        daemon = subprocess.Popen(program)
        try:
            time.sleep(3)
            captured.append(_throughput(side, seconds, 10**8 + 10**7 * (2 * turn + 1)))
        finally:
            daemon.kill()
            daemon.wait()
        alone.append(_throughput(side, seconds, 10**8 + 10**7 * (2 * turn + 2)))
    return {"alone": statistics.median(alone[1:]), "beside": statistics.median(captured), "without": first}


def _throughput(side: Side, seconds: float, number: int) -> float:
    write = side.writer()
    first, end = number, time.perf_counter() + seconds
    while time.perf_counter() < end:
        write(number)
        number += 1
    return (number - first) / seconds


def show(figures: Figures, console: Console) -> None:
    headings = ("rows/s raw", "rows/s captured", "÷ raw", "commits/s alone", "captured", "÷ alone")
    table = Table("source", *headings, title="Capture")
    for kind, one in figures.items():
        speeds = (f"{one['raw']:,.0f}", f"{one['captured']:,.0f}", f"{one['captured'] / one['raw']:.2f}")
        load = (f"{one['alone']:,.0f}", f"{one['beside']:,.0f}", f"{one['beside'] / one['alone']:.2f}")
        table.add_row(kind, *speeds, *load)
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--seconds", type=float, default=5.0, help="how long writers write each time")
    parser.add_argument("--only", help="one kind of source")
    options = parser.parse_args()
    show(measure(options.rows, options.seconds, options.only), Console())


if __name__ == "__main__":
    main()
