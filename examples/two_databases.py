"""A view over tables of two databases that know nothing of each other.

Two SQLite files stand for a shop's and a bank's database; PostgreSQL, MariaDB and MySQL are added the same way.
Run it with: python examples/two_databases.py
"""

import sqlite3
import tempfile
from pathlib import Path

import rollview

UNPAID = """
CREATE MATERIALIZED VIEW unpaid AS
SELECT o.id, o.amount FROM orders o LEFT JOIN payments p ON p.order_id = o.id WHERE p.id IS NULL
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shop = database(folder / "shop.db", "CREATE TABLE orders (id INTEGER PRIMARY KEY, amount INTEGER NOT NULL)")
        bank = database(folder / "bank.db", "CREATE TABLE payments (id INTEGER PRIMARY KEY, order_id INTEGER NOT NULL)")
        shop.execute("INSERT INTO orders VALUES (1, 20), (2, 35)")
        rollview.create(folder / "warehouse").close()
        with rollview.open(folder / "warehouse") as warehouse:
            add(warehouse, "shop", folder / "shop.db", "orders")
            add(warehouse, "bank", folder / "bank.db", "payments")
            warehouse.create_view(UNPAID)
            show(warehouse, "at first")
            bank.execute("INSERT INTO payments VALUES (1, 2)")
            warehouse.capture()
            warehouse.refresh()
            show(warehouse, "after a payment")


def database(path: Path, table: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(table)
    return connection


def add(warehouse: rollview.Warehouse, name: str, path: Path, table: str) -> None:
    tables = (rollview.TableSettings(table, table),)
    warehouse.add_source(name, rollview.SourceSettings("sqlite", str(path), tables))


def show(warehouse: rollview.Warehouse, when: str) -> None:
    rows = warehouse.read("unpaid").orderBy("id").collect()
    print(f"unpaid {when}:", ", ".join(f"order {row.id}" for row in rows))


if __name__ == "__main__":
    main()
