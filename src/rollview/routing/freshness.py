"""How old an answer may be, in words: ``5 minutes``, ``10 commits``.

Law: a bound in time counts from what the sources are known to have passed, so what was not captured yet counts as well;
a bound in commits cannot see commits that were not captured.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from rollview.catalog import Catalog, Snapshot
from rollview.core.durations import duration
from rollview.core.interval import Csn
from rollview.errors import UsageError
from rollview.results import ValidTime


@dataclass(frozen=True, slots=True)
class Staleness:
    """A time, or a number of commits."""

    time: timedelta | None = None
    commits: int = 0


def staleness(text: str) -> Staleness:
    number, _, unit = text.strip().partition(" ")
    if unit.strip() in ("commit", "commits") and number.isdigit():
        return Staleness(commits=int(number))
    try:
        return Staleness(duration(text))
    except UsageError:
        hint = "Write for example '5 minutes', '30 seconds' or '10 commits'."
        raise UsageError(f"'{text}' does not say how old an answer may be.", hint=hint) from None


def moment_of_asking() -> datetime:
    """From which on an answer grows old."""
    return datetime.now(UTC)


def oldest_allowed(
    catalog: Catalog, snapshot: Snapshot, bound: Staleness | None, tables: Collection[str], now: datetime
) -> Csn:
    """The oldest csn at which an answer may be that is asked for ``now``.

    Raises ``NotPassed`` while a source is not known to be that far.
    """
    newest = snapshot.moment.csn
    if bound is None:
        return newest
    if bound.time is None:
        return max(0, newest - bound.commits)
    return min(newest, catalog.csn_at(now - bound.time, tables))


def found_valid(
    catalog: Catalog, snapshot: Snapshot, tables: Collection[str], csn: Csn, now: datetime
) -> tuple[ValidTime, float | None]:
    """For how long rows of these tables at a csn are what they are, and for how many seconds before ``now`` they may
    not have been: the moment that a bound is counted from, however long the answer takes.

    None where a source is not known to have passed any moment.
    """
    last, following = catalog.last_changes(tables, csn), catalog.next_changes(tables, csn)
    first = max((one.csn for one in last), default=0)
    through = min((one.csn - 1 for one in following), default=max(csn, snapshot.moment.csn))
    since = max((one.time for one in last), default=None)
    now = max(snapshot.moment.time, now)
    known = {source.name: source.known for source in catalog.sources()}
    sources = {snapshot.get(table).source for table in tables}
    passed = [now if source is None else known.get(source) for source in sources]
    told = [moment for moment in passed if moment is not None]
    until = min([*(one.time for one in following), *told], default=now) if len(told) == len(passed) else None
    seconds = None if until is None else max(0.0, (now - until).total_seconds())
    return ValidTime(first, through, since, until), seconds
