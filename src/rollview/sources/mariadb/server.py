"""Connections to a MariaDB server, and its errors in our words."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from rollview.errors import EnvironmentFault, LostPosition, RollviewError, SourceDown, UsageError
from rollview.sources.protocol import Finding

try:
    import pymysql
except ModuleNotFoundError as error:
    raise EnvironmentFault(
        "A MariaDB source needs the packages mysql-replication and pymysql.", hint="pip install 'rollview[mysql]'"
    ) from error

_HERE = ("localhost", "127.0.0.1", "::1")
_OLDEST = (10, 5)
_LOG_IS_GONE = 1236
_DOWN = (1040, 1053, 1205, 1213, 2002, 2003, 2006, 2013)
_FACTS = """
    SELECT @@version, @@log_bin, @@binlog_format, @@binlog_row_image, @@binlog_row_metadata, @@gtid_binlog_pos"""


class Server:
    def __init__(self, source: str, address: str) -> None:
        self._source = source
        self.parameters = _parameters(source, address)
        self.database: str = self.parameters["database"]

    def connect(self) -> Any:
        with self.translated():
            connection = pymysql.connect(**self.parameters, autocommit=True)
            with connection.cursor() as cursor:
                cursor.execute("SET time_zone = '+00:00', sql_mode = 'ANSI_QUOTES'")
            return connection

    @contextmanager
    def translated(self) -> Iterator[None]:
        try:
            yield
        except RollviewError:
            raise
        except pymysql.MySQLError as error:
            raise self._in_our_words(error) from None

    def _in_our_words(self, error: pymysql.MySQLError) -> RollviewError:
        number = error.args[0] if error.args and isinstance(error.args[0], int) else 0
        reason = str(error.args[-1] if error.args else error).splitlines()[0].rstrip(".")
        password = str(self.parameters.get("password") or "")
        reason = reason.replace(password, "***") if password else reason
        if number == _LOG_IS_GONE:
            return LostPosition(self._source, reason)
        if number in _DOWN or number == 0:
            return SourceDown(self._source, reason)
        return EnvironmentFault(f"Source '{self._source}' refused: {reason}.", source=self._source, number=number)


def server_findings(connection: Any) -> list[Finding]:
    with connection.cursor() as cursor:
        cursor.execute(_FACTS)
        version, log, format_, image, metadata, position = cursor.fetchone()
    numbers = tuple(int(part) for part in version.split("-")[0].split(".")[:2])
    questions = [
        ("mariadb" in version.lower(), Finding("the server is not MariaDB")),
        (numbers >= _OLDEST, Finding(f"the server is MariaDB {version}; 10.5 is the oldest that tells enough")),
        (bool(log), Finding("the server writes no binary log; start it with log_bin")),
        (format_ == "ROW", _setting("binlog_format", format_, "ROW")),
        (image == "FULL", _setting("binlog_row_image", image, "FULL")),
        (metadata == "FULL", _setting("binlog_row_metadata", metadata, "FULL")),
        ("," not in position, Finding("the log has several domains of transactions, which have no common order")),
    ]
    return [finding for holds, finding in questions if not holds]


def _setting(name: str, value: str, wanted: str) -> Finding:
    return Finding(f"{name} is {value}", f"SET GLOBAL {name} = {wanted};")


def _parameters(source: str, address: str) -> dict[str, Any]:
    parts = urlsplit(address)
    if parts.scheme not in ("mariadb", "mysql") or not parts.path.strip("/"):
        raise UsageError(
            f"The address of source '{source}' cannot be understood.",
            hint="Write it like mariadb://user:password@host:3306/database.",
        )
    host = parts.hostname or "127.0.0.1"
    options = parse_qs(parts.query)
    checked = host not in _HERE and options.get("tls", ["verify"])[0] != "off"
    return {
        "host": host,
        "port": parts.port or 3306,
        "user": unquote(parts.username or ""),
        "password": unquote(parts.password or ""),
        "database": unquote(parts.path.strip("/")),
        "charset": "utf8mb4",
        "connect_timeout": 10,
        **({"ssl": ssl.create_default_context()} if checked else {}),
    }
