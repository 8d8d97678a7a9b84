"""Points in time on the command line: a csn, ``latest``, or a moment.

Law: a moment without an offset is in the local zone, and the answer says which zone that was.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from rollview.core.interval import Csn
from rollview.errors import UsageError

Latest = Literal["latest"]


@dataclass(frozen=True, slots=True)
class Point:
    """``at`` is what was asked for; ``note`` tells how a moment without an offset was read."""

    at: Csn | datetime | Latest
    note: str | None = None


def parse_point(text: str) -> Point:
    cleaned = text.strip()
    if cleaned.lower() == "latest":
        return Point("latest")
    if cleaned.isdecimal():
        return Point(int(cleaned))
    return _parse_moment(cleaned)


def _parse_moment(text: str) -> Point:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"'{text}' is neither a csn nor a time.",
            hint="Write a csn (812), 'latest', or a time like '2026-12-13 17:00' or '2026-12-13T17:00+01:00'.",
        ) from None
    if moment.tzinfo is not None:
        return Point(moment)
    local = moment.astimezone()
    return Point(local, f"'{text}' is read in the local zone: {local:%Y-%m-%d %H:%M:%S %Z (UTC%z)}.")
