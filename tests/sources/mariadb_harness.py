from __future__ import annotations

import time
import uuid
from threading import Lock

from rollview.sources import SourceSettings, TableSettings
from rollview.sources.protocol import Capability
from tests.servers.mariadb import MariadbServer
from tests.sources.harness import ACCOUNTS, NOTES, Bag, Write
from tests.sources.sql_harness import bag, statements


class MariadbHarness:
    kind = "mariadb"
    capabilities: frozenset[Capability] = frozenset(Capability)

    def __init__(self, server: MariadbServer) -> None:
        self.database = f"d_{uuid.uuid4().hex[:12]}"
        self.server = server
        with server.connect() as admin, admin.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {self.database} CHARACTER SET utf8mb4")
        self.url = server.url(self.database)
        self.connection = server.connect(self.database)
        self._lock = Lock()
        self.execute("CREATE TABLE account (id INT PRIMARY KEY, owner VARCHAR(100), balance DECIMAL(12,2))")
        self.execute("CREATE TABLE note (text VARCHAR(200) COLLATE utf8mb4_bin)")
        self.write(*(Write("account", None, row) for row in ACCOUNTS), *(Write("note", None, row) for row in NOTES))

    def execute(self, *texts: str) -> list[tuple[object, ...]]:
        with self._lock, self.connection.cursor() as cursor:
            for text in texts:
                cursor.execute(text)
            return list(cursor.fetchall())

    def settings(self) -> SourceSettings:
        tables = (TableSettings("account", "account"), TableSettings("note", "note"))
        return SourceSettings(self.kind, self.url, tables)

    def write(self, *writes: Write) -> None:
        with self._lock, self.connection.cursor() as cursor:
            cursor.execute("BEGIN")
            for write in writes:
                for sql, values in statements(write, "%s", ""):
                    cursor.execute(sql, values)
            cursor.execute("COMMIT")

    def rows(self, table: str) -> Bag:
        return bag(self.execute(f"SELECT * FROM {table}"))

    def empty(self, table: str) -> None:
        self.execute(f"TRUNCATE TABLE {table}")

    def lose(self) -> None:
        """A log that a reader has just left is kept until its thread is gone."""
        for number, *_ in self.execute(
            "SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'"
        ):
            self.execute(f"KILL {number}")
        while self.execute("SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'"):
            time.sleep(0.05)
        self.execute("FLUSH BINARY LOGS")
        oldest, newest = (self.execute("SHOW BINARY LOGS")[place][0] for place in (0, -1))
        # The engine lets go of a log a moment after its last transaction.
        while self.execute("SHOW BINARY LOGS")[0][0] == oldest:
            self.execute(f"PURGE BINARY LOGS TO '{newest}'")
            time.sleep(0.05)

    def leftovers(self) -> list[str]:
        return [str(name) for (name,) in self.execute("SHOW TABLES") if "rollview" in str(name)]

    def close(self) -> None:
        self.execute(f"DROP DATABASE {self.database}")
        self.connection.close()
