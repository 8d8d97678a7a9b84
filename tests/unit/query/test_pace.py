"""When a view that is behind will have caught up, by what came and what was done."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rollview.catalog import MissedCommits, SourceRecord, Step
from rollview.core.interval import Interval
from rollview.core.states import SourceState
from rollview.query.pace import Pace, pace
from rollview.query.status import seen_until

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def step(commits: int, seconds: float, status: Any = "done", *, ago: float = 3600) -> Step:
    ended = NOW - timedelta(seconds=ago)
    began = ended - timedelta(seconds=seconds)
    return Step(1, "v", "propagate", Interval(0, 1), status, began, ended, "me", (), {"commits": commits})


def missed(recent: int, old: int, *, since: float = 3600) -> MissedCommits:
    return MissedCommits(recent + old, NOW - timedelta(seconds=since), recent)


def test_a_view_that_is_quicker_than_its_commits_catches_up() -> None:
    told = pace(missed(60, 840), [step(200, 10), step(200, 10)], NOW)
    assert told == Pace(came=1.0, done=20.0, catches_up_in=pytest.approx(900 / 19))


def test_a_view_that_is_slower_never_does() -> None:
    assert pace(missed(600, 0), [step(10, 2)], NOW) == Pace(10.0, 5.0, None)


def test_steps_that_failed_or_counted_nothing_tell_nothing() -> None:
    assert pace(missed(6, 0), [step(99, 1, "undone"), step(0, 1)], NOW) == Pace(0.1, None, None)


def test_a_view_that_is_behind_for_long_is_as_quick_as_the_others_leave_it() -> None:
    """Two steps of a second each, and other views had their turns between them."""
    turns = [step(2000, 1, ago=5), step(2000, 1, ago=19), step(9000, 1, ago=3600)]
    assert pace(missed(18_000, 40_000), turns, NOW) == Pace(300.0, 200.0, None)


def test_a_view_that_keeps_up_could_do_more_than_comes() -> None:
    turns = [step(300, 0.2, ago=1), step(300, 0.2, ago=2)]
    assert pace(missed(18_000, -17_700, since=1), turns, NOW) == Pace(300.0, 1500.0, pytest.approx(300 / 1200))


def source(known: float | None, latest: float | None) -> SourceRecord:
    """Which was known to have passed, and had its newest commit, so many seconds ago."""
    times = [None if ago is None else NOW - timedelta(seconds=ago) for ago in (known, latest)]
    return SourceRecord(1, "s", "postgres", {}, SourceState.ACTIVE, "0/1", {}, None, NOW, (), *times)


def test_what_a_source_committed_since_it_was_read_is_not_taken_for_nothing() -> None:
    """Half of a backlog of an hour is captured: the last minute that is known ended half an hour ago."""
    sources = [source(known=3600, latest=1800), source(known=1, latest=None)]
    assert seen_until(sources, NOW) == NOW - timedelta(seconds=1800)


def test_a_source_that_is_read_to_its_end_is_known_until_then() -> None:
    assert seen_until([source(known=2, latest=900)], NOW) == NOW - timedelta(seconds=2)
    assert seen_until([source(known=None, latest=900), source(known=-5, latest=None)], NOW) == NOW
    assert seen_until([], NOW) == NOW
