"""How commits of several sources are ordered: by arrival, or by commit time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Order:
    """``by_time``: across sources by commit time, but nobody waits for a source that is ``delay`` behind the others."""

    by_time: bool = False
    delay: timedelta = timedelta(minutes=5)
