"""The daemon's order of work; what it works on is tested with real sources and views."""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence

from rollview.capture.plan import Group
from rollview.errors import Busy, SourceDown
from rollview.results import Captured, Delivered, Refreshed, SourceCaptured
from rollview.schedule.daemon import Event, ViewGroup, paced, work


class Crew:
    """Source ``stuck`` does not answer before it is released; ``down`` fails; ``taken`` is another process's."""

    def __init__(self) -> None:
        self.released = threading.Event()
        self.stop = threading.Event()
        self.captured: list[str] = []
        self.refreshes = 0

    def due_sources(self) -> Sequence[Group]:
        return (("stuck",), ("down",), ("taken",), ("well",))

    def due_views(self, besides: Collection[str] = ()) -> Sequence[ViewGroup]:
        return () if "v" in besides else (("v",),)

    def due_subscribers(self) -> Sequence[str]:
        return ()

    def deliver(self, name: str) -> Delivered:
        raise AssertionError(name)

    def held_by(self, names: ViewGroup) -> frozenset[str]:
        return frozenset(names)

    def capture(self, names: Group) -> Captured:
        (name,) = names
        self.captured.append(name)
        if name == "stuck":
            self.released.wait(30)
        if name == "down":
            raise SourceDown(name, "no")
        if name == "taken":
            raise Busy(name, "another", "now")
        return Captured(1, (SourceCaptured(name, 0, 0, "1"),))

    def refresh(self, names: ViewGroup) -> Refreshed:
        self.refreshes += 1
        return Refreshed(1, ())


def test_one_that_is_stuck_or_down_hurts_nobody_and_all_that_began_is_finished() -> None:
    crew = Crew()
    seen: list[Event] = []
    for event in work(crew, crew.stop):
        seen.append(event)
        if crew.captured.count("well") > 5 and crew.refreshes > 5 and not crew.stop.is_set():
            assert crew.captured.count("stuck") == 1
            crew.stop.set()
            threading.Timer(0.1, crew.released.set).start()
    names = [event.sources[0].name for event in seen if isinstance(event, Captured)]
    assert names.count("stuck") == 1
    assert names.count("well") == crew.captured.count("well")
    assert any(isinstance(event, SourceDown) for event in seen)
    assert not any(isinstance(event, Busy) for event in seen)


def test_rounds_are_counted_and_stopped() -> None:
    stop = threading.Event()
    assert list(paced(0.01, stop, 3)) == [1, 2, 3]
    stop.set()
    assert list(paced(0.01, stop, 3)) == []


class Family(Crew):
    """``upper`` reads ``lower``; turns go on until two that need not wait for each other met, for a while at most."""

    def __init__(self) -> None:
        super().__init__()
        self.under_way = set[str]()
        self.met = set[frozenset[str]]()
        self.lock = threading.Lock()

    def due_sources(self) -> Sequence[Group]:
        return ()

    def due_views(self, besides: Collection[str] = ()) -> Sequence[ViewGroup]:
        return tuple((name,) for name in ("lower", "upper", "other") if name not in besides)

    def held_by(self, names: ViewGroup) -> frozenset[str]:
        return frozenset((*names, "lower") if "upper" in names else names)

    def refresh(self, names: ViewGroup) -> Refreshed:
        with self.lock:
            self.under_way |= set(names)
            self.met |= {frozenset((*names, other)) for other in self.under_way.difference(names)}
            self.refreshes += 1
        threading.Event().wait(0.01)
        with self.lock:
            self.under_way -= set(names)
        return Refreshed(1, ())


def test_views_have_turns_at_once_unless_one_reads_the_other() -> None:
    crew = Family()
    for _ in work(crew, crew.stop, parallel=4):
        if crew.refreshes > 30:
            crew.stop.set()
    assert crew.met
    assert frozenset({"lower", "upper"}) not in crew.met


def test_one_worker_gives_one_turn_at_a_time() -> None:
    crew = Family()
    for _ in work(crew, crew.stop):
        if crew.refreshes > 10:
            crew.stop.set()
    assert not crew.met
