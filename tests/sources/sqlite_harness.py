from __future__ import annotations

import sqlite3
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

from rollview.sources import SourceSettings, TableSettings
from rollview.sources.sqlite.source import SqliteSource
from tests.sources.harness import ACCOUNTS, NOTES, Bag, Write
from tests.sources.sql_harness import statements


class SqliteHarness:
    kind = "sqlite"
    capabilities = SqliteSource.capabilities

    def __init__(self, folder: Path) -> None:
        self.path = folder / "bank.db"
        self.connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=30)
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("PRAGMA synchronous = OFF")
        self.connection.execute("CREATE TABLE account (id INTEGER PRIMARY KEY, owner TEXT, balance DECIMAL(12,2))")
        self.connection.execute("CREATE TABLE note (text TEXT)")
        self.write(*(Write("account", None, row) for row in ACCOUNTS), *(Write("note", None, row) for row in NOTES))

    def settings(self) -> SourceSettings:
        tables = (TableSettings("account", "account"), TableSettings("note", "note"))
        return SourceSettings("sqlite", str(self.path), tables)

    def write(self, *writes: Write) -> None:
        self.connection.execute("BEGIN IMMEDIATE")
        for write in writes:
            for sql, values in statements(write, "?", "rowid"):
                self.connection.execute(sql, tuple(map(_plain, values)))
        self.connection.execute("COMMIT")

    def execute(self, *texts: str) -> list[Any]:
        """Whatever other connections have altered: this one finds that out by reading."""
        self.leftovers()
        return [row for text in texts for row in self.connection.execute(text).fetchall()]

    def rows(self, table: str) -> Bag:
        rows = self.connection.execute(f"SELECT * FROM {table}").fetchall()
        return Counter(
            tuple(_money(value) if table == "account" and i == 2 else value for i, value in enumerate(row))
            for row in rows
        )

    def empty(self, table: str) -> None:
        self.connection.execute(f"DELETE FROM {table}")

    def lose(self) -> None:
        for name in self.leftovers():
            if "_log_" in name:
                self.connection.execute(f"DELETE FROM {name}")

    def leftovers(self) -> list[str]:
        found = self.connection.execute("SELECT name FROM sqlite_schema WHERE name LIKE '%rollview%'").fetchall()
        return [name for (name,) in found]

    def close(self) -> None:
        self.connection.close()


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Decimal) else value


def _money(value: Any) -> Decimal | None:
    return None if value is None else Decimal(repr(value)).quantize(Decimal("0.01"))
