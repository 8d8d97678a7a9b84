"""Events of a binary log, changed a little: a named state, or no wrong row."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import pytest
from pymysql.protocol import MysqlPacket

from rollview.errors import RollviewError
from rollview.sources import SourceSettings, TableSettings
from rollview.sources.binlog.server import ChecksumError, check_packet
from rollview.sources.boundary import named
from rollview.sources.mariadb.source import MariadbSource
from rollview.sources.protocol import Opening, SourceTable
from tests.property.foreign import bag, chances, changed, parts, schema_of, seed

TABLE_MAP = 19


class Server:
    """Stands where the driver's connection is, and gives recorded packets."""

    packets: Sequence[bytes] = ()
    charset = "utf8"

    def __init__(self, **_settings: Any) -> None:
        self._left = iter(self.packets)
        self._next_seq_id = 0

    def get_server_info(self) -> str:
        return "11.4.0-MariaDB"

    def cursor(self) -> Server:
        return self

    def execute(self, *_query: Any) -> None: ...

    def fetchone(self) -> Any:
        return _Row(("binlog_checksum", "CRC32"))

    def _write_bytes(self, _data: bytes) -> None: ...

    def _read_packet(self) -> Any:
        packet = MysqlPacket(next(self._left, b"\xfe\x00\x00\x02\x00"), "utf8")
        packet.check_error()
        check_packet(packet, has_checksum=True)
        return packet

    def close(self) -> None: ...


class _Row(tuple[str, ...]):
    """A row by place or by name."""

    def get(self, _name: str, _default: str = "") -> str:
        return "FULL"


def binlog() -> tuple[MariadbSource, list[bytes], str, str]:
    told = seed("binlog")
    schemas = {remote: schema_of(columns) for remote, columns in told["schemas"].items()}
    known = {remote: SourceTable(remote, schema) for remote, schema in schemas.items()}
    settings = SourceSettings("mariadb", "mariadb://u@127.0.0.1/s", tuple(TableSettings(r, r) for r in schemas))
    opening = Opening("s", settings, settings.address, {"tag": "t", "columns": told["columns"]}, known)
    return MariadbSource(opening), [base64.b64decode(p) for p in told["packets"]], told["start"], told["end"]


def logged(source: MariadbSource, start: str, end: str, packets: Sequence[bytes]) -> list[Any]:
    """The units of work as the driver and we read them, up to what stops that."""
    Server.packets = packets
    try:
        with named("s", start):
            batch = source._batch(start, end, 10**9)
    except RollviewError:
        return []
    return [
        (unit.position, {name: (bag(c.before), bag(c.after), c.replaces) for name, c in unit.changes.items()})
        for unit in batch.units
    ]


@pytest.fixture
def recorded_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rollview.sources.binlog.source.StreamConnection", Server)


@pytest.mark.usefixtures("recorded_log")
def test_the_recorded_log_is_read() -> None:
    source, packets, start, end = binlog()
    assert len(logged(source, start, end, packets)) == 6


@parts("binlog")
@pytest.mark.usefixtures("recorded_log")
def test_binary_log(part: int) -> None:
    source, packets, start, end = binlog()
    whole = logged(source, start, end, packets)
    for chance in chances("binlog", part):
        sent = list(packets)
        place = chance.randrange(len(sent))
        # What a table map says of its metadata the driver believes, however long that takes.
        mends = chance.random() < 0.5 and sent[place][5] != TABLE_MAP
        body = changed(chance, sent[place][:-4])
        sent[place] = body + (struct.pack("<I", zlib.crc32(body[1:])) if mends else sent[place][-4:])
        units = logged(source, start, end, sent)
        # Who computes the checksum anew may say what he likes; without that, nothing else is ever taken.
        assert mends or sent[place] == packets[place] or units == whole[: len(units)], sent[place]


def test_an_event_of_another_checksum_is_none() -> None:
    _, packets, _, _ = binlog()
    for packet in packets:
        check_packet(MysqlPacket(packet, "utf8"), has_checksum=True)
        with pytest.raises(ChecksumError):
            check_packet(MysqlPacket(packet[:-1] + bytes([packet[-1] ^ 1]), "utf8"), has_checksum=True)
        with pytest.raises(ChecksumError):
            check_packet(MysqlPacket(b"\x01" + packet[1:], "utf8"), has_checksum=False)


def test_a_table_of_more_columns_than_bytes_is_none() -> None:
    packet = next(packet for packet in binlog()[1] if packet[5] == TABLE_MAP)
    columns = bytes([len(seed("binlog")["columns"]["t"])])
    many = packet.replace(b"\x01t\x00" + columns, b"\x01t\x00\xfe" + b"\xff" * 8)
    assert many != packet
    with pytest.raises(ChecksumError, match="more columns"):
        check_packet(MysqlPacket(many, "utf8"), has_checksum=False)
