"""Phases are exclusive, and cost nothing to code that nobody measures."""

from __future__ import annotations

import time

import pytest

from rollview.core.phases import Phases, measured, phase


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def move(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(time, "perf_counter", lambda: made.now)
    return made


def test_time_inside_an_inner_phase_is_the_inner_ones_alone(clock: Clock) -> None:
    phases = Phases()
    with measured(phases), phase("outer"):
        clock.move(2)
        with phase("inner"):
            clock.move(5)
            with phase("innermost"):
                clock.move(9)
        clock.move(1)
    assert phases.seconds == {"outer": 3, "inner": 5, "innermost": 9}


def test_the_same_phase_adds_up_also_when_it_fails(clock: Clock) -> None:
    phases = Phases()
    with measured(phases):
        for _ in range(2):
            try:
                with phase("again"):
                    clock.move(3)
                    raise KeyError
            except KeyError:
                pass
    assert phases.seconds == {"again": 6}


def test_nothing_is_kept_outside() -> None:
    phases = Phases()
    with measured(phases):
        pass
    with phase("later"):
        pass
    assert phases.seconds == {}
