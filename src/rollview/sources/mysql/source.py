"""A MySQL database as a source.

Law: a place in the log is the set of the global ids up to there. A transaction keeps its tables until its id is among
those that the server has executed; so while nobody can write to the tables, which is a moment, what a snapshot holds of
them is what the transactions of the executed ids wrote.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from typing import Any, ClassVar

import pymysql
from pymysqlreplication.event import GtidEvent

from rollview.core.names import quoted
from rollview.errors import EnvironmentFault, LostPosition, SourceDown
from rollview.sources.binlog.source import BinlogSource
from rollview.sources.binlog.stream import done_through, read_from
from rollview.sources.mysql.gtids import GtidSet, NotUnderstoodError
from rollview.sources.mysql.settings import server_findings
from rollview.sources.protocol import Capability, Finding

_TRIES = 10
_PAUSE = 1.0
_LOCKED = 1205
_DENIED = (1044, 1142)
_NOBODY = "00000000-0000-0000-0000-000000000000:1"
"""A transaction that there never was: the driver cannot ask for the log after nothing at all."""


class MysqlSource(BinlogSource):
    kind: ClassVar[str] = "mysql"
    capabilities: ClassVar[frozenset[Capability]] = frozenset(Capability) - {Capability.ONLINE_COPY}
    begins: ClassVar[type] = GtidEvent

    def server_findings(self, connection: Any, facts: Mapping[str, str]) -> list[Finding]:
        return server_findings(connection, facts, self._server.database)

    def snapshot(self, connection: Any) -> str:
        with closing(self._server.connect()) as other:
            self._lock(other)
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
                cursor.execute("SELECT @@GLOBAL.gtid_executed")
                return str(self._parsed(cursor.fetchone()[0]))

    def newest(self, connection: Any, after: str) -> str:
        with connection.cursor() as cursor:
            cursor.execute("SELECT @@GLOBAL.gtid_mode, @@GLOBAL.gtid_executed, @@GLOBAL.gtid_purged")
            mode, *told = cursor.fetchone()
        if mode != "ON":
            raise LostPosition(self._opening.name, f"gtid_mode is {mode}, so not every transaction has a global id")
        executed, purged = (self._parsed(text) for text in told)
        if missing := GtidSet.parse(done_through(after)).without(executed):
            raise LostPosition(self._opening.name, f"the server does not know the transactions {missing}")
        if missing := purged.without(GtidSet.parse(read_from(after))):
            raise LostPosition(
                self._opening.name, f"the server's log does not hold the transactions {missing} any more"
            )
        return str(executed)

    def following(self, before: str, gtid: str) -> str:
        return str(GtidSet.parse(before) | GtidSet.parse(gtid))

    def reaches(self, position: str, newest: str) -> bool:
        return GtidSet.parse(done_through(position)) >= GtidSet.parse(newest)

    def reading(self, start: str) -> Mapping[str, Any]:
        return {"auto_position": str(GtidSet.parse(start)) if GtidSet.parse(start) else _NOBODY}

    def order(self, position: str) -> int:
        return len(GtidSet.parse(done_through(position)))

    def _parsed(self, text: str) -> GtidSet:
        try:
            return GtidSet.parse(text)
        except NotUnderstoodError as error:
            raise LostPosition(self._opening.name, str(error)) from None

    def _lock(self, connection: Any) -> None:
        """Until the connection ends nobody writes to the tables, and no transaction that did is still under way. Others
        wait behind us, so we do not wait long at a time."""
        tables = ", ".join(f"{quoted(remote)} READ" for remote in self._opening.settings.remotes)
        with connection.cursor() as cursor:
            cursor.execute("SET SESSION lock_wait_timeout = 1")
            for _ in range(_TRIES):
                try:
                    cursor.execute(f"LOCK TABLES {tables}")
                    return
                except pymysql.MySQLError as error:
                    self._wait(error)
        raise SourceDown(self._opening.name, "a transaction has not let go of its tables")

    def _wait(self, error: pymysql.MySQLError) -> None:
        if error.args[0] in _DENIED:
            database = quoted(self._server.database)
            raise EnvironmentFault(
                f"Source '{self._opening.name}' cannot be copied: its user may not lock the tables for a moment.",
                hint=f"GRANT LOCK TABLES ON {database}.* TO {quoted(self._server.parameters['user'])};",
                source=self._opening.name,
            ) from None
        if error.args[0] != _LOCKED:
            raise error
        time.sleep(_PAUSE)
