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
    lsn: int
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

    @property
    def images(self) -> tuple[Image | None, Image | None]:
        return self.before, self.after


@dataclass(frozen=True, slots=True)
class TruncateMessage:
    oids: tuple[int, ...]


TwoPhase = BeginPrepare | Prepare | CommitPrepared | RollbackPrepared
Message = Begin | Commit | TwoPhase | RelationMessage | RowMessage | TruncateMessage | None
"""None: a message that changes no rows."""


class UnknownMessageError(ValueError):
    pass


def decode(data: bytes) -> Message:
    """UnknownMessageError where a message is not one, from its first byte to its last."""
    try:
        message, end = _decoded(data)
    # Where a number or a text leads out of the message, and a time or a letter is none.
    except (struct.error, IndexError, UnicodeDecodeError, OverflowError) as error:
        raise UnknownMessageError(f"pgoutput sent half a message ({type(error).__name__})") from None
    if end != len(data):
        raise UnknownMessageError("pgoutput sent more or less than a message")
    return message


def _decoded(data: bytes) -> tuple[Message, int]:
    match data[:1]:
        case b"I":
            return _insert(data)
        case b"U":
            return _update(data)
        case b"D":
            return _delete(data)
        case b"B":
            lsn, micros, xid = _BEGIN.unpack_from(data, 1)
            return Begin(lsn, _time(micros), xid), 1 + _BEGIN.size
        case b"C":
            _, lsn, end, micros = _COMMIT.unpack_from(data, 1)
            return Commit(lsn, end, _time(micros)), 1 + _COMMIT.size
        case b"R":
            return _relation(data)
        case b"T":
            (count,) = _INT32.unpack_from(data, 1)
            oids = struct.Struct(f">{_some(count)}I")
            return TruncateMessage(oids.unpack_from(data, 6)), 6 + oids.size
        case b"Y" | b"O" | b"M":
            return None, len(data)
        case b"b" | b"P" | b"K" | b"r":
            return _two_phase(data)
    raise UnknownMessageError(f"pgoutput sent a message of kind {data[:1]!r}")


def _insert(data: bytes) -> tuple[RowMessage, int]:
    oid, at = _oid(data, 1)
    if data[at : at + 1] != b"N":
        raise UnknownMessageError("pgoutput sent an insert without a new row")
    after, at = _tuple(data, at + 1)
    return RowMessage(oid, None, after), at


def _delete(data: bytes) -> tuple[RowMessage, int]:
    oid, at = _oid(data, 1)
    kind = data[at : at + 1]
    if kind not in (b"K", b"O"):
        raise UnknownMessageError("pgoutput sent a delete without an old row")
    before, at = _tuple(data, at + 1)
    return RowMessage(oid, before, None, kind == b"K"), at


def _update(data: bytes) -> tuple[RowMessage, int]:
    oid, at = _oid(data, 1)
    kind, before = data[at : at + 1], None
    if kind in (b"K", b"O"):
        before, at = _tuple(data, at + 1)
    if data[at : at + 1] != b"N":
        raise UnknownMessageError("pgoutput sent an update without a new row")
    after, at = _tuple(data, at + 1)
    return RowMessage(oid, before, after, kind == b"K"), at


def _two_phase(data: bytes) -> tuple[TwoPhase, int]:
    match data[:1]:
        case b"b":
            lsn, end, micros, xid = _BEGIN_PREPARE.unpack_from(data, 1)
            gid, at = _text(data, 1 + _BEGIN_PREPARE.size)
            return BeginPrepare(lsn, end, _time(micros), xid, gid), at
        case b"P":
            gid, at = _text(data, 1 + _PREPARE.size)
            return Prepare(gid), at
        case b"K":
            _, _, end, micros, xid = _PREPARE.unpack_from(data, 1)
            gid, at = _text(data, 1 + _PREPARE.size)
            return CommitPrepared(end, _time(micros), xid, gid), at
    _, _, end, *_ = _ROLLBACK_PREPARED.unpack_from(data, 1)
    gid, at = _text(data, 1 + _ROLLBACK_PREPARED.size)
    return RollbackPrepared(end, gid), at


def _relation(data: bytes) -> tuple[RelationMessage, int]:
    oid, at = _oid(data, 1)
    schema, at = _text(data, at)
    name, at = _text(data, at)
    identity = data[at : at + 1].decode()
    (count,) = _INT16.unpack_from(data, at + 1)
    at += 3
    columns = []
    for _ in range(_some(count)):
        column, at = _text(data, at + 1)
        type_oid, modifier = _COLUMN.unpack_from(data, at)
        columns.append(MessageColumn(column, type_oid, modifier))
        at += _COLUMN.size
    if len({column.name for column in columns}) != count:
        raise UnknownMessageError("pgoutput sent a table with two columns of one name")
    return RelationMessage(oid, schema, name, identity, tuple(columns)), at


def _some(count: int) -> int:
    if count < 0:
        raise UnknownMessageError("pgoutput sent a number of things below zero")
    return count


def _tuple(data: bytes, at: int) -> tuple[Image, int]:
    """Every row comes through here: where all letters are of one byte, values are cut out of one text."""
    (count,) = _INT16.unpack_from(data, at)
    at += 2
    values: list[Value] = []
    text = str(data, "latin-1") if data.isascii() else None
    for _ in range(_some(count)):
        kind = data[at]
        if kind == _TEXT:
            begin = at + 5
            at = begin + _INT32.unpack_from(data, at + 1)[0]
            if not begin <= at <= len(data):
                raise UnknownMessageError("pgoutput sent a value that leads out of its message")
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
    end = data.find(0, at)
    if end < 0:
        raise UnknownMessageError("pgoutput sent a name without an end")
    return data[at:end].decode("utf-8"), end + 1


def _time(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)


def lsn_text(lsn: int) -> str:
    """As PostgreSQL writes it."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def parse_lsn(text: str) -> int:
    high, _, low = text.partition("/")
    return (int(high, 16) << 32) | int(low, 16)
