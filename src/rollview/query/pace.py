"""How fast a view that is behind catches up.

Law: what is told is what happened: commits that came in the last minute, and commits that the last steps took, per
second of work. A view that is not quicker than its commits has no time at which it will have caught up.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from rollview.catalog import MissedCommits, Step

LATELY = timedelta(minutes=1)
_STEPS = 5


@dataclass(frozen=True, slots=True)
class Pace:
    """Commits per second, and the seconds until the view has caught up; None where nobody can say."""

    came: float
    done: float | None
    catches_up_in: float | None


def pace(missed: MissedCommits, steps: Iterable[Step]) -> Pace:
    """``missed``: the commits that the view lacks, and those of the last minute; ``steps``: its last, newest first."""
    came = missed.lately / LATELY.total_seconds()
    done = _done(steps)
    gains = 0.0 if done is None else done - came
    return Pace(came, done, missed.commits / gains if gains > 0 else None)


def _done(steps: Iterable[Step]) -> float | None:
    counted = [step for step in steps if step.status == "done" and step.profile.get("commits")][:_STEPS]
    seconds = sum((step.finished - step.started).total_seconds() for step in counted if step.finished is not None)
    return sum(int(step.profile["commits"]) for step in counted) / seconds if seconds > 0 else None
