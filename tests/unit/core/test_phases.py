"""Phases are exclusive, and cost nothing to code that nobody measures."""

from __future__ import annotations

import time

from rollview.core.phases import Phases, measured, phase


def test_time_inside_an_inner_phase_is_the_inner_ones_alone() -> None:
    phases = Phases()
    began = time.perf_counter()
    with measured(phases), phase("outer"):
        time.sleep(0.02)
        with phase("inner"):
            time.sleep(0.05)
    took = time.perf_counter() - began
    assert phases.seconds["inner"] >= 0.05
    assert 0.02 <= phases.seconds["outer"] <= took - 0.05
    assert sum(phases.seconds.values()) <= took


def test_the_same_phase_adds_up_also_when_it_fails() -> None:
    phases = Phases()
    with measured(phases):
        for _ in range(2):
            try:
                with phase("again"):
                    time.sleep(0.01)
                    raise KeyError
            except KeyError:
                pass
    assert phases.seconds["again"] >= 0.02


def test_nothing_is_kept_outside() -> None:
    phases = Phases()
    with measured(phases):
        pass
    with phase("later"):
        pass
    assert phases.seconds == {}
