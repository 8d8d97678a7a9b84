"""Who waits longer for a lease goes first."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest
import sqlalchemy as sa

from rollview import errors
from rollview.catalog import Catalog
from rollview.catalog import tables as t
from rollview.catalog.leases import lock_rows
from rollview.catalog.waiting import FORGOTTEN, SILENCE, leave_line, queue, stand_in_line

WORKER = Path(__file__).with_name("worker.py")
Reopened = Callable[..., Catalog]


def in_line(catalog: Catalog, thing: str) -> list[str]:
    with catalog._database.read() as connection:
        row = connection.execute(sa.select(t.lease).where(t.lease.c.thing == thing)).one_or_none()
        return [] if row is None else [waiter.id for waiter in queue(row)]


def until(happens: Callable[[], bool]) -> None:
    while not happens():
        threading.Event().wait(0.01)


def stand(catalog: Catalog, *things: str) -> Callable[[], None]:
    """Somebody who stands in line and does not look again; gives what makes him leave."""
    database = catalog._database
    with database.write() as connection:
        stand_in_line(connection, lock_rows(connection, things), database.now(connection), "he", False)

    def leave() -> None:
        with database.write() as connection:
            leave_line(connection, lock_rows(connection, things), "he")

    return leave


def test_nobody_takes_what_somebody_waits_for(catalog: Catalog, reopened: Reopened) -> None:
    other = reopened()
    with catalog.lease("a", "b"):
        leave = stand(other, "a")
    with pytest.raises(errors.Busy, match=f"pid {os.getpid()}"):
        other.lease("a", wait=0.1).__enter__()
    with other.lease("b", wait=0.1), other.lease("a", wait=0):
        """Nobody waits for b; and who does not wait takes what is free."""
    leave()
    with other.lease("a", wait=0.1):
        assert in_line(other, "a") == []


def test_a_dead_waiter_keeps_nobody(url: str, catalog: Catalog, reopened: Reopened) -> None:
    other = reopened()
    with catalog.lease("a"), subprocess.Popen([sys.executable, str(WORKER), "wait", url, "a"]) as worker:
        until(lambda: bool(in_line(other, "a")))
        worker.kill()
    assert len(in_line(other, "a")) == 1
    with other.lease("a", wait=5), pytest.raises(errors.Busy):
        reopened().lease("a", wait=0.1).__enter__()
    assert in_line(other, "a") == [], "the next who waited took it away, and left"


def test_a_silent_waiter_keeps_nobody_and_keeps_its_place_for_a_while(tmp_path: Path) -> None:
    now = [datetime(2026, 6, 1, tzinfo=UTC)]
    with (
        Catalog.create(tmp_path / "catalog.db", wall_clock=lambda: now[0]) as catalog,
        Catalog.open(tmp_path / "catalog.db", wall_clock=lambda: now[0]) as other,
    ):
        with catalog.lease("a"):
            leave = stand(catalog, "a")
        with pytest.raises(errors.Busy):
            other.lease("a", wait=0.1).__enter__()
        for later, line in ((SILENCE, ["he"]), (FORGOTTEN, [])):
            now[0] += later
            with other.lease("a", wait=0.1), pytest.raises(errors.Busy):
                catalog.lease("a", wait=0.1).__enter__()
            assert in_line(catalog, "a") == line
        leave()


def test_a_waiter_keeps_nobody_from_what_it_could_not_use(catalog: Catalog, reopened: Reopened) -> None:
    first, other = reopened(), reopened()
    with catalog.lease("a", "b"):
        pass
    with first.lease("a"):
        stand(catalog, "a", "b")
        for _ in range(2):
            with other.lease("b", wait=1):
                pass
    with pytest.raises(errors.Busy):
        other.lease("b", wait=0.1).__enter__()
    with first.lease("a", wait=0), pytest.raises(errors.Busy):
        # Whoever holds a now came after the waiter, so b stays reserved.
        other.lease("b", wait=0.1).__enter__()


def test_who_holds_something_does_not_wait_for_those_who_wait_for_it(catalog: Catalog, reopened: Reopened) -> None:
    other = reopened()
    with catalog.lease("a", "b"):
        stand(catalog, "a", "b")
    with other.lease("b", wait=0), other.lease("a", wait=1):
        pass


def test_whoever_is_first_in_line_has_the_next_turn(catalog: Catalog, reopened: Reopened) -> None:
    turns: list[tuple[list[str], list[str]]] = []
    places = [reopened() for _ in range(4)]

    def work(number: int) -> None:
        for _ in range(8):
            with places[number].lease("a", "b" if number % 2 else "c", wait=120):
                at_first = in_line(places[number], "a")
                time.sleep(0.02)
                turns.append((at_first, in_line(places[number], "a")))

    with ThreadPoolExecutor(len(places)) as pool:
        list(pool.map(work, range(len(places))))
    assert max(len(waiting) for _, waiting in turns) > 1
    for (_, waiting), (still, _) in pairwise(turns):
        assert not waiting or waiting[0] not in still, turns
    assert in_line(catalog, "a") == []


def test_where_nobody_waits_a_lease_costs_what_it_cost(catalog: Catalog) -> None:
    statements: list[str] = []
    with catalog.lease("a"):
        pass
    sa.event.listen(catalog._database.engine, "before_cursor_execute", lambda *about: statements.append(about[2]))
    with catalog.lease("a"):
        pass
    told = [
        text.split()[0] for text in statements if text.startswith(("SELECT rollview", "UPDATE", "INSERT", "DELETE"))
    ]
    assert told == ["SELECT", "UPDATE", "SELECT", "UPDATE"]
