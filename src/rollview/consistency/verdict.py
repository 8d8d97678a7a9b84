"""What the judge answers: a level, how versions map to states of the sources, and why it is not the next level."""

from __future__ import annotations

from dataclasses import dataclass, field

from rollview.consistency.bags import Bag, minus
from rollview.consistency.levels import Level
from rollview.consistency.states import Vector


@dataclass(frozen=True, slots=True)
class Counterexample:
    """The fewest versions that break a level, by their places in the history; with the state that comes nearest."""

    breaks: Level
    reason: str
    versions: tuple[int, ...]
    nearest: Vector | None = None
    missing: Bag = field(default_factory=dict)
    surplus: Bag = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verdict:
    """``mapping``: for each version the units per source that it reflects, where one was found. ``so_far``: the history
    has not come to rest. ``undecided``: there were more states than may be searched, so it may be better."""

    level: Level
    mapping: tuple[Vector | None, ...]
    counterexample: Counterexample | None
    so_far: bool = False
    undecided: bool = False


def differing(breaks: Level, reason: str, version: int, nearest: Vector, rows: Bag, right: Bag) -> Counterexample:
    """A version beside the state that it should be, or that comes nearest."""
    off = minus(right, rows)
    missing = {row: count for row, count in off.items() if count > 0}
    surplus = {row: -count for row, count in off.items() if count < 0}
    return Counterexample(breaks, reason, (version,), nearest, missing, surplus)
