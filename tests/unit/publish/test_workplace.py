"""Spark is started before somebody needs it, where somebody will, and never twice."""

from __future__ import annotations

from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from rollview.core.order import Order
from rollview.engine import session
from rollview.errors import EnvironmentFault
from rollview.publish.workplace import Workplace
from rollview.relations.policies import Policies


class Starts:
    """Stands for ``session.start``: fails as often as it is told to."""

    def __init__(self, failures: int = 0) -> None:
        self.failures, self.count = failures, 0
        self.begun, self.may_end = Event(), Event()

    def __call__(self, conf: Any) -> str:
        self.count += 1
        self.begun.set()
        self.may_end.wait(30)
        if self.count <= self.failures:
            raise EnvironmentFault("no Java")
        return f"session {self.count}"


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    catalog: Any = SimpleNamespace(sources=lambda: (), subscribers=lambda: ())
    follow: Any = None
    return Workplace(tmp_path, catalog, None, {}, Order(), Policies(), follow)


def test_who_needs_spark_waits_for_the_one_that_was_begun(place: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    starts = Starts()
    monkeypatch.setattr(session, "start", starts)
    place.start_spark_ahead(lambda: True)
    assert starts.begun.wait(30), "nobody had to ask"
    starts.may_end.set()
    assert (place.spark, starts.count) == ("session 1", 1)


def test_one_that_did_not_start_is_told_to_whoever_asks(place: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    starts = Starts(failures=2)
    starts.may_end.set()
    monkeypatch.setattr(session, "start", starts)
    place.start_spark_ahead(lambda: True)
    assert starts.begun.wait(30)
    with pytest.raises(EnvironmentFault):
        place.spark  # noqa: B018
    assert (place.spark, starts.count) == ("session 3", 3)


def test_where_nobody_will_need_it_none_is_started(place: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    starts, asked = Starts(), Event()
    monkeypatch.setattr(session, "start", starts)

    def is_needed() -> bool:
        asked.set()
        return False

    place.start_spark_ahead(is_needed)
    assert asked.wait(30)
    assert not starts.begun.wait(0.2)
