"""How far one propagation step goes.

Law (Salem et al., *How To Roll a Join*): a long interval is several small steps, each published with its mark, so what
is done survives whatever happens next. A step ends at a commit, takes at least one, and no answer depends on where
steps end.

The number of commits follows the view's own history: half as many after a step that took too long or never ended, twice
as many after a quick one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rollview.algebra.operator import Upkeep
from rollview.algebra.view import ViewPlan
from rollview.catalog import ChangeCount, Step
from rollview.core.interval import Csn, Interval

TARGET_SECONDS = 5.0
"""A step that takes longer was too long."""
MOST_ROWS = 2_000_000
FIRST_COMMITS = 20_000
FIRST_COMMITS_KEYED = 2_000
FEWEST_COMMITS = 50
_WIDER = 4

ChangesIn = Callable[[Interval], Sequence[ChangeCount]]
"""The ledger's counts of the changes to all that the view rests on."""


@dataclass(frozen=True, slots=True)
class StepLimit:
    commits: int
    rows: int = MOST_ROWS


@dataclass(frozen=True, slots=True)
class StepBound:
    """What one step takes, and how many commits that changed something lie in it."""

    interval: Interval
    commits: int


def step_limit(plan: ViewPlan, past: Sequence[Step]) -> StepLimit:
    """``past``: the view's last propagation steps, newest first, whatever became of them."""
    first = FIRST_COMMITS_KEYED if any(note.how == Upkeep.KEYED for note in plan.operators) else FIRST_COMMITS
    lost = next((place for place, step in enumerate(past) if step.status == "done"), len(past))
    done = next((step for step in past if step.status == "done" and step.profile.get("commits")), None)
    allowed = first if done is None else _after(int(done.profile["commits"]), _seconds(done), first)
    return StepLimit(max(FEWEST_COMMITS, allowed >> lost))


def _seconds(step: Step) -> float:
    return (step.finished - step.started).total_seconds() if step.finished is not None else 0.0


def _after(commits: int, seconds: float, first: int) -> int:
    if seconds > TARGET_SECONDS:
        return commits // 2
    return commits if seconds > TARGET_SECONDS / 2 else max(first, 2 * commits)


def bounded(interval: Interval, changes_in: ChangesIn, limit: StepLimit) -> StepBound:
    """The part of the interval that one step takes."""
    commits = rows = 0
    reached = interval.after
    for csn, changed in _by_csn(interval, changes_in, limit.commits):
        if commits and (commits + 1 > limit.commits or rows + changed > limit.rows):
            return StepBound(Interval(interval.after, reached), commits)
        commits, rows, reached = commits + 1, rows + changed, csn
    return StepBound(interval, commits)


def _by_csn(interval: Interval, changes_in: ChangesIn, width: int) -> Iterator[tuple[Csn, int]]:
    """Commits that changed something, in order, with how many rows; looked up in wider and wider windows, so that a
    long interval is not read whole for its beginning."""
    begin = interval.after
    while begin < interval.through:
        end = min(interval.through, begin + width)
        rows: Counter[Csn] = Counter()
        for count in changes_in(Interval(begin, end)):
            rows[count.csn] += count.inserted + count.deleted
        yield from sorted(rows.items())
        begin, width = end, width * _WIDER
