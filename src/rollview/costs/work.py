"""Seconds for a piece of work, from how much there is of it.

Law: jobs, relations, files, rows and changes each cost the same wherever they are met, so that two ways to the
same rows can be compared; what a job costs is what it cost on this machine lately.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rollview.catalog import Step

JOB_SECONDS = 0.06
"""A query on rows that are at hand, where nothing is known of the machine."""
PLANNING_SECONDS = 0.015
"""For each relation that a query names."""
FILE_SECONDS = 0.002
ROWS_PER_SECOND = 4_000_000.0
COMPUTED_ROW = 2
"""A row that a query joins or groups costs as much as so many that are only read."""
ROWS_PER_CHANGE = 4.0
"""Following a change costs about as much as reading so many rows."""
_FEW_ROWS = 1_000
"""A step that read so few changes took the time of its jobs."""
_QUICKEST, _SLOWEST = 0.01, 2.0


@dataclass(frozen=True, slots=True)
class Work:
    rows: int = 0
    changes: int = 0
    files: int = 0
    relations: int = 0
    jobs: int = 0


@dataclass(frozen=True, slots=True)
class Machine:
    job_seconds: float = JOB_SECONDS

    def seconds(self, work: Work) -> float:
        rows = work.rows + ROWS_PER_CHANGE * work.changes
        fixed = work.jobs * self.job_seconds + work.relations * PLANNING_SECONDS + work.files * FILE_SECONDS
        return fixed + rows / ROWS_PER_SECOND


def machine_of(steps: Iterable[Step]) -> Machine:
    """``steps``: the last ones, of one view or of all. The quickest job on few rows is what a job costs."""
    took = [
        float(step.profile["seconds"]) / int(step.profile["actions"])
        for step in steps
        if step.profile.get("actions") and int(step.profile.get("delta_rows_read", _FEW_ROWS + 1)) <= _FEW_ROWS
    ]
    return Machine(min(max(min(took), _QUICKEST), _SLOWEST)) if took else Machine()
