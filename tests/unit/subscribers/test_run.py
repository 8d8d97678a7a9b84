"""``rollview run`` delivers: in rounds, and until it is told to stop."""

from __future__ import annotations

import threading
from pathlib import Path

from tests.unit.maintain.small import Small
from tests.unit.maintain.test_maintain import grow
from tests.unit.subscribers.receivers import WebServer
from tests.unit.subscribers.test_files import check

from rollview.relations.cadence import every
from rollview.results import Delivered
from rollview.schedule.due import Turns


def test_a_round_delivers_after_the_views(grown: Small, tmp_path: Path) -> None:
    grown.warehouse.add_subscriber("x", "v", to=str(tmp_path / "out"))
    events = list(grown.warehouse.run(0.1, threading.Event(), rounds=1))
    assert [one.batches for event in events if isinstance(event, Delivered) for one in event.subscribers] == [2]
    assert check(grown, tmp_path / "out").csn == 12


def test_a_round_without_addresses_delivers_nothing(grown: Small) -> None:
    grown.warehouse.add_subscriber("x", "v")
    events = list(grown.warehouse.run(0.1, threading.Event(), rounds=1))
    assert not [event for event in events if isinstance(event, Delivered)]


def test_it_delivers_until_it_is_told_to_stop(grown: Small, tmp_path: Path) -> None:
    stop, seen = threading.Event(), []
    grown.warehouse.add_subscriber("x", "v", to=str(tmp_path / "out"))
    for event in grown.warehouse.run(0.1, stop):
        assert isinstance(event, Delivered), event
        seen.append(event.subscribers[0].position)
        if seen == [12]:
            grow(grown, 1, seed=3)
        else:
            stop.set()
    assert seen == [12, 13]
    assert check(grown, tmp_path / "out").csns == [0, 12, 13]


def test_who_fails_waits_and_hurts_nobody(grown: Small, tmp_path: Path) -> None:
    server = WebServer()
    try:
        server.statuses = [503] * 100
        grown.warehouse.add_subscriber("bad", "v", to=server.address)
        grown.warehouse.add_subscriber("good", "v", to=str(tmp_path / "out"))
        (done,) = [event for event in grown.warehouse.run(0.1, threading.Event(), 1) if isinstance(event, Delivered)]
        assert [(one.name, one.problem is None) for one in done.subscribers] == [("bad", False), ("good", True)]
    finally:
        server.close()
    turns = Turns(grown.warehouse.catalog, None, every(1.0))
    assert turns.subscribers() == ("bad",)
    turns.delivered(["bad"], ["bad"])
    assert turns.subscribers() == ()
    turns.delivered(["bad"], [])
    assert turns.subscribers() == ("bad",)
