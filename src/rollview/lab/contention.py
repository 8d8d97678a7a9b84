"""What keeping a view costs those who write to its tables, on a real PostgreSQL server.

Law: Salem et al., *How To Roll a Join*, section 1: propagation in small transactions leaves writers alone, where one
transaction that refreshes the whole view does not. A view of two tables is kept while four write, one of the tables
twenty times as often as the other: by nobody, by REFRESH, by Propagate and by RollingPropagate, with the functions that
views of a warehouse use. Each query numbers the transactions that its snapshot sees, so the last number is the csn that
it saw. In the end the delta, added to the first rows, is the view.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

from rollview.compensate.pacing import IntervalWidth, TooManyRowsError, propagate_to, roll_to
from rollview.compensate.rolling import Rolling
from rollview.compensate.timed import Part, PropagationQuery
from rollview.core.interval import Interval
from rollview.core.lazy import lazy_module
from rollview.core.references import masked
from rollview.errors import RollviewError, UsageError
from rollview.results import ExperimentRun

if TYPE_CHECKING:
    import psycopg
else:
    psycopg = lazy_module("psycopg")

ROWS = 200_000
WRITERS = 4
_SCHEMA = "rollview_lab"
_SKEW = 20
_MOST = 5_000
_TABLES = ("r1", "r2")


@dataclass(frozen=True, slots=True)
class Contention:
    """Writers beside one way to keep the view: commits per second, milliseconds of a commit; of the samples those in
    which somebody waited for a lock, and the age of the oldest snapshot, in milliseconds."""

    kept_by: str
    commits: float
    p50: float
    p95: float
    p99: float
    lock_waits: float
    oldest_snapshot: float
    rounds: int


RECORDED = (
    Contention("nobody", 1406, 0.6, 1.4, 2.5, 0.0, 1, 200),
    Contention("REFRESH", 1144, 1.0, 2.8, 8.2, 0.0, 266, 61),
    Contention("Propagate", 1142, 0.8, 3.7, 5.8, 0.0, 71, 16),
    Contention("rolling", 1108, 0.9, 3.7, 5.6, 0.0, 132, 5),
)


def measure_contention(url: str, seconds: float = 10.0, rows: int = ROWS) -> tuple[Contention, ...]:
    """Makes a schema of its own there, and drops it at the end."""
    with ExitStack() as stack:
        admin = stack.enter_context(_connected(url))
        stack.enter_context(_tables(admin, rows))
        return tuple(_measured(url, name, way, seconds, rows) for name, way in _WAYS.items())


def run_contention(url: str, seconds: float) -> ExperimentRun:
    title, paper = "writers beside those who keep a view", "Salem et al., How To Roll a Join"
    lines = [" ".join(f"{cell:>10}" for cell in row) for row in contention_rows(measure_contention(url, seconds))]
    return ExperimentRun("contention", title, paper, tuple(lines), None)


def contention_rows(found: Sequence[Contention]) -> Iterator[tuple[str, ...]]:
    """With headings."""
    yield "kept by", "commits/s", "p50 ms", "p95 ms", "p99 ms", "lock waits", "snapshot ms", "rounds"
    for one in found:
        times = (f"{one.p50:.1f}", f"{one.p95:.1f}", f"{one.p99:.1f}")
        waits = f"{one.lock_waits:.1%}"
        yield one.kept_by, f"{one.commits:.0f}", *times, waits, f"{one.oldest_snapshot:.0f}", str(one.rounds)


@contextmanager
def _connected(url: str) -> Iterator[psycopg.Connection[Any]]:
    try:
        connection = psycopg.connect(url, autocommit=True, options=f"-c search_path={_SCHEMA}")
    except ModuleNotFoundError:
        raise UsageError("This needs the package psycopg.", hint="pip install 'rollview[postgres]'") from None
    except psycopg.Error as error:
        raise UsageError(f"PostgreSQL cannot be reached: {masked(str(error).splitlines()[0])}") from None
    with connection:
        yield connection


@contextmanager
def _tables(admin: psycopg.Connection[Any], rows: int) -> Iterator[None]:
    admin.execute(f"CREATE SCHEMA {_SCHEMA}".encode())
    try:
        for name in _TABLES:
            admin.execute(f"CREATE TABLE {name} (k int PRIMARY KEY, v int NOT NULL)".encode())
            admin.execute(f"INSERT INTO {name} SELECT k, 0 FROM generate_series(1, {rows}) AS k".encode())
            admin.execute(f"CREATE TABLE {name}_log (xid xid8, k int, v int, n int)".encode())
            admin.execute(f"CREATE INDEX ON {name}_log (xid)".encode())
        admin.execute(b"CREATE TABLE csns (csn bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, xid xid8 UNIQUE)")
        admin.execute(b"CREATE MATERIALIZED VIEW whole AS SELECT a.v AS x, b.v AS y FROM r1 a JOIN r2 b USING (k)")
        admin.execute(b"ANALYZE")
        yield
    finally:
        admin.execute(f"DROP SCHEMA {_SCHEMA} CASCADE".encode())


@dataclass
class SqlQueries:
    """Propagation queries on the tables as they are, each in a transaction of its own."""

    connection: psycopg.Connection[Any]
    delta: dict[tuple[int, int, int], int] = field(default_factory=dict)
    _given: list[tuple[int, int, int, int]] = field(default_factory=list)
    _most: int | None = None
    _largest: int = 0

    def begin(self, most: int | None) -> None:
        self._given, self._most, self._largest = [], most, 0

    def keep(self) -> int:
        for csn, x, y, count in self._given:
            self.delta[csn, x, y] = self.delta.get((csn, x, y), 0) + count
        return self._largest

    def execute(self, query: PropagationQuery) -> int:
        with self.connection.transaction():
            seen = self.number()
            rows = self.connection.execute(_statement(query).encode()).fetchall()
        self._largest = max(self._largest, len(rows))
        if self._most is not None and len(rows) > self._most:
            raise TooManyRowsError
        self._given += [(csn, x, y, count * query.sign) for csn, x, y, count in rows]
        return seen

    def now(self) -> int:
        with self.connection.transaction():
            return self.number()

    def number(self) -> int:
        """All that is committed and has no csn gets one; the newest, which is what this transaction sees."""
        self.connection.execute(b"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        self.connection.execute(
            b"INSERT INTO csns (xid) SELECT xid FROM (SELECT xid FROM r1_log UNION SELECT xid FROM r2_log) AS told "
            b"WHERE NOT EXISTS (SELECT FROM csns WHERE csns.xid = told.xid) ORDER BY xid"
        )
        (newest,) = self.connection.execute(b"SELECT COALESCE(max(csn), 0) FROM csns").fetchone() or (0,)
        return int(newest)


def _statement(query: PropagationQuery) -> str:
    a, b = (_part(name, part) for name, part in zip(_TABLES, query.parts, strict=True))
    return f"SELECT LEAST(a.csn, b.csn), a.v, b.v, a.n * b.n FROM {a} AS a JOIN {b} AS b USING (k)"


def _part(table: str, part: Part) -> str:
    if part is None:
        return f"(SELECT k, v, 1 AS n, NULL::bigint AS csn FROM {table})"
    inside = f"csn > {part.after} AND csn <= {part.through}"
    return f"(SELECT k, v, n, csn FROM {table}_log JOIN csns USING (xid) WHERE {inside})"


Keep = Callable[[SqlQueries, int], int]
"""Keep the view, complete up to a csn, a little further; up to where."""


def _nobody(queries: SqlQueries, mark: int) -> int:
    time.sleep(0.05)
    return mark


def _refresh(queries: SqlQueries, mark: int) -> int:
    queries.connection.execute(b"REFRESH MATERIALIZED VIEW whole")
    return mark


def _propagate(queries: SqlQueries, mark: int) -> int:
    goal = queries.now()
    propagate_to(queries, 2, Interval(mark, goal), IntervalWidth(_MOST))
    return goal


def _rolling(queries: SqlQueries, mark: int) -> int:
    goal = queries.now()
    rolling = Rolling(2, queries.execute, begin=mark)
    known = dict(queries.delta)
    roll_to(queries, rolling, goal, [IntervalWidth(_MOST), IntervalWidth(_MOST)])
    # What lies beyond is not complete, and comes again.
    added = {key: count for key, count in queries.delta.items() if key[0] <= goal}
    queries.delta = {**known, **added}
    return goal


_WAYS: Mapping[str, Keep] = {"nobody": _nobody, "REFRESH": _refresh, "Propagate": _propagate, "rolling": _rolling}


def _measured(url: str, name: str, keep: Keep, seconds: float, rows: int) -> Contention:
    stop, took, samples = threading.Event(), list[float](), list[tuple[bool, float]]()
    with ExitStack() as stack:
        queries = SqlQueries(stack.enter_context(_connected(url)))
        # What was logged for the way before costs this one nothing.
        queries.connection.execute(b"TRUNCATE r1_log, r2_log, csns RESTART IDENTITY")
        first, mark, done = _shown(queries), 0, 0
        workers = [
            threading.Thread(target=_write, args=(stack.enter_context(_connected(url)), number, rows, stop, took))
            for number in range(WRITERS)
        ]
        workers.append(threading.Thread(target=_watch, args=(stack.enter_context(_connected(url)), stop, samples)))
        for worker in workers:
            worker.start()
        began = time.monotonic()
        try:
            while time.monotonic() < began + seconds:
                mark, done = keep(queries, mark), done + 1
        finally:
            passed = time.monotonic() - began
            stop.set()
            for worker in workers:
                worker.join()
        if name in ("Propagate", "rolling"):
            keep(queries, mark)
            _check(name, queries, first)
    took = sorted(took) or [0.0]
    waited = sum(waits for waits, _ in samples) / max(1, len(samples))
    oldest = 1000 * max((age for _, age in samples), default=0.0)
    p50, p95, p99 = (1000 * took[int(len(took) * share)] for share in (0.5, 0.95, 0.99))
    return Contention(name, len(took) / passed, p50, p95, p99, waited, oldest, done)


def _shown(queries: SqlQueries) -> dict[tuple[int, int], int]:
    query = b"SELECT a.v, b.v, count(*) FROM r1 a JOIN r2 b USING (k) GROUP BY 1, 2"
    return {(x, y): count for x, y, count in queries.connection.execute(query).fetchall()}


def _check(name: str, queries: SqlQueries, first: dict[tuple[int, int], int]) -> None:
    found = dict(first)
    for (_, x, y), count in queries.delta.items():
        found[x, y] = found.get((x, y), 0) + count
    if {row: count for row, count in found.items() if count} != _shown(queries):
        raise RollviewError(f"What {name} gave is not the view.")


def _write(
    connection: psycopg.Connection[Any], number: int, rows: int, stop: threading.Event, took: list[float]
) -> None:
    chance = Random(number)
    while not stop.is_set():
        table, key = "r2" if chance.randrange(_SKEW) == 0 else "r1", chance.randint(1, rows)
        began = time.perf_counter()
        with connection.transaction():
            changed = connection.execute(f"UPDATE {table} SET v = v + 1 WHERE k = {key} RETURNING v".encode())
            (value,) = changed.fetchone() or (0,)
            told = f"(pg_current_xact_id(), {key}, {value - 1}, -1), (pg_current_xact_id(), {key}, {value}, 1)"
            connection.execute(f"INSERT INTO {table}_log VALUES {told}".encode())
        took.append(time.perf_counter() - began)
        time.sleep(0.002)


_ACTIVITY = b"""
SELECT COALESCE(bool_or(wait_event_type = 'Lock'), FALSE),
  COALESCE(max(extract(epoch FROM clock_timestamp() - xact_start)) FILTER (WHERE backend_xmin IS NOT NULL), 0)
FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


def _watch(connection: psycopg.Connection[Any], stop: threading.Event, samples: list[tuple[bool, float]]) -> None:
    while not stop.wait(0.01):
        waits, age = connection.execute(_ACTIVITY).fetchone() or (False, 0.0)
        samples.append((bool(waits), float(age)))
