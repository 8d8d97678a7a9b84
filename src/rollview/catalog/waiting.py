"""The queue of those who wait for leases, kept in the rows of what they wait for.

Laws: who waits longer goes first: nobody takes a thing that an earlier waiter could have, were it not for somebody who
came after it. A waiter whose things are held since before it came keeps nobody from the rest of them, as it could not
go on anyway. A waiter that is dead or silent counts no more. Who holds something already lets only those go first who
hold something too and can go on at once, so nobody waits for a waiter who waits for him.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from rollview.catalog import tables as t
from rollview.catalog.process import Process, is_dead, this_process

SILENCE = timedelta(seconds=10)
"""After so long without a sign of life nobody waits for a waiter, whose process may be suspended."""
FORGOTTEN = timedelta(minutes=2)
"""So much later its place in the line is gone as well."""


@dataclass(frozen=True, slots=True)
class Waiter:
    """``tokens``: of the things that are waited for, as they were when the wait began. ``holds``: whether it holds
    other things meanwhile."""

    tokens: Mapping[str, int]
    holds: bool
    since: datetime
    expires: datetime
    process: Process = field(default_factory=this_process)
    id: str = field(default_factory=lambda: uuid.uuid4().hex)

    def is_alive(self, now: datetime) -> bool:
        return now < self.expires and not is_dead(self.process)

    def is_gone(self, now: datetime) -> bool:
        return now >= self.expires + FORGOTTEN or is_dead(self.process)

    def is_next(self, rows: Mapping[str, sa.Row[Any]], is_free: Callable[[sa.Row[Any]], bool]) -> bool:
        """Whether all that keeps it waiting came after it."""
        wanted = ((rows[thing], token) for thing, token in self.tokens.items() if thing in rows)
        return all(is_free(row) or row.token > token for row, token in wanted)

    def can_go(self, rows: Mapping[str, sa.Row[Any]], is_free: Callable[[sa.Row[Any]], bool]) -> bool:
        return all(is_free(rows[thing]) for thing in self.tokens if thing in rows)


def queue(row: sa.Row[Any]) -> tuple[Waiter, ...]:
    return tuple(_read(one) for one in row.waiting or ())


def first_in_line(
    connection: sa.Connection,
    rows: Sequence[sa.Row[Any]],
    now: datetime,
    is_free: Callable[[sa.Row[Any]], bool],
    me: str,
    holds: bool,
) -> tuple[str, Waiter] | None:
    """A thing of the rows, and an earlier waiter who goes first there. Asks nothing if nobody waits."""
    earlier = [(row.thing, waiter) for row in rows for waiter in _before(queue(row), me) if waiter.is_alive(now)]
    if not earlier:
        return None
    known = _with_others(connection, rows, (waiter for _, waiter in earlier))
    for thing, waiter in earlier:
        if waiter.holds and waiter.can_go(known, is_free) if holds else waiter.is_next(known, is_free):
            return thing, waiter
    return None


def stand_in_line(connection: sa.Connection, rows: Sequence[sa.Row[Any]], now: datetime, me: str, holds: bool) -> None:
    """Wait in all of the rows, which are locked, or say that the wait goes on."""
    new = Waiter({row.thing: row.token for row in rows}, holds, now, now + SILENCE, id=me)
    for row in rows:
        present = queue(row)
        own = next((waiter for waiter in present if waiter.id == me), None)
        if own is not None and own.expires - now > SILENCE / 2:
            continue
        others = [one for one in present if one.id != me and not one.is_gone(now)]
        place = len(others) if own is None else sum(one in others for one in _before(present, me))
        _write(connection, row.thing, [*others[:place], replace(own or new, expires=new.expires), *others[place:]])


def leave_line(connection: sa.Connection, rows: Iterable[sa.Row[Any]], me: str) -> None:
    for row in rows:
        present = queue(row)
        rest = [one for one in present if one.id != me]
        if len(rest) < len(present):
            _write(connection, row.thing, rest)


def _before(waiters: Sequence[Waiter], me: str) -> Sequence[Waiter]:
    place = next((number for number, waiter in enumerate(waiters) if waiter.id == me), len(waiters))
    return waiters[:place]


def _with_others(
    connection: sa.Connection, rows: Sequence[sa.Row[Any]], waiters: Iterable[Waiter]
) -> Mapping[str, sa.Row[Any]]:
    """The rows, and those of other things that the waiters wait for."""
    known = {row.thing: row for row in rows}
    others = {thing for waiter in waiters for thing in waiter.tokens} - known.keys()
    if others:
        found = connection.execute(sa.select(t.lease).where(t.lease.c.thing.in_(sorted(others))))
        known |= {row.thing: row for row in found}
    return known


def _write(connection: sa.Connection, thing: str, waiters: Sequence[Waiter]) -> None:
    values = [
        asdict(one) | {"since": one.since.isoformat(), "expires": one.expires.isoformat()} for one in waiters
    ] or None
    connection.execute(t.lease.update().where(t.lease.c.thing == thing).values(waiting=values))


def _read(value: Mapping[str, Any]) -> Waiter:
    times = {name: datetime.fromisoformat(value[name]) for name in ("since", "expires")}
    return Waiter(**{**value, **times, "process": Process(**value["process"])})
