"""The publication and the replication slot that make a server keep its log for us.

Law: both are ours alone, named by the source's tag and the attempt that made them. The server may let go of its log up
to the slot's confirmed position, so that never passes what the catalog holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from psycopg import sql

from rollview.errors import LostPosition
from rollview.sources.postgres.layout import split
from rollview.sources.postgres.messages import lsn_text, parse_lsn
from rollview.sources.postgres.server import Connection
from rollview.sources.protocol import Health

_SLOT = "SELECT confirmed_flush_lsn::text, wal_status FROM pg_replication_slots WHERE slot_name = %s"
_LEFT = """
    SELECT slot_name::text FROM pg_replication_slots
    WHERE slot_name = %(whole)s OR starts_with(slot_name::text, %(begin)s)
    UNION
    SELECT pubname::text FROM pg_publication WHERE pubname = %(whole)s OR starts_with(pubname::text, %(begin)s)
    ORDER BY 1"""
_KEPT = """
    SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn)::bigint,
           pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::bigint, wal_status, safe_wal_size
    FROM pg_replication_slots WHERE slot_name = %s"""
_LONG = "1 minute"
_OPEN = """
    SELECT 'the prepared transaction ' || quote_literal(gid), prepared
    FROM pg_prepared_xacts WHERE database = current_database()
    UNION ALL
    SELECT 'transaction ' || backend_xid || ' of process ' || pid, xact_start FROM pg_stat_activity
    WHERE datname = current_database() AND backend_xid IS NOT NULL AND pid <> pg_backend_pid()
          AND xact_start < clock_timestamp() - %s::interval
    ORDER BY 2 LIMIT 1"""
"""The server keeps its log from the first record of the oldest of them on. Short ones come and go."""
_IDENTITY = """
    SELECT (pg_control_system()).system_identifier::text, (pg_control_checkpoint()).timeline_id,
           clock_timestamp(), pg_current_wal_flush_lsn()::text"""


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """Which server this is, what its clock says, and how far its log reaches then."""

    system: str
    timeline: int
    time: datetime
    flushed: int


def name_of(tag: str, attempt: str) -> str:
    """Of what an attempt leaves; older versions left one thing for all attempts."""
    return f"rollview_{tag}_{attempt}" if attempt else f"rollview_{tag}"


def left(connection: Connection, tag: str) -> tuple[str, ...]:
    """The names of all that attempts of the source have left."""
    whole = name_of(tag, "")
    rows = connection.execute(_LEFT, {"whole": whole, "begin": f"{whole}_"}).fetchall()
    return tuple(name for (name,) in rows)


def read_identity(connection: Connection) -> ServerIdentity:
    row = connection.execute(_IDENTITY).fetchone()
    assert row is not None
    return ServerIdentity(row[0], row[1], row[2].astimezone(UTC), parse_lsn(row[3]))


def inserted(connection: Connection) -> int:
    """How far the log reaches, also where it is not on disk yet."""
    row = connection.execute("SELECT pg_current_wal_insert_lsn()::text").fetchone()
    assert row is not None
    return parse_lsn(row[0])


def publish(connection: Connection, name: str, remotes: Sequence[str]) -> None:
    tables = sql.SQL(", ").join(sql.Identifier(*split(remote)) for remote in remotes)
    connection.execute(sql.SQL("CREATE PUBLICATION {} FOR TABLE {}").format(sql.Identifier(name), tables))


def drop(connection: Connection, name: str) -> None:
    if connection.execute(_SLOT, (name,)).fetchone() is not None:
        connection.execute("SELECT pg_drop_replication_slot(%s)", (name,))
    connection.execute(sql.SQL("DROP PUBLICATION IF EXISTS {}").format(sql.Identifier(name)))


def create(replication: Connection, name: str, *, two_phase: bool) -> tuple[int, str]:
    """The position from which the log is kept, and a snapshot of exactly that moment."""
    options = sql.SQL("TWO_PHASE, SNAPSHOT 'export'" if two_phase else "SNAPSHOT 'export'")
    command = sql.SQL("CREATE_REPLICATION_SLOT {} LOGICAL pgoutput ({})").format(sql.Identifier(name), options)
    row = replication.execute(command).fetchone()
    assert row is not None
    return parse_lsn(row[1]), row[2]


def advance(connection: Connection, name: str, position: int) -> None:
    row = connection.execute(_SLOT, (name,)).fetchone()
    if row is not None and parse_lsn(row[0]) < position:
        connection.execute("SELECT pg_replication_slot_advance(%s, %s::pg_lsn)", (name, lsn_text(position)))


def health(connection: Connection, name: str, cap: int) -> Health:
    """How much of the server's log is kept for us; more than ``cap`` bytes of it deserve a look."""
    row = connection.execute(_KEPT, (name,)).fetchone()
    if row is None:
        return Health(alarm=f"its replication slot '{name}' is gone")
    behind, kept, status, safe = row
    alarm = None
    if status in ("unreserved", "lost"):
        alarm = f"the server is about to give up the log of its replication slot '{name}'"
    elif kept is not None and kept > cap:
        room = f", {safe} more are safe" if safe is not None else ""
        alarm = f"the server keeps {kept} bytes of its log for us, more than {cap}{room}"
    oldest, since = connection.execute(_OPEN, (_LONG,)).fetchone() or (None, None)
    return Health(behind, kept, status, alarm, oldest, since)


def check(connection: Connection, source: str, name: str, after: int, memory: Mapping[str, Any]) -> ServerIdentity:
    """Refuse to read where the log cannot be known to go on from ``after``."""
    identity = read_identity(connection)
    if identity.system != memory["system"]:
        raise LostPosition(source, "the address leads to another server than before")
    if identity.timeline != memory["timeline"]:
        raise LostPosition(source, f"the server is on timeline {identity.timeline}, it was on {memory['timeline']}")
    if identity.flushed < after:
        raise LostPosition(source, f"the server's log ends at {lsn_text(identity.flushed)}, before {lsn_text(after)}")
    row = connection.execute(_SLOT, (name,)).fetchone()
    if row is None:
        raise LostPosition(source, f"its replication slot '{name}' is gone")
    confirmed, status = row
    if status == "lost" or confirmed is None:
        raise LostPosition(source, f"the server gave up the log of its replication slot '{name}'")
    if parse_lsn(confirmed) > after:
        raise LostPosition(source, f"somebody else moved its replication slot '{name}' to {confirmed}")
    return identity
