"""When a view that is behind will have caught up, by what came and what was done."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rollview.catalog import MissedCommits, Step
from rollview.core.interval import Interval
from rollview.query.pace import Pace, pace

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def step(commits: int, seconds: float, status: Any = "done") -> Step:
    ended = NOW + timedelta(seconds=seconds)
    return Step(1, "v", "propagate", Interval(0, 1), status, NOW, ended, "me", (), {"commits": commits})


def missed(recent: int, old: int) -> MissedCommits:
    return MissedCommits(recent + old, NOW - timedelta(hours=1), recent)


def test_a_view_that_is_quicker_than_its_commits_catches_up() -> None:
    told = pace(missed(60, 840), [step(200, 10), step(200, 10)])
    assert told == Pace(came=1.0, done=20.0, catches_up_in=pytest.approx(900 / 19))


def test_a_view_that_is_slower_never_does() -> None:
    assert pace(missed(600, 0), [step(10, 2)]) == Pace(10.0, 5.0, None)


def test_steps_that_failed_or_counted_nothing_tell_nothing() -> None:
    assert pace(missed(6, 0), [step(99, 1, "undone"), step(0, 1)]) == Pace(0.1, None, None)
