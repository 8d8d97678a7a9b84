"""Answers whose rows somebody may still fetch.

Law: an answer's row is there before the snapshot is taken that it reads, and says since when. What went out of use
later than that stays until the row has ended: its process says so, or is seen to be dead, or gave no sign of life for
long.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Collection, Mapping
from typing import Any

import sqlalchemy as sa

from rollview.catalog import tables as t
from rollview.catalog.database import Database
from rollview.catalog.process import Process, is_dead, this_process
from rollview.catalog.pulse import LIFE, Pulse
from rollview.catalog.values import ReaderRecord
from rollview.core.interval import Csn

_KEPT = 100
"""So many rows that have ended stay: they tell what was expected and what it took."""


class Readers:
    """Safe to share between threads."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._pulse = Pulse(database, table=t.reader, first=self.end_left)
        self._left: deque[int] = deque()

    def begin(self, relations: Collection[str], csn: Csn, ways: Mapping[str, str], expected_seconds: float) -> int:
        me = this_process()
        who = {"owner": me.owner, "machine": me.machine, "pid": me.pid, "pid_started": me.started}
        what = {"relations": sorted(relations), "csn": csn, "ways": dict(ways), "expected": expected_seconds}
        self.end_left()
        with self._database.write() as connection:
            now = self._database.now(connection)
            made = connection.execute(t.reader.insert().values(**who, **what, begun=now, expires=now + LIFE))
            key = made.inserted_primary_key
            assert key is not None
            number = int(key[0])
            old = t.reader.c.ended.is_not(None) & (t.reader.c.id <= number - _KEPT)
            connection.execute(t.reader.delete().where(old | (t.reader.c.expires <= now - LIFE)))
        self._pulse.begun([number])
        return number

    def end(self, number: int, seconds: float | None = None) -> None:
        """``seconds``: what fetching took."""
        self._pulse.ended([number])
        with self._database.write() as connection:
            self._end(connection, [number], taken=seconds)

    def leave(self, number: int, pid: int) -> None:
        """Nobody can fetch it any more. Called whenever an answer is taken away, so the database is not asked here."""
        if pid == os.getpid():
            self._left.append(number)

    def end_left(self) -> None:
        left = [self._left.popleft() for _ in range(len(self._left))]
        if left:
            self._pulse.ended(left)
            with self._database.write() as connection:
                self._end(connection, left)

    def live(self) -> tuple[ReaderRecord, ...]:
        """Those that may still read."""
        with self._database.read() as connection:
            now = self._database.now(connection)
            rows = connection.execute(sa.select(t.reader).where(t.reader.c.ended.is_(None), t.reader.c.expires > now))
            return tuple(_reader(row) for row in rows if not is_dead(_process(row)))

    def ended(self) -> tuple[ReaderRecord, ...]:
        """Of the last ones that were fetched, newest first: what was expected and what it took."""
        with self._database.read() as connection:
            fetched = sa.select(t.reader).where(t.reader.c.taken.is_not(None)).order_by(t.reader.c.id.desc())
            return tuple(_reader(row) for row in connection.execute(fetched))

    def stop(self) -> None:
        """What is still open ends with its process."""
        self._pulse.stop()

    def _end(self, connection: sa.Connection, numbers: Collection[int], **values: Any) -> None:
        mine = t.reader.c.id.in_(numbers) & t.reader.c.ended.is_(None)
        connection.execute(t.reader.update().where(mine).values(ended=self._database.now(connection), **values))


def _process(row: sa.Row[Any]) -> Process:
    return Process(row.owner, row.machine, row.pid, row.pid_started)


def _reader(row: sa.Row[Any]) -> ReaderRecord:
    relations = frozenset(row.relations)
    about = (row.expected, row.taken, row.owner, row.begun, row.ended)
    return ReaderRecord(row.id, row.csn, row.ways, relations, *about)
