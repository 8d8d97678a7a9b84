"""Commit sequence numbers and the one kind of interval: ``(after, through]``.

Law: a delta over ``(a, b]`` followed by one over ``(b, c]`` is a delta over ``(a, c]``; no commit is in both.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

Csn = int

ENDLESS: Csn = 1 << 62
"""Where an interval ends whose end has not come yet."""


@dataclass(frozen=True, slots=True, order=True)
class Interval:
    """Open at ``after``, closed at ``through``."""

    after: Csn
    through: Csn

    def __post_init__(self) -> None:
        if self.after < 0 or self.through < self.after:
            raise ValueError(f"not an interval: ({self.after}, {self.through}]")

    def __contains__(self, csn: Csn) -> bool:
        return self.after < csn <= self.through

    def __bool__(self) -> bool:
        return self.through > self.after

    def __str__(self) -> str:
        return f"({self.after}, {self.through}]"

    def strictly_inside(self, csn: Csn) -> bool:
        return self.after < csn < self.through

    def overlaps(self, other: Interval) -> bool:
        return self.after < other.through and other.after < self.through


def merge_overlapping(intervals: Iterable[Interval]) -> tuple[Interval, ...]:
    """The fewest intervals whose strict insides hold the strict insides of all the given ones."""
    merged: list[Interval] = []
    for interval in sorted(intervals):
        if merged and merged[-1].overlaps(interval):
            merged[-1] = Interval(merged[-1].after, max(merged[-1].through, interval.through))
        else:
            merged.append(interval)
    return tuple(merged)
