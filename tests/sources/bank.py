"""A bank with accounts in PostgreSQL and MariaDB, and people who move money inside each and between both."""

from __future__ import annotations

import random
import threading
from contextlib import closing
from decimal import Decimal
from typing import Any

import psycopg

from rollview.capture.stored_rows import load_rows
from rollview.catalog import Part
from rollview.core.interval import Csn
from rollview.core.names import COUNT, CSN
from rollview.relations.folders import delta_folder
from rollview.sources import GlobalSettings, SourceSettings, TableSettings
from rollview.warehouse import Warehouse
from tests.sources.mariadb_harness import MariadbHarness
from tests.sources.postgres_harness import PostgresHarness

ACCOUNTS = 10
EACH = 100
TOTAL = Decimal(2 * ACCOUNTS * EACH)
WRITERS = 8
TOGETHER = GlobalSettings(sources=("pg", "my"))
TABLES = ("pg_money", "my_money")
VIEWS = (
    "CREATE MATERIALIZED VIEW total AS SELECT SUM(balance) AS balance FROM "
    "(SELECT balance FROM pg_money UNION ALL SELECT balance FROM my_money) AS both",
    "CREATE MATERIALIZED VIEW beside AS SELECT p.id, p.balance + m.balance AS balance "
    "FROM pg_money AS p JOIN my_money AS m ON p.id = m.id",
)


class Bank:
    def __init__(self, pg: PostgresHarness, my: MariadbHarness) -> None:
        self.pg, self.my = pg, my
        self.transfers = 0
        self.globals = 0
        self._lock = threading.Lock()
        table = "CREATE TABLE money (id INT PRIMARY KEY, balance DECIMAL(12,2))"
        rows = ", ".join(f"({number}, {EACH})" for number in range(ACCOUNTS))
        for run in (lambda text: pg.connection.execute(text.encode()), my.execute):
            run(table)
            run(f"INSERT INTO money VALUES {rows}")
        pg.connection.execute("ALTER TABLE money REPLICA IDENTITY FULL")

    def settings(self, name: str) -> SourceSettings:
        harness: PostgresHarness | MariadbHarness = self.pg if name == "pg" else self.my
        return SourceSettings(harness.kind, harness.url, (TableSettings(f"{name}_money", "money"),), {}, TOGETHER)

    def work(self, transfers: int, pause: float) -> list[threading.Thread]:
        """Eight people at once, each with connections of their own."""
        people = [
            threading.Thread(target=self._person, args=(number, transfers // WRITERS, pause))
            for number in range(WRITERS)
        ]
        for person in people:
            person.start()
        return people

    def _person(self, number: int, transfers: int, pause: float) -> None:
        chance = random.Random(number)
        with (
            psycopg.connect(self.pg.url, autocommit=True) as pg,
            closing(self.my.server.connect(self.my.database)) as my,
        ):
            for turn in range(transfers):
                kind = chance.choice(("pg", "my", "both"))
                if kind == "both":
                    self._across(pg, my, f"t-{number}-{turn}", chance)
                else:
                    self._inside(pg if kind == "pg" else my.cursor(), chance)
                with self._lock:
                    self.transfers += 1
                    self.globals += kind == "both"
                threading.Event().wait(chance.random() * pause)

    def _inside(self, run: Any, chance: random.Random) -> None:
        amount = chance.randint(1, 9)
        changes = sorted(zip(chance.sample(range(ACCOUNTS), 2), (amount, -amount), strict=True))
        for text in ("BEGIN", *(_change(account, by) for account, by in changes), "COMMIT"):
            run.execute(text)

    def _across(self, pg: Any, my: Any, gid: str, chance: random.Random) -> None:
        amount = chance.choice((-1, 1)) * chance.randint(1, 9)
        here, there = (chance.randrange(ACCOUNTS) for _ in range(2))
        cursor, xid = my.cursor(), f"'{gid}','my'"
        for text in ("BEGIN", _change(here, amount), f"PREPARE TRANSACTION '{gid}'"):
            pg.execute(text)
        for text in (f"XA START {xid}", _change(there, -amount), f"XA END {xid}", f"XA PREPARE {xid}"):
            cursor.execute(text)
        both = [lambda: pg.execute(f"COMMIT PREPARED '{gid}'"), lambda: cursor.execute(f"XA COMMIT {xid}")]
        chance.shuffle(both)
        for commit in both:
            commit()


def _change(account: int, by: int) -> str:
    return f"UPDATE money SET balance = balance + {by} WHERE id = {account}"


def moved(warehouse: Warehouse) -> dict[Csn, Decimal]:
    """By how much each commit changed the sum over all accounts; nothing is right."""
    sums: dict[Csn, Decimal] = {}
    snapshot = warehouse.snapshot()
    for table in TABLES:
        relation = snapshot.get(table)
        rows = load_rows(delta_folder(warehouse.root / "data", relation), relation.pins[Part.DELTA].version)
        columns = (rows[name].to_pylist() for name in (CSN, "balance", COUNT))
        for csn, balance, count in zip(*columns, strict=True):
            sums[csn] = sums.get(csn, Decimal(0)) + balance * count
    return sums
