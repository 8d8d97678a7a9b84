"""A long interval is several steps, each of so much work as the view's history allows."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.unit.propagate.test_choice import KEYED, LINEAR, plan_for

from rollview.catalog import ChangeCount, Step
from rollview.core.interval import Interval
from rollview.propagate.bounds import (
    BRIEF,
    BRIEF_COMMITS,
    FEWEST_COMMITS,
    FIRST_COMMITS,
    FIRST_COMMITS_AGAIN,
    TARGET_SECONDS,
    StepBound,
    StepLimit,
    bounded,
    step_limit,
)

AGAIN = plan_for("SELECT k FROM (SELECT k, PERCENTILE(x, 0.5) AS x FROM r GROUP BY k) AS t WHERE x > 3")


def tried(commits: int, seconds: float, status: Any = "done") -> Step:
    began = datetime(2026, 1, 1, tzinfo=UTC)
    profile = {"commits": commits} if status == "done" else {}
    return Step(
        1, "v", "propagate", Interval(0, 1), status, began, began + timedelta(seconds=seconds), "me", (), profile
    )


class Counts:
    """A commit at each of ``csns`` with ``rows`` changed rows; remembers how far the ledger was read."""

    def __init__(self, csns: range, rows: int = 1) -> None:
        self.csns, self.rows, self.read = csns, rows, 0

    def __call__(self, window: Interval) -> list[ChangeCount]:
        self.read = max(self.read, window.through)
        inside = (csn for csn in self.csns if window.after < csn <= window.through)
        return [ChangeCount("t", csn, self.rows, 0, None) for csn in inside]


def test_what_fits_is_one_step() -> None:
    assert bounded(Interval(3, 9), Counts(range(1, 20)), StepLimit(6)) == StepBound(Interval(3, 9), 6)


def test_a_step_ends_at_the_last_commit_that_fits() -> None:
    assert bounded(Interval(0, 90), Counts(range(1, 91)), StepLimit(7)) == StepBound(Interval(0, 7), 7)
    assert bounded(Interval(0, 90), Counts(range(1, 91), rows=4), StepLimit(50, rows=10)) == StepBound(
        Interval(0, 2), 2
    )


def test_a_commit_that_is_larger_than_a_step_is_one_step() -> None:
    assert bounded(Interval(0, 90), Counts(range(5, 91), rows=99), StepLimit(50, rows=10)) == StepBound(
        Interval(0, 5), 1
    )


def test_commits_that_change_nothing_here_cost_no_step() -> None:
    counts = Counts(range(1000, 100_001, 1000))
    assert bounded(Interval(0, 100_000), counts, StepLimit(200)) == StepBound(Interval(0, 100_000), 100)


def test_the_ledger_is_not_read_to_its_end_for_the_first_step() -> None:
    counts = Counts(range(1, 100_001))
    assert bounded(Interval(0, 100_000), counts, StepLimit(100)).commits == 100
    assert counts.read <= 500


def test_a_brief_step_is_short_whatever_the_history_allows_and_tells_nothing() -> None:
    long = tried(40_000, 1.0)
    assert step_limit(LINEAR, [long], brief=True) == StepLimit(BRIEF_COMMITS)
    brief = replace(tried(BRIEF_COMMITS, 30.0), profile={"commits": BRIEF_COMMITS, BRIEF: True})
    assert step_limit(LINEAR, [brief, long]) == step_limit(LINEAR, [long]) == StepLimit(80_000)


def test_a_brief_step_is_no_longer_than_another() -> None:
    slow = [tried(1000, 30.0), tried(1000, 30.0)]
    assert step_limit(LINEAR, slow, brief=True) == step_limit(LINEAR, slow) == StepLimit(500)


def test_of_processes_that_live_for_one_quick_step_each_brings_twice_as_many_commits() -> None:
    past, brought = [tried(0, 1.0, "undone")] * 2, []
    for seconds in (2.0, 1.0, 2.0, 2.5, 4.0, 6.0, 1.0):
        brought.append(step_limit(LINEAR, past, brief=True).commits)
        past.insert(0, replace(tried(brought[-1], seconds), profile={"commits": brought[-1], BRIEF: True}))
    assert brought == [500, 2000, 4000, 8000, 16_000, 16_000, 8000]
    assert step_limit(LINEAR, past, brief=True).commits == 16_000
    assert step_limit(LINEAR, [*[tried(0, 1.0, "undone")] * 2, *past], brief=True).commits == 4000


def test_a_process_that_is_killed_young_is_no_reason_for_a_shorter_step_the_first_time() -> None:
    """Spark had barely started: with fewer commits it would not have got further."""
    past, brought = list[Step](), []
    for _ in range(8):
        brought.append(step_limit(KEYED, past, brief=True).commits)
        past.insert(0, tried(0, 1.0, "undone"))
    assert brought == [2000, 2000, 500, 500, 125, 125, FEWEST_COMMITS, FEWEST_COMMITS]


def test_only_views_that_aggregate_whole_groups_again_begin_with_few_commits() -> None:
    assert step_limit(LINEAR, ()) == StepLimit(FIRST_COMMITS)
    assert step_limit(KEYED, ()) == StepLimit(FIRST_COMMITS)
    assert step_limit(AGAIN, ()) == StepLimit(FIRST_COMMITS_AGAIN)


@pytest.mark.parametrize("value", ["MAX(x)", "COUNT(DISTINCT x)", "SUM(x)", "BOOL_OR(x > 3)"])
def test_aggregates_that_can_be_combined_are_not_taken_again(value: str) -> None:
    assert not plan_for(f"SELECT k FROM (SELECT k, {value} AS y FROM r GROUP BY k) AS t WHERE y = 3").aggregates_again


def test_a_second_slow_step_is_halved_and_a_quick_one_doubled() -> None:
    slow = tried(9000, TARGET_SECONDS + 1)
    assert step_limit(KEYED, [slow]).commits == 9000
    assert step_limit(KEYED, [slow, slow]).commits == 4500
    assert step_limit(KEYED, [tried(19_000, TARGET_SECONDS - 1)]).commits == 38_000
    assert step_limit(KEYED, [tried(3, 0.1)]).commits == FIRST_COMMITS
    assert step_limit(AGAIN, [tried(3, 0.1)]).commits == FIRST_COMMITS_AGAIN


def test_what_each_commit_adds_decides_and_not_what_every_step_takes() -> None:
    """Six seconds before the first commit, and a tenth of a millisecond for each."""
    past = [tried(60, 6.006)]
    steps, left = 0, 100_000
    while left > 0:
        commits = min(left, step_limit(KEYED, past).commits)
        past.insert(0, tried(commits, 6 + commits / 10_000))
        steps, left = steps + 1, left - commits
    assert steps < 20


def test_commits_that_are_slow_are_taken_as_many_as_fit() -> None:
    """Ten milliseconds for each commit: five hundred fit."""
    past = [tried(2000, 20.0)]
    for _ in range(6):
        commits = step_limit(KEYED, past).commits
        past.insert(0, tried(commits, commits / 100))
    assert all(250 <= int(step.profile["commits"]) <= 1000 for step in past[:4])


def test_steps_that_never_ended_get_smaller_until_one_does() -> None:
    killed = tried(0, 1, "undone")
    assert step_limit(KEYED, [killed]).commits == FIRST_COMMITS // 4
    assert step_limit(KEYED, [killed, killed, tried(80_000, 4.0)]).commits == 10_000
    assert step_limit(KEYED, [killed] * 30).commits == FEWEST_COMMITS


def test_so_many_rows_as_a_step_may_have_are_one_step() -> None:
    assert bounded(Interval(0, 90), Counts(range(1, 91), rows=5), StepLimit(50, rows=10)).commits == 2


def test_a_step_without_counted_commits_tells_nothing() -> None:
    assert step_limit(KEYED, [tried(0, 9.0), tried(19_000, TARGET_SECONDS - 1)]).commits == 38_000


def test_steps_of_the_same_length_do_not_tell_what_each_commit_adds() -> None:
    past = [tried(8000, TARGET_SECONDS + 4), tried(8000, TARGET_SECONDS + 1)]
    assert step_limit(KEYED, past).commits == 4000
    assert step_limit(KEYED, [*past, tried(2000, TARGET_SECONDS + 1)]).commits == 16_000


def test_on_a_busy_machine_steps_are_so_long_that_half_of_them_is_progress() -> None:
    """Twenty seconds before the first commit, and ten milliseconds for each; every other step is delayed."""
    past = [tried(2000, 40.0)]
    for number in range(12):
        commits = step_limit(KEYED, past).commits
        past.insert(0, tried(commits, 20 + commits / 100 + 3 * (number % 2)))
    assert all(1000 <= int(step.profile["commits"]) <= 4000 for step in past[:-2])


def test_a_step_as_long_as_another_that_was_slow_once_is_not_too_long() -> None:
    assert step_limit(KEYED, [tried(100, 1.0), tried(100, TARGET_SECONDS + 4)]).commits == FIRST_COMMITS
    assert step_limit(KEYED, [tried(100, 1.0), tried(101, TARGET_SECONDS + 4)]).commits == 200
    assert step_limit(KEYED, [tried(100, 1.0), tried(101, TARGET_SECONDS)]).commits == FIRST_COMMITS
    assert step_limit(KEYED, [tried(100, TARGET_SECONDS)]).commits == FIRST_COMMITS


@pytest.mark.parametrize(
    ("newest", "before", "commits"),
    [
        pytest.param((1000, 12.0), (500, 7.0), 300, id="two seconds to begin with, ten milliseconds for each"),
        pytest.param((1000, 24.0), (500, 19.0), 1400, id="the beginning is half of it"),
        pytest.param((1000, 9.0), (600, 5.0), 500, id="a beginning below nothing is none"),
        pytest.param((1000, 9.0), (600, 10.0), 2000, id="more commits were quicker"),
        pytest.param((1000, 9.0), (600, 9.0), 2000, id="commits add nothing"),
    ],
)
def test_as_many_commits_as_fit_beside_what_every_step_takes(
    newest: tuple[int, float], before: tuple[int, float], commits: int
) -> None:
    assert step_limit(KEYED, [tried(*newest), tried(*before)]).commits == commits


def test_a_step_that_failed_tells_nothing_of_what_one_takes() -> None:
    failed = replace(tried(300, 1.0), status="failed")
    assert step_limit(KEYED, [failed, tried(9000, TARGET_SECONDS + 1)]).commits == 9000 // 4


def test_steps_that_were_computed_ahead_of_one_that_was_lost_are_not_lost_by_themselves() -> None:
    first, ahead = tried(0, 1, "undone"), replace(tried(0, 1, "undone"), interval=Interval(8, 9))
    assert step_limit(KEYED, [ahead, first]).commits == FIRST_COMMITS // 4
    assert step_limit(KEYED, [ahead, ahead, first]).commits == FIRST_COMMITS // 4
