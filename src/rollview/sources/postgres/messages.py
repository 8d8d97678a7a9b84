"""pgoutput, protocol versions 1 to 3 without streaming, taken apart.

Law: a message is understood whole or refused; what its version does not know is never guessed. Numbers are 64-bit
log positions and 32-bit object ids without a sign.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_BEGIN = struct.Struct(">QqI")
_COMMIT = struct.Struct(">BQQq")
_BEGIN_PREPARE = struct.Struct(">QQqI")
_PREPARE = struct.Struct(">BQQqI")
_ROLLBACK_PREPARED = struct.Struct(">BQQqqI")
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_OID = struct.Struct(">I")
_COLUMN = struct.Struct(">Ii")
_TEXT, _NULL, _UNCHANGED = b"tnu"


class Unchanged:
    """Stands for a large value that the update did not touch and the log does not hold."""


UNCHANGED: Final = Unchanged()

Value = str | None | Unchanged
Image = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Begin:
    commit_lsn: int
    time: datetime
    xid: int


@dataclass(frozen=True, slots=True)
class Commit:
    end_lsn: int
    time: datetime


@dataclass(frozen=True, slots=True)
class BeginPrepare:
    """The rows of a transaction that was prepared follow; whether it is committed is told later."""

    prepare_lsn: int
    end_lsn: int
    time: datetime
    xid: int
    gid: str


@dataclass(frozen=True, slots=True)
class Prepare:
    gid: str


@dataclass(frozen=True, slots=True)
class CommitPrepared:
    end_lsn: int
    time: datetime
    xid: int
    gid: str


@dataclass(frozen=True, slots=True)
class RollbackPrepared:
    end_lsn: int
    gid: str


@dataclass(frozen=True, slots=True)
class MessageColumn:
    name: str
    type_oid: int
    modifier: int


@dataclass(frozen=True, slots=True)
class RelationMessage:
    """``identity``: f means that old images are whole."""

    oid: int
    schema: str
    name: str
    identity: str
    columns: tuple[MessageColumn, ...]


@dataclass(frozen=True, slots=True)
class RowMessage:
    """``before`` is whole only where the table's identity is FULL; ``is_key``: it holds the key and nothing else."""

    oid: int
    before: Image | None
    after: Image | None
    is_key: bool = False


@dataclass(frozen=True, slots=True)
class TruncateMessage:
    oids: tuple[int, ...]


TwoPhase = BeginPrepare | Prepare | CommitPrepared | RollbackPrepared
Message = Begin | Commit | TwoPhase | RelationMessage | RowMessage | TruncateMessage | None
"""None: a message that changes no rows."""


class UnknownMessageError(ValueError):
    pass


def decode(data: bytes) -> Message:
    match data[:1]:
        case b"I":
            oid, _ = _oid(data, 1)
            after, _ = _tuple(data, 6)
            return RowMessage(oid, None, after)
        case b"U":
            return _update(data)
        case b"D":
            oid, _ = _oid(data, 1)
            before, _ = _tuple(data, 6)
            return RowMessage(oid, before, None, data[5:6] == b"K")
        case b"B":
            lsn, micros, xid = _BEGIN.unpack_from(data, 1)
            return Begin(lsn, _time(micros), xid)
        case b"C":
            _, _, end, micros = _COMMIT.unpack_from(data, 1)
            return Commit(end, _time(micros))
        case b"R":
            return _relation(data)
        case b"T":
            (count,) = _INT32.unpack_from(data, 1)
            return TruncateMessage(tuple(_OID.unpack_from(data, 6 + 4 * i)[0] for i in range(count)))
        case b"Y" | b"O" | b"M":
            return None
        case b"b" | b"P" | b"K" | b"r":
            return _two_phase(data)
    raise UnknownMessageError(f"pgoutput sent a message of kind {data[:1]!r}")


def _update(data: bytes) -> RowMessage:
    oid, at = _oid(data, 1)
    kind, before = data[at : at + 1], None
    if kind in (b"K", b"O"):
        before, at = _tuple(data, at + 1)
    if data[at : at + 1] != b"N":
        raise UnknownMessageError("pgoutput sent an update without a new row")
    after, _ = _tuple(data, at + 1)
    return RowMessage(oid, before, after, kind == b"K")


def _two_phase(data: bytes) -> TwoPhase:
    match data[:1]:
        case b"b":
            lsn, end, micros, xid = _BEGIN_PREPARE.unpack_from(data, 1)
            return BeginPrepare(lsn, end, _time(micros), xid, _text(data, 1 + _BEGIN_PREPARE.size)[0])
        case b"P":
            return Prepare(_text(data, 1 + _PREPARE.size)[0])
        case b"K":
            _, _, end, micros, xid = _PREPARE.unpack_from(data, 1)
            return CommitPrepared(end, _time(micros), xid, _text(data, 1 + _PREPARE.size)[0])
    _, _, end, *_ = _ROLLBACK_PREPARED.unpack_from(data, 1)
    return RollbackPrepared(end, _text(data, 1 + _ROLLBACK_PREPARED.size)[0])


def _relation(data: bytes) -> RelationMessage:
    oid, at = _oid(data, 1)
    schema, at = _text(data, at)
    name, at = _text(data, at)
    identity = data[at : at + 1].decode()
    (count,) = _INT16.unpack_from(data, at + 1)
    at += 3
    columns = []
    for _ in range(count):
        column, at = _text(data, at + 1)
        type_oid, modifier = _COLUMN.unpack_from(data, at)
        columns.append(MessageColumn(column, type_oid, modifier))
        at += _COLUMN.size
    return RelationMessage(oid, schema, name, identity, tuple(columns))


def _tuple(data: bytes, at: int) -> tuple[Image, int]:
    """Every row comes through here: where all letters are of one byte, values are cut out of one text."""
    (count,) = _INT16.unpack_from(data, at)
    at += 2
    values: list[Value] = []
    text = str(data, "latin-1") if data.isascii() else None
    for _ in range(count):
        kind = data[at]
        if kind == _TEXT:
            begin = at + 5
            at = begin + _INT32.unpack_from(data, at + 1)[0]
            values.append(str(data[begin:at], "utf-8") if text is None else text[begin:at])
            continue
        if kind != _NULL and kind != _UNCHANGED:
            raise UnknownMessageError(f"pgoutput sent a value of kind {bytes([kind])!r}")
        values.append(None if kind == _NULL else UNCHANGED)
        at += 1
    return tuple(values), at


def _oid(data: bytes, at: int) -> tuple[int, int]:
    return _OID.unpack_from(data, at)[0], at + 4


def _text(data: bytes, at: int) -> tuple[str, int]:
    end = data.index(0, at)
    return data[at:end].decode("utf-8"), end + 1


def _time(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)


def lsn_text(lsn: int) -> str:
    """As PostgreSQL writes it."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def parse_lsn(text: str) -> int:
    high, _, low = text.partition("/")
    return (int(high, 16) << 32) | int(low, 16)
