"""How long a Delta table keeps the files that it has removed.

Law: what a version removed may be vacuumed once the table's retention has passed since. A version that is read later
than half of that is an alarm, long before one is lost.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from deltalake import DeltaTable

SHORT = timedelta(days=1)
_USUAL = timedelta(days=7)
_KEY = "delta.deletedFileRetentionDuration"
_PERIOD = re.compile(r"(\d+)\s+(week|day|hour|minute|second|millisecond|microsecond)s?")


def kept_for(table: DeltaTable) -> timedelta:
    """From the removal of a file on; the usual time if the table's own words are not understood."""
    words = table.metadata().configuration.get(_KEY) or ""
    found = _PERIOD.findall(words.lower())
    return sum((timedelta(**{f"{unit}s": int(number)}) for number, unit in found), timedelta()) if found else _USUAL


def late(remote: str, table: DeltaTable, committed: datetime) -> str | None:
    """What to tell of a version that is only read now."""
    age, kept = datetime.now(UTC) - committed, kept_for(table)
    if age <= kept / 2:
        return None
    return (
        f"version {table.version()} of table '{remote}' was read {_told(age)} after it was committed, and its files "
        f"may be vacuumed after {_told(kept)}: capture it more often"
    )


def _told(time: timedelta) -> str:
    return str(time - timedelta(microseconds=time.microseconds))
