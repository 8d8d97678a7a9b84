"""The daemon's order of work; what it works on is tested with real sources and views."""

from __future__ import annotations

import threading
from collections.abc import Sequence

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

    def due_views(self) -> Sequence[ViewGroup]:
        return (("v",),)

    def due_subscribers(self) -> Sequence[str]:
        return ()

    def deliver(self, name: str) -> Delivered:
        raise AssertionError(name)

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
