"""Leases: one worker at a time per thing.

Laws: a thing's token grows with every acquisition and never goes back, so a holder that was too slow cannot pass for
the present one. A transaction that checks a token holds the lease's row until it ends: a takeover comes either before
the check, and is seen, or after everything the transaction wrote. Several things are taken all or none, so nobody
waits while holding. Who waits longer goes first (``waiting``); who does not wait at all takes what is free.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, MutableSet, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from rollview import errors
from rollview.catalog import tables as t
from rollview.catalog.database import Database
from rollview.catalog.process import Process, is_dead, this_process
from rollview.catalog.values import LeaseInfo, folded
from rollview.catalog.waiting import first_in_line, leave_line, stand_in_line

_log = logging.getLogger(__name__)

_NEVER = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
_FREE: dict[str, Any] = {
    "holder": None,
    "owner": "",
    "machine": "",
    "pid": 0,
    "pid_started": "",
    "acquired": _NEVER,
    "expires": _NEVER,
}
_SHORTEST_PAUSE, _NEXT_PAUSE, _LONGEST_PAUSE = 0.02, 0.1, 0.5
"""Seconds between two looks at what is taken: at first, of who goes next, and of everybody else."""


class Lease:
    """Held things, each with its token, renewed by a thread until it is released."""

    def __init__(self, database: Database, tokens: Mapping[str, int], ttl: float, heartbeat: float) -> None:
        self.tokens = dict(tokens)
        self._database = database
        self._ttl = timedelta(seconds=ttl)
        self._heartbeat = heartbeat
        self._stop = threading.Event()
        self._lost: str | None = None
        self._thread = threading.Thread(target=self._keep, name="rollview-lease", daemon=True)

    def __repr__(self) -> str:
        return f"Lease({self.tokens!r})"

    @property
    def things(self) -> tuple[str, ...]:
        return tuple(self.tokens)

    def check(self) -> None:
        """Raise LostLease if a renewal found that another took over. Asks nothing of the database."""
        if self._lost is not None:
            raise errors.LostLease(describe(self._lost))

    def verify(self, connection: sa.Connection) -> None:
        """Raise LostLease unless every token is still the newest; from here to the transaction's end it stays so."""
        present = {row.thing: row.token for row in lock_rows(connection, self.things)}
        self._lost = next((thing for thing in self.things if present.get(thing) != self.tokens[thing]), self._lost)
        self.check()
        expires = self._database.now(connection) + self._ttl
        connection.execute(t.lease.update().where(t.lease.c.thing.in_(self.things)).values(expires=expires))

    def start(self) -> None:
        self._thread.start()

    def release(self) -> None:
        self._stop.set()
        self._thread.join()
        try:
            with self._database.write() as connection:
                for row in lock_rows(connection, self.things):
                    if row.token == self.tokens[row.thing]:
                        connection.execute(t.lease.update().where(t.lease.c.thing == row.thing).values(**_FREE))
        # The work is done or has failed already; the lease frees itself when it expires.
        except errors.RollviewError as error:
            _log.warning("lease not released: %s", error.message)

    def _keep(self) -> None:
        while not self._stop.wait(self._heartbeat) and self._lost is None:
            try:
                with self._database.write() as connection:
                    self.verify(connection)
            except errors.LostLease as error:
                _log.warning("%s", error.message)
            except errors.RollviewError as error:
                _log.warning("lease not renewed: %s", error.message)


@contextmanager
def held(
    database: Database, things: Sequence[str], own: MutableSet[Lease], *, wait: float, ttl: float, heartbeat: float
) -> Iterator[Lease]:
    """All of the things, or Busy when one is still taken after ``wait`` seconds. ``own``: what is held from here."""
    request = _Request(tuple(sorted({folded(thing) for thing in things})), wait > 0, bool(own), timedelta(seconds=ttl))
    lease = Lease(database, _acquire(database, request, wait), ttl, heartbeat)
    own.add(lease)
    lease.start()
    try:
        yield lease
    finally:
        own.discard(lease)
        lease.release()


def read_leases(connection: sa.Connection, now: datetime) -> tuple[LeaseInfo, ...]:
    rows = connection.execute(sa.select(t.lease).where(t.lease.c.holder.is_not(None)).order_by(t.lease.c.thing))
    return tuple(_info(row) for row in rows if not _is_free(row, now))


def read_tokens(connection: sa.Connection) -> Mapping[str, int]:
    """The newest token of everything that was ever leased."""
    return {row.thing: row.token for row in connection.execute(sa.select(t.lease.c.thing, t.lease.c.token))}


def lock_rows(connection: sa.Connection, things: Sequence[str]) -> Sequence[sa.Row[Any]]:
    """Always in the same order, so that two who lock several never wait for each other."""
    query = sa.select(t.lease).where(t.lease.c.thing.in_(things)).order_by(t.lease.c.thing)
    return connection.execute(query.with_for_update()).all()


def describe(thing: str) -> str:
    kind, _, name = thing.partition(":")
    return f"{kind} '{name}'" if name else f"'{kind}'"


@dataclass(frozen=True, slots=True)
class _Request:
    """``waits``: stands in line if it must. ``holds``: others may be waiting for its maker."""

    things: tuple[str, ...]
    waits: bool
    holds: bool
    ttl: timedelta
    id: str = field(default_factory=lambda: uuid.uuid4().hex)


@dataclass(frozen=True, slots=True)
class _Refused:
    """``by``: who holds one of the things, or goes first there. ``is_next``: nobody else goes first."""

    by: LeaseInfo
    is_next: bool


def _acquire(database: Database, request: _Request, wait: float) -> Mapping[str, int]:
    deadline = time.monotonic() + wait
    pause, waited = _SHORTEST_PAUSE, False
    try:
        while True:
            got = _try(database, request, waited)
            if not isinstance(got, _Refused):
                waited = False
                return got
            waited = request.waits
            left = deadline - time.monotonic()
            if left <= 0:
                raise errors.Busy(describe(got.by.thing), got.by.owner, got.by.acquired.isoformat(" ", "seconds"))
            time.sleep(min(left, pause))
            pause = min(pause * 1.5, _NEXT_PAUSE if got.is_next else _LONGEST_PAUSE)
    finally:
        if waited:
            _give_up(database, request)


def _try(database: Database, request: _Request, waited: bool) -> Mapping[str, int] | _Refused:
    """The new tokens, or who keeps them. ``waited``: it stands in line."""
    with database.write() as connection:
        rows = lock_rows(connection, request.things)
        now = database.now(connection)
        if len(rows) == len(request.things):
            refused = _refused(connection, rows, now, request)
            if refused is None:
                if waited:
                    leave_line(connection, rows, request.id)
                return _take(connection, rows, now, now + request.ttl)
            if request.waits:
                stand_in_line(connection, rows, now, request.id, request.holds)
            return refused
    # New rows come in a transaction of their own, which locks nothing else.
    with database.write() as connection:
        new = [{"thing": thing, "token": 0, **_FREE} for thing in request.things]
        database.insert_missing(connection, t.lease, new)
    return _try(database, request, waited)


def _refused(
    connection: sa.Connection, rows: Sequence[sa.Row[Any]], now: datetime, request: _Request
) -> _Refused | None:
    taken = next((row for row in rows if not _is_free(row, now)), None)
    if not request.waits:
        return None if taken is None else _Refused(_info(taken), True)
    first = first_in_line(connection, rows, now, lambda row: _is_free(row, now), request.id, request.holds)
    if taken is not None:
        return _Refused(_info(taken), first is None)
    if first is None:
        return None
    thing, waiter = first
    return _Refused(LeaseInfo(thing, waiter.process.owner, 0, waiter.since, waiter.expires), False)


def _give_up(database: Database, request: _Request) -> None:
    try:
        with database.write() as connection:
            leave_line(connection, lock_rows(connection, request.things), request.id)
    # It counts no more after a while of silence.
    except errors.RollviewError as error:
        _log.warning("still in line for a lease: %s", error.message)


def _take(
    connection: sa.Connection, rows: Sequence[sa.Row[Any]], now: datetime, expires: datetime
) -> Mapping[str, int]:
    me = this_process()
    who = {"owner": me.owner, "machine": me.machine, "pid": me.pid, "pid_started": me.started}
    values = {**who, "holder": uuid.uuid4().hex, "acquired": now, "expires": expires}
    taken = t.lease.c.thing.in_([row.thing for row in rows])
    connection.execute(t.lease.update().where(taken).values(token=t.lease.c.token + 1, **values))
    return {row.thing: row.token + 1 for row in rows}


def _is_free(row: sa.Row[Any], now: datetime) -> bool:
    if row.holder is None or row.expires <= now:
        return True
    return is_dead(Process(row.owner, row.machine, row.pid, row.pid_started))


def _info(row: sa.Row[Any]) -> LeaseInfo:
    return LeaseInfo(row.thing, row.owner, row.token, row.acquired, row.expires)
