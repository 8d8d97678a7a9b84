"""What a view's next step costs by its deltas, and from nothing.

Law: the view's own history comes first: what its last steps took, never less, and more where there are more rows now:
what the rows beyond cost, at most in proportion. Where there is none, the rows tell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rollview.catalog import Step
from rollview.core.interval import Csn
from rollview.costs.work import COMPUTED_ROW, ROWS_PER_CHANGE, Work, machine_of

PastSteps = Callable[[], Sequence[Step]]
"""The view's last propagation steps, newest first, and its creation. One that failed has told nothing of its work."""
TOOK = "took"
"""In the profile of a step: the seconds in which it was computed, planning included, without waiting for others."""
_WHOLE, _CHANGES = "whole", "delta_rows_read"
_TRIED = 2
"""So many steps by deltas tell what planning one takes: the first may have met a process that had all yet to load."""


@dataclass(frozen=True, slots=True)
class RefreshWork:
    """``read_rows``: rows in all that the view reads. ``csns``: between which the changes lie."""

    delta_rows: int
    read_rows: int
    csns: tuple[Csn, Csn] | None


@dataclass(frozen=True, slots=True)
class RefreshSeconds:
    """``is_known``: the view was computed from nothing before, so that one can tell what that takes. ``planned``: what
    whole steps took, by deltas and recomputed, planning included; None where too few have told it."""

    by_deltas: float
    recomputed: float
    is_known: bool
    planned: tuple[float, float] | None = None


def refresh_seconds(work: RefreshWork, past: Sequence[Step]) -> RefreshSeconds:
    told = [step for step in past if "read_rows" in step.profile]
    machine = machine_of(told)
    whole = [_scaled(step, work.read_rows, "read_rows") for step in told if _was_whole(step)]
    recomputed = whole[0] if whole else machine.seconds(Work(rows=COMPUTED_ROW * work.read_rows, jobs=1))
    # As fast as this view reads its rows.
    each = ROWS_PER_CHANGE * recomputed / max(1, work.read_rows)
    kept = [step for step in told if not _was_whole(step)]
    each = max(each, _seconds_of_each(kept))
    guess = max(machine.job_seconds, each * work.delta_rows)
    by_deltas = min((_with_more(step, work.delta_rows, each) for step in kept), default=guess)
    return RefreshSeconds(by_deltas if work.delta_rows else 0.0, recomputed, bool(whole), _planned(told))


def _planned(told: Sequence[Step]) -> tuple[float, float] | None:
    by_deltas = [float(step.profile[TOOK]) for step in told if TOOK in step.profile and not _was_whole(step)]
    whole = [float(step.profile[TOOK]) for step in told if TOOK in step.profile and _was_whole(step)]
    return (min(by_deltas), whole[0]) if whole and len(by_deltas) >= _TRIED else None


def _was_whole(step: Step) -> bool:
    return step.profile["mode"] == _WHOLE or step.kind == "create"


def _with_more(step: Step, changes: int, each: float) -> float:
    """Much of a step on few changes are its jobs, which are the same for more."""
    beyond = max(0, changes - int(step.profile[_CHANGES]))
    return min(_scaled(step, changes, _CHANGES), float(step.profile["seconds"]) + each * beyond)


def _seconds_of_each(steps: Sequence[Step]) -> float:
    """By which the step with most changes was slower than the quickest with less than half of them; 0 if it was not."""
    most = max(steps, key=lambda step: int(step.profile[_CHANGES]), default=None)
    if most is None:
        return 0.0
    changes = int(most.profile[_CHANGES])
    fewer = [step for step in steps if 2 * int(step.profile[_CHANGES]) < changes]
    if not fewer:
        return 0.0
    quickest = min(fewer, key=lambda step: float(step.profile["seconds"]))
    slower = float(most.profile["seconds"]) - float(quickest.profile["seconds"])
    return max(0.0, slower / (changes - int(quickest.profile[_CHANGES])))


def _scaled(step: Step, rows: int, unit: str) -> float:
    """Seconds that so many rows should take: more than then in proportion, never less."""
    return float(step.profile["seconds"]) * max(1.0, rows / max(1, int(step.profile[unit])))
