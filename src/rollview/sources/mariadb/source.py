"""A MariaDB database as a source.

Law: a place in the log is the global id of its last transaction, whose number grows along the log.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pymysqlreplication.event import MariadbGtidEvent

from rollview.errors import LostPosition
from rollview.sources.binlog.server import filter_findings, log_findings, setting, version_of
from rollview.sources.binlog.source import BinlogSource
from rollview.sources.binlog.stream import done_through
from rollview.sources.protocol import Capability, Finding

_NOWHERE = "0-0-0"
_OLDEST = (10, 5)
_SETTER = "SET GLOBAL"


class MariadbSource(BinlogSource):
    kind: ClassVar[str] = "mariadb"
    capabilities: ClassVar[frozenset[Capability]] = frozenset(Capability)
    begins: ClassVar[type] = MariadbGtidEvent

    def server_findings(self, connection: Any, facts: Mapping[str, str]) -> list[Finding]:
        if "mariadb" not in facts["version"].lower():
            return [Finding("the server is not MariaDB; if it is MySQL, the kind of the source is mysql")]
        found = log_findings(facts, _SETTER)
        if version_of(facts) < _OLDEST:
            found.append(Finding(f"the server is MariaDB {facts['version']}; 10.5 is the oldest that tells enough"))
        if "," in facts["gtid_binlog_pos"]:
            found.append(Finding("the log has several domains of transactions, which have no common order"))
        compressed = setting(facts, _SETTER, "log_bin_compress", "OFF")
        found += [compressed] if compressed else []
        return found + filter_findings(connection, "SHOW MASTER STATUS", self._server.database)

    def snapshot(self, connection: Any) -> str:
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
            cursor.execute("SHOW STATUS LIKE 'binlog_snapshot_%'")
            found = {name.lower(): value for name, value in cursor.fetchall()}
            place = found["binlog_snapshot_file"], int(found["binlog_snapshot_position"])
            cursor.execute("SELECT BINLOG_GTID_POS(%s, %s)", place)
            return str(cursor.fetchone()[0] or "") or _NOWHERE

    def newest(self, connection: Any, after: str) -> str:
        with connection.cursor() as cursor:
            cursor.execute("SELECT @@gtid_binlog_pos")
            newest = str(cursor.fetchone()[0]) or _NOWHERE
        if self.order(newest) < self.order(after):
            raise LostPosition(self._opening.name, f"the server's log ends at {newest}, before {after}")
        return newest

    def following(self, before: str, gtid: str) -> str:
        return gtid

    def reaches(self, position: str, newest: str) -> bool:
        return self.order(position) >= self.order(newest)

    def reading(self, start: str) -> Mapping[str, Any]:
        return {"is_mariadb": True, "auto_position": "" if start == _NOWHERE else start}

    def order(self, position: str) -> int:
        return int(done_through(position).rpartition("-")[2])
