"""How long to wait before something that failed is tried again: twice as long each time, and never all at once."""

from __future__ import annotations

import random
from datetime import timedelta

_FIRST = 1.0
_LONGEST = 600.0
_ENOUGH_DOUBLINGS = 16


def delay(failures: int) -> timedelta:
    """After so many failures in a row."""
    longest = min(_LONGEST, _FIRST * 2 ** min(failures - 1, _ENOUGH_DOUBLINGS))
    return timedelta(seconds=longest * random.uniform(0.5, 1.0))  # noqa: S311
