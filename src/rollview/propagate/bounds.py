"""How far one propagation step goes.

Law (Salem et al., *How To Roll a Join*): a long interval is several small steps, each published with its mark, so what
is done survives whatever happens next. A step ends at a commit, takes at least one, and no answer depends on where
steps end.

The number of commits follows the view's own history: what its last steps took is told apart into what every step takes
and what each commit adds; what a step takes anyway is at most half of it. A step that never ended is a quarter as long
next time: a process that is killed again and again still gets on. Its first step of each view is brief; where
that was quick, the next process begins with twice as many commits. A brief one is tried twice before it gets shorter: a
process that was killed young may have had everything yet to load, and fewer commits would not have helped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from statistics import linear_regression

from rollview.algebra.view import ViewPlan
from rollview.catalog import ChangeCount, Step
from rollview.core.interval import Csn, Interval
from rollview.costs.refreshing import TOOK

TARGET_SECONDS = 5.0
"""A step that takes longer was too long."""
MOST_ROWS = 2_000_000
FIRST_COMMITS = 20_000
FIRST_COMMITS_AGAIN = 2_000
"""Of a view that looks at all rows of a touched group at each commit."""
FEWEST_COMMITS = 50
BRIEF_COMMITS = 2_000
"""Of the first brief step: the first of a process, which has everything yet to load and may soon be killed."""
BRIEF = "brief"
"""In the profile of a step: it was brief, so it does not tell how long the next one may be."""
_TOLD_BY = 6
"""So many of the last steps tell what a step takes, so that one that met a busy machine does not decide alone."""
_SHORTER = 4
_TRIES = 2
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


def step_limit(plan: ViewPlan, past: Sequence[Step], *, brief: bool = False) -> StepLimit:
    """``past``: the view's last propagation steps, newest first, whatever became of them."""
    first = FIRST_COMMITS_AGAIN if plan.aggregates_again else FIRST_COMMITS
    lost = _lost([*takewhile(lambda step: step.status != "done", past)])
    counted = [step for step in past if step.status == "done" and step.profile.get("commits")]
    seen = [(int(step.profile["commits"]), _seconds(step)) for step in counted if not step.profile.get(BRIEF)]
    allowed = _allowed(seen, first) if seen else first
    allowed = min(allowed, _allowed_briefly(counted)) if brief else allowed
    return StepLimit(max(FEWEST_COMMITS, allowed // _SHORTER ** (lost // _TRIES if brief else lost)))


def _allowed_briefly(counted: Sequence[Step]) -> int:
    last = next((step for step in counted if step.profile.get(BRIEF)), None)
    if last is None:
        return BRIEF_COMMITS
    commits, seconds = int(last.profile["commits"]), _seconds(last)
    allowed = commits // 2 if seconds > TARGET_SECONDS else commits
    return max(BRIEF_COMMITS, 2 * commits if seconds <= TARGET_SECONDS / 2 else allowed)


def _lost(unfinished: Sequence[Step]) -> int:
    """How often the first step that is missing was begun. Others were computed ahead of it, and fell with it."""
    first = min((step.interval.after for step in unfinished), default=0)
    return sum(1 for step in unfinished if step.interval.after == first)


def _seconds(step: Step) -> float:
    if TOOK in step.profile:
        return float(step.profile[TOOK])
    return (step.finished - step.started).total_seconds() if step.finished is not None else 0.0


def _allowed(seen: Sequence[tuple[int, float]], first: int) -> int:
    """``seen``: commits and seconds of the steps that ended, newest first. At most twice as many as the newest."""
    commits, seconds = seen[0]
    if seconds <= TARGET_SECONDS:
        was_slow = any(more > commits and took > TARGET_SECONDS for more, took in seen)
        return 2 * commits if was_slow else max(first, 2 * commits)
    last = seen[:_TOLD_BY]
    if len(last) == 1:
        # The first step may have met a process that had everything yet to load.
        return commits
    if len({commits for commits, _ in last}) == 1:
        return commits // 2
    each, begin = linear_regression(*zip(*last, strict=True))
    # Shorter steps do not help where it is the beginning of a step that takes long: it is at most half of one.
    left = max(TARGET_SECONDS - max(begin, 0.0), begin)
    return min(2 * commits, int(left / each)) if each > 0 else 2 * commits


def bounded(interval: Interval, changes_in: ChangesIn, limit: StepLimit) -> StepBound:
    """The part of the interval that one step takes."""
    commits = rows = 0
    reached = interval.after
    for csn, changed in by_csn(interval, changes_in, limit.commits):
        if commits and (commits + 1 > limit.commits or rows + changed > limit.rows):
            return StepBound(Interval(interval.after, reached), commits)
        commits, rows, reached = commits + 1, rows + changed, csn
    return StepBound(interval, commits)


def by_csn(interval: Interval, changes_in: ChangesIn, width: int) -> Iterator[tuple[Csn, int]]:
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
