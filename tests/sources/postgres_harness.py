from __future__ import annotations

import uuid
from threading import Lock
from typing import Any

import psycopg

from rollview.sources import SourceSettings, TableSettings
from rollview.sources.postgres.source import PostgresSource
from tests.servers.postgres import PostgresServer
from tests.sources.harness import ACCOUNTS, NOTES, Bag, Write
from tests.sources.sql_harness import bag, statements


class PostgresHarness:
    kind = "postgres"
    capabilities = PostgresSource.capabilities

    def __init__(self, server: PostgresServer) -> None:
        self.server = server
        self.database = f"d_{uuid.uuid4().hex[:12]}"
        server.execute(f"CREATE DATABASE {self.database}")
        self.url = server.url(self.database)
        self.connection = psycopg.connect(self.url, autocommit=True)
        self._lock = Lock()
        self.connection.execute(
            "CREATE TABLE account (id INT PRIMARY KEY, owner VARCHAR(100), balance NUMERIC(12,2));"
            "CREATE TABLE note (text TEXT);"
            "ALTER TABLE account REPLICA IDENTITY FULL; ALTER TABLE note REPLICA IDENTITY FULL"
        )
        self.write(*(Write("account", None, row) for row in ACCOUNTS), *(Write("note", None, row) for row in NOTES))

    def settings(self) -> SourceSettings:
        tables = (TableSettings("account", "public.account"), TableSettings("note", "note"))
        return SourceSettings("postgres", self.url, tables)

    def write(self, *writes: Write) -> None:
        with self._lock, self.connection.transaction():
            for write in writes:
                for sql, values in statements(write, "%s", "ctid"):
                    self.connection.execute(sql.encode(), values)

    def execute(self, *texts: str) -> list[Any]:
        cursors = [self.connection.execute(text.encode()) for text in texts]
        return [row for cursor in cursors if cursor.description for row in cursor.fetchall()]

    def rows(self, table: str) -> Bag:
        return bag(self.connection.execute(f"SELECT * FROM {table}".encode()).fetchall())

    def empty(self, table: str) -> None:
        self.connection.execute(f"TRUNCATE {table}".encode())

    def lose(self) -> None:
        for name in self.slots():
            self.connection.execute("SELECT pg_drop_replication_slot(%s)", (name,))

    def slots(self) -> list[str]:
        query = "SELECT slot_name FROM pg_replication_slots WHERE database = current_database()"
        return [name for (name,) in self.connection.execute(query)]

    def leftovers(self) -> list[str]:
        return self.slots() + [name for (name,) in self.connection.execute("SELECT pubname FROM pg_publication")]

    def close(self) -> None:
        for name in self.slots():
            self.connection.execute("SELECT pg_drop_replication_slot(%s)", (name,))
        self.connection.close()
        self.server.execute(f"DROP DATABASE {self.database} WITH (FORCE)")
