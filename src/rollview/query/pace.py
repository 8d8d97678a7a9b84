"""How fast a view that is behind catches up.

Law: what is told is what happened: commits that were made in the last minute that is known of the sources, and commits
that the view's last steps took. A view that was behind all of this minute has done what it can beside the others; of
one that was not, its own seconds of work count. A view that is not quicker than its commits has no time at which it
will have caught up.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from rollview.catalog import MissedCommits, Step

LATELY = timedelta(minutes=1)
_STEPS = 5


@dataclass(frozen=True, slots=True)
class Pace:
    """Commits per second, and the seconds until the view has caught up; None where nobody can say."""

    came: float
    done: float | None
    catches_up_in: float | None


def pace(missed: MissedCommits, steps: Iterable[Step], now: datetime) -> Pace:
    """``missed``: the commits that the view lacks, and those of the last minute; ``steps``: its last, newest first."""
    came = missed.lately / LATELY.total_seconds()
    done = _done(missed, steps, now)
    gains = 0.0 if done is None else done - came
    return Pace(came, done, missed.commits / gains if gains > 0 else None)


def _done(missed: MissedCommits, steps: Iterable[Step], now: datetime) -> float | None:
    counted = [step for step in steps if step.status == "done" and step.profile.get("commits")]
    lately = [step for step in counted if step.finished is not None and step.finished >= now - LATELY]
    if lately and missed.oldest is not None and missed.oldest <= now - LATELY:
        return _rate(lately, (now - min(step.started for step in lately)).total_seconds())
    last = counted[:_STEPS]
    took = ((step.finished - step.started).total_seconds() for step in last if step.finished is not None)
    return _rate(last, sum(took))


def _rate(steps: Sequence[Step], seconds: float) -> float | None:
    return sum(int(step.profile["commits"]) for step in steps) / seconds if seconds > 0 else None
