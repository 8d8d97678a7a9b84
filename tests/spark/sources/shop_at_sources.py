"""A small shop in one or two databases, written to at random, and what views of it must show at every csn."""

from __future__ import annotations

import sqlite3
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from threading import Event
from typing import Any

import psycopg
import pymysql
from tests.servers.mariadb import MariadbServer
from tests.servers.postgres import PostgresServer

from rollview.core.interval import Interval
from rollview.core.names import COUNT, CSN
from rollview.relations.reader import stored_as
from rollview.sources import SourceSettings, TableSettings
from rollview.store.timed import loaded_changes
from rollview.warehouse import Warehouse

Execute = Callable[[str], Any]
Connect = Callable[[], Execute]
Rows = Counter[tuple[Any, ...]]

TABLES: Mapping[str, tuple[str, ...]] = {
    "orders": ("id", "customer", "amount"),
    "customers": ("id", "region", "name"),
    "regions": ("id", "title"),
    "visits": ("customer", "page"),
}
COLUMNS = {
    "orders": "id INTEGER PRIMARY KEY, customer INTEGER, amount INTEGER",
    "customers": "id INTEGER PRIMARY KEY, region INTEGER, name VARCHAR(20)",
    "regions": "id INTEGER PRIMARY KEY, title VARCHAR(20)",
    "visits": "customer INTEGER, page VARCHAR(20)",
}


class Database:
    """One database with some of the tables."""

    def __init__(self, kind: str, address: str, connect: Connect, tables: tuple[str, ...]) -> None:
        self.kind, self.address, self.connect, self.tables = kind, address, connect, tables
        self.execute = connect()
        self._writers: dict[int, Execute] = {}
        for table in tables:
            self.execute(f"CREATE TABLE {table} ({COLUMNS[table]})")
            if kind == "postgres":
                self.execute(f"ALTER TABLE {table} REPLICA IDENTITY FULL")

    def writer(self, number: int) -> Execute:
        """Each writer has one connection for all histories: a server has room for few."""
        if number not in self._writers:
            self._writers[number] = self.connect()
        return self._writers[number]

    def settings(self, asked: frozenset[str]) -> SourceSettings:
        tables = (TableSettings(t, t, needed=t in asked, asked=t in asked) for t in self.tables)
        return SourceSettings(self.kind, self.address, tuple(tables))

    def rows(self, table: str) -> Rows:
        return Counter(map(tuple, self.execute(f"SELECT {', '.join(TABLES[table])} FROM {table}").fetchall()))


@contextmanager
def sqlite_shop(folder: Path, tables: tuple[str, ...]) -> Iterator[Database]:
    path = folder / f"shop-{uuid.uuid4().hex[:8]}.db"
    with ExitStack() as stack:

        def connect() -> Execute:
            made = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30)
            stack.callback(made.close)
            made.execute("PRAGMA journal_mode = WAL")
            made.execute("PRAGMA synchronous = OFF")
            return made.execute

        yield Database("sqlite", str(path), connect, tables)


@contextmanager
def postgres_shop(server: PostgresServer, tables: tuple[str, ...]) -> Iterator[Database]:
    name = f"d_{uuid.uuid4().hex[:12]}"
    server.execute(f"CREATE DATABASE {name}")
    with ExitStack() as stack:
        stack.callback(server.execute, f"DROP DATABASE {name} WITH (FORCE)")
        of_database = f"FROM pg_replication_slots WHERE database = '{name}'"
        stack.callback(server.execute, f"SELECT pg_drop_replication_slot(slot_name) {of_database}")

        def connect() -> Execute:
            made = stack.enter_context(psycopg.connect(server.url(name), autocommit=True))
            return lambda text: made.execute(text.encode())

        yield Database("postgres", server.url(name), connect, tables)


@contextmanager
def mariadb_shop(server: MariadbServer, tables: tuple[str, ...]) -> Iterator[Database]:
    name = f"d_{uuid.uuid4().hex[:12]}"
    with ExitStack() as stack:
        admin = stack.enter_context(stack.enter_context(server.connect()).cursor())
        admin.execute(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
        stack.callback(admin.execute, f"DROP DATABASE {name}")

        def connect() -> Execute:
            cursor = stack.enter_context(stack.enter_context(server.connect(name)).cursor())

            def execute(text: str) -> Any:
                cursor.execute(text)
                return cursor

            return execute

        yield Database("mariadb", server.url(name), connect, tables)


def change(execute: Execute, table: str, chance: Random) -> None:
    """One random statement: keys are few, so that they come, go and come again."""
    number, other = chance.randint(1, 6), chance.choice(["NULL", 1, 2, 3, 4])
    word = chance.choice(["NULL", "'a'", "'b'"])
    if table == "visits":
        insert = f"INSERT INTO visits VALUES ({other}, {word})"
        execute(insert if chance.random() < 0.7 else f"DELETE FROM visits WHERE customer = {number}")
        return
    values = {"orders": (number, other, chance.randint(1, 9)), "customers": (number, other, word)}.get(
        table, (number, word)
    )
    if execute(f"SELECT 1 FROM {table} WHERE id = {number}").fetchone() is None:
        execute(f"INSERT INTO {table} VALUES ({', '.join(map(str, values))})")
    elif chance.random() < 0.4:
        execute(f"DELETE FROM {table} WHERE id = {number}")
    else:
        last = TABLES[table][1]
        execute(f"UPDATE {table} SET {last} = {values[1]} WHERE id = {number}")


def transaction(database: Database, chance: Random, execute: Execute | None = None) -> None:
    execute = execute or database.execute
    execute("BEGIN IMMEDIATE" if database.kind == "sqlite" else "BEGIN")
    for _ in range(chance.randint(1, 3)):
        change(execute, chance.choice(database.tables), chance)
    execute("COMMIT")


@contextmanager
def writers(databases: tuple[Database, ...], seed: int, most: int, count: int = 4) -> Iterator[None]:
    """So many write at the same time until the block ends, each at most so many transactions."""
    stop = Event()

    def write(number: int) -> None:
        chance, database = Random(f"{seed} {number}"), databases[number % len(databases)]
        execute = connected[number]
        for _ in range(most):
            if stop.wait(chance.random() * 0.2):
                return
            try:
                transaction(database, chance, execute)
            except (sqlite3.Error, psycopg.Error, pymysql.MySQLError):
                # Two have written the same key, or wait for each other.
                execute("ROLLBACK")

    connected = [databases[number % len(databases)].writer(number) for number in range(count)]
    with ThreadPoolExecutor(count) as pool:
        running = [pool.submit(write, number) for number in range(count)]
        try:
            yield
        finally:
            stop.set()
        for one in running:
            one.result()


def joined(rows: Mapping[str, Rows]) -> Rows:
    """orders ⋈ customers ⋈ regions, without their keys."""
    found: Rows = Counter()
    for (_, customer, amount), n in rows["orders"].items():
        for (key, region, name), m in rows["customers"].items():
            for (place, title), k in rows["regions"].items():
                if customer == key and region == place:
                    found[amount, name, title] += n * m * k
    return found


JOINED = """
    CREATE MATERIALIZED VIEW joined AS SELECT o.amount, c.name, r.title
    FROM orders o JOIN customers c ON o.customer = c.id JOIN regions r ON c.region = r.id
"""


def grouped(rows: Mapping[str, Rows]) -> Rows:
    sums: dict[Any, list[int]] = {}
    for (amount, _, title), n in joined(rows).items():
        one = sums.setdefault(title, [0, 0])
        one[0] += n * amount
        one[1] += n
    return Counter((title, total, n) for title, (total, n) in sums.items())


GROUPED = """
    CREATE MATERIALIZED VIEW grouped AS SELECT r.title, SUM(o.amount) AS total, COUNT(*) AS n
    FROM orders o JOIN customers c ON o.customer = c.id JOIN regions r ON c.region = r.id GROUP BY r.title
"""


def paired(rows: Mapping[str, Rows]) -> Rows:
    """Customers of one region with what they visited: a table twice, and one without a key."""
    found: Rows = Counter()
    for (one, region, _), n in rows["customers"].items():
        for (other, same, _), m in rows["customers"].items():
            for (customer, page), k in rows["visits"].items():
                if region is not None and region == same and customer == other and (page or "b") > "a":
                    found[one, other, page] += n * m * k
    return found


PAIRED = """
    CREATE MATERIALIZED VIEW paired AS SELECT a.id AS one, b.id AS other, v.page FROM customers a
    JOIN (SELECT id, region AS place FROM customers) b ON a.region = b.place
    JOIN visits v ON v.customer = b.id WHERE COALESCE(v.page, 'b') > 'a'
"""

VIEWS = {"joined": (JOINED, joined), "grouped": (GROUPED, grouped), "paired": (PAIRED, paired)}


def changes(warehouse: Warehouse, name: str, after: int, through: int) -> dict[int, Rows]:
    """By csn, the signed changes of a table or view."""
    found: dict[int, Rows] = {}
    if through > after:
        for row in warehouse.delta(name, after, through).collect():
            told = row.asDict()
            csn, count = told.pop(CSN), told.pop(COUNT)
            found.setdefault(csn, Counter())[tuple(told.values())] += count
    return found


def states(first: Rows, deltas: Mapping[int, Rows], after: int, through: int) -> dict[int, Rows]:
    """What was there at each csn."""
    now, found = Counter(first), {after: +first}
    for csn in range(after + 1, through + 1):
        now.update(deltas.get(csn, Counter()))
        assert not any(count < 0 for count in now.values())
        found[csn] = +now
    return found


class Truth:
    """Tables as their captured changes tell them, from a csn on at which they were read at their sources."""

    def __init__(self, warehouse: Warehouse, databases: tuple[Database, ...], tables: tuple[str, ...]) -> None:
        self.warehouse, self.tables = warehouse, tables
        self.capture()
        self.began = self.known = warehouse.snapshot().moment.csn
        self.first = {t: database.rows(t) for database in databases for t in database.tables if t in tables}
        self.deltas: dict[str, dict[int, Rows]] = {table: {} for table in tables}

    def capture(self) -> None:
        assert [done.problem for done in self.warehouse.capture().sources if done.problem] == []

    def note(self) -> None:
        """Before captured changes are pruned."""
        now, snapshot = self.warehouse.snapshot().moment.csn, self.warehouse.snapshot()
        for table in self.tables:
            stored = stored_as(self.warehouse.root / "data", snapshot.get(table))
            for told in loaded_changes(stored, Interval(self.known, now)).to_pylist():
                csn, count = told.pop(CSN), told.pop(COUNT)
                row = tuple(told[name] for name in TABLES[table])
                self.deltas[table].setdefault(csn, Counter())[row] += count
        self.known = now

    def check(self, *names: str) -> int:
        """Every view at every csn is what its tables then give. How many csns that were."""
        self.note()
        told = {t: states(self.first[t], self.deltas[t], self.began, self.known) for t in self.tables}
        for name in names:
            start = self.warehouse.snapshot().get(name).created
            rows = Counter(tuple(row) for row in self.warehouse.read(name, start).collect())
            shown = states(rows, changes(self.warehouse, name, start, self.known), start, self.known)
            for csn, found in shown.items():
                expected = +VIEWS[name][1]({table: told[table][csn] for table in self.tables})
                assert found == expected, (name, csn, found - expected, expected - found)
            assert Counter(tuple(row) for row in self.warehouse.read(name).collect()) == shown[self.known]
        return self.known - self.began
