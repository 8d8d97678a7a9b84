"""Connections to a server with a binary log, its errors in our words, and what its settings are."""

from __future__ import annotations

import ssl
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rollview.core.tls import is_here
from rollview.core.urls import NotUnderstoodUrlError, Url, parse_url
from rollview.errors import EnvironmentFault, LostPosition, RollviewError, SourceDown, UsageError
from rollview.sources.protocol import Finding

try:
    import pymysql
    from pymysql.cursors import DictCursor
except ModuleNotFoundError as error:
    raise EnvironmentFault(
        "A MariaDB or MySQL source needs the packages mysql-replication and pymysql.",
        hint="pip install 'rollview[mysql]'",
    ) from error

_LOG_IS_GONE = 1236
_KIND, _TABLE_MAP = 5, 19
_SHORTEST = 20
"""The mark of a packet that is well, and the head of an event."""
_DUMPS = (0x12, 0x1E)
"""The commands by which the log is asked for."""
_DOWN = (1040, 1053, 1205, 1213, 2002, 2003, 2006, 2013)


class BinlogServer:
    def __init__(self, source: str, kind: str, address: str, seconds: float) -> None:
        """``seconds``: how long the server may give nothing while it is asked something."""
        self._source = source
        waits = {"read_timeout": seconds, "write_timeout": seconds}
        self.parameters = {**_parameters(source, kind, address), **waits}
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


class ChecksumError(ValueError):
    """An event whose bytes are not those that the server wrote."""


class StreamConnection(pymysql.connections.Connection):  # type: ignore[misc]
    """What the driver reads the log by. Where a connection is lost it connects again, for ever; but a server that gives
    nothing is down. And it does not look at the checksums of events."""

    _has_checksums = False
    _is_stream = False

    def query(self, sql: Any, *arguments: Any, **options: Any) -> Any:
        # The driver says so where the server writes them.
        self._has_checksums = self._has_checksums or "@master_binlog_checksum" in str(sql)
        return super().query(sql, *arguments, **options)

    def _write_bytes(self, data: Any) -> Any:
        self._is_stream = self._is_stream or data[4] in _DUMPS
        return super()._write_bytes(data)

    def _read_packet(self, *arguments: Any) -> Any:
        try:
            packet = super()._read_packet(*arguments)
        except pymysql.OperationalError as error:
            if isinstance(error.__context__, TimeoutError):
                raise pymysql.InterfaceError(0, "no answer in time") from None
            raise
        if self._is_stream:
            check_packet(packet, self._has_checksums)
        return packet


def check_packet(packet: Any, has_checksum: bool) -> None:
    """The driver leaves out, unseen, what is neither an event nor the end of the log."""
    if packet.is_eof_packet():
        return
    data: bytes = packet.get_all_data()
    if not packet.is_ok_packet() or len(data) < _SHORTEST:
        raise ChecksumError("a packet of the log is no event")
    if data[_KIND] == _TABLE_MAP and _columns(data) > len(data):
        raise ChecksumError("a table has more columns than the event that tells them has bytes")
    if has_checksum and zlib.crc32(data[1:-4]) != int.from_bytes(data[-4:], "little"):
        raise ChecksumError("an event does not have its checksum")


def _columns(data: bytes) -> int:
    """How many columns a table map tells, after the names of the schema and the table; 0 where it is too short."""
    at = _SHORTEST + 8
    for _ in range(2):
        at += 2 + data[at] if at < len(data) else 0
    first = data[at : at + 1]
    size = {b"\xfc": 2, b"\xfd": 3, b"\xfe": 8}.get(first, 0)
    return int.from_bytes(data[at + 1 : at + 1 + size] if size else first, "little")


def variables(connection: Any) -> dict[str, str]:
    """The server's own settings; one that it does not have is not there."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW GLOBAL VARIABLES")
        return {name.lower(): str(value or "") for name, value in cursor.fetchall()}


def version_of(facts: Mapping[str, str]) -> tuple[int, ...]:
    return tuple(int(part) for part in facts["version"].split("-")[0].split(".")[:2])


def log_findings(facts: Mapping[str, str], setter: str) -> list[Finding]:
    """What every log must hold. ``setter``: how the server sets a variable."""
    wanted = {"binlog_format": "ROW", "binlog_row_image": "FULL", "binlog_row_metadata": "FULL"}
    found = [setting(facts, setter, name, value) for name, value in wanted.items()]
    if facts["log_bin"] != "ON":
        found.insert(0, Finding("the server writes no binary log; start it with log_bin"))
    return [finding for finding in found if finding is not None]


def setting(facts: Mapping[str, str], setter: str, name: str, wanted: str) -> Finding | None:
    if facts.get(name, wanted).upper() == wanted:
        return None
    return Finding(f"{name} is {facts[name]}", f"{setter} {name} = {wanted or repr(wanted)};")


def filter_findings(connection: Any, statement: str, database: str) -> list[Finding]:
    """A server may leave databases out of its log."""
    with connection.cursor(DictCursor) as cursor:
        cursor.execute(statement)
        status = cursor.fetchone() or {}
    only, never = (_names(status.get(name)) for name in ("Binlog_Do_DB", "Binlog_Ignore_DB"))
    if database not in never and (not only or database in only):
        return []
    return [Finding(f"the server leaves database '{database}' out of its log (binlog_do_db, binlog_ignore_db)")]


def _names(told: str | None) -> list[str]:
    return [name for name in (told or "").split(",") if name]


def _parameters(source: str, kind: str, address: str) -> dict[str, Any]:
    url = _understood(source, kind, address)
    host = url.host or "127.0.0.1"
    checked = not is_here(host) and url.options.get("tls", "verify") != "off"
    return {
        "host": host,
        "port": url.port or 3306,
        "user": url.user,
        "password": url.password,
        "database": url.path,
        "charset": "utf8mb4",
        "connect_timeout": 10,
        **({"ssl": ssl.create_default_context()} if checked else {}),
    }


def _understood(source: str, kind: str, address: str) -> Url:
    try:
        url = parse_url(address)
        if url.scheme in ("mariadb", "mysql") and url.path:
            return url
    except NotUnderstoodUrlError:
        pass
    raise UsageError(
        f"The address of source '{source}' cannot be understood.",
        hint=f"Write it like {kind}://user:password@host:3306/database; special characters percent-encoded.",
    )
