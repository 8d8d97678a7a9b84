"""What queries cost: milliseconds, measured once on SQLite with tables of 100,000 rows and four columns.

The times are those of the processor alone, the least of many runs, so a busy machine measures the same. The delays of
the paper belong to its machines, on which the same queries took longer; ``SLOWNESS`` keeps the proportion of query to
delay. Only figures with delays depend on it.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

ROWS = 100_000
SLOWNESS = 40.0
_OPEN = 2**31


@dataclass(frozen=True, slots=True)
class ServiceTimes:
    """``plain``, ``versioned``: one row joined with a table, without an index, and the same as of a version.
    ``whole``, ``whole_versioned``: all rows of a table. ``compensate``: one update taken out of an answer. ``write``:
    one row of the view. ``adapt``: six tables joined and the view written anew. ``hand_over``: work given to a thread.
    """

    plain: float = 2.39
    versioned: float = 5.48
    whole: float = 58.3
    whole_versioned: float = 60.1
    compensate: float = 0.043
    write: float = 0.0015
    adapt: float = 645.0
    hand_over: float = 0.02

    def slower(self, times: float) -> ServiceTimes:
        return ServiceTimes(*(getattr(self, name) * times for name in self.__slots__))


RECORDED = ServiceTimes()


def measure_service_times() -> ServiceTimes:
    """The same queries on this machine: some ten seconds."""
    with closing(sqlite3.connect(":memory:")) as database:
        _fill(database)
        as_of = "v_start <= 5 AND v_end > 5"
        joined = " ".join(f"JOIN plain AS p{n} USING (k)" for n in range(2, 7))
        queries = {
            "plain": ("SELECT * FROM plain WHERE k = 500", 30),
            "versioned": (f"SELECT k, a, b, c FROM versioned WHERE {as_of} AND k = 500", 30),
            "whole": ("SELECT * FROM plain", 10),
            "whole_versioned": (f"SELECT k, a, b, c FROM versioned WHERE {as_of}", 10),
            "compensate": ("CREATE TEMP TABLE answer AS SELECT d.* FROM delta d JOIN delta e USING (k)", 50),
            "write": ("UPDATE view SET a = a + 1 WHERE k = 500", 50),
            "adapt": (f"CREATE TEMP TABLE answer AS SELECT * FROM plain AS p1 {joined}", 3),
        }
        taken = {name: min(_taken(database, *query)) for name, query in queries.items()}
    return ServiceTimes(**taken)


def _fill(database: sqlite3.Connection) -> None:
    rows = [(k, k * 7 % ROWS, k, k) for k in range(ROWS)]
    for table, columns in (("plain", ""), ("view", ""), ("delta", ""), ("versioned", ", v_start INT, v_end INT")):
        database.execute(f"CREATE TABLE {table} (k INT, a INT, b INT, c INT{columns})")
    database.executemany("INSERT INTO plain VALUES (?, ?, ?, ?)", rows)
    database.executemany("INSERT INTO view VALUES (?, ?, ?, ?)", rows)
    database.executemany(f"INSERT INTO versioned VALUES (?, ?, ?, ?, 0, {_OPEN})", rows)
    database.execute("INSERT INTO delta VALUES (500, 1, 1, 1)")
    database.execute("CREATE INDEX by_key ON view (k)")


def _taken(database: sqlite3.Connection, query: str, times: int) -> list[float]:
    return [_one(lambda: database.execute(query).fetchall(), database) for _ in range(times)]


def _one(run: Callable[[], object], database: sqlite3.Connection) -> float:
    began = time.process_time()
    run()
    took = (time.process_time() - began) * 1000
    database.execute("DROP TABLE IF EXISTS temp.answer")
    return took
