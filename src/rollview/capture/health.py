"""The health of a source, as the catalog records it.

Law: a source that fails hurts nobody else: its state says why, its tables stay at their last good csn, and it is tried
again after longer and longer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from rollview.capture.in_place import READINGS, forward
from rollview.catalog import Catalog, Lease, SourceRecord
from rollview.core.backoff import delay
from rollview.core.states import SourceState
from rollview.errors import LostLease, RollviewError, SourceStopped, UsageError
from rollview.sources.protocol import Health, Source, Watched
from rollview.sources.settings import SourceSettings

_SIGN_OF_LIFE = timedelta(seconds=5)


def is_copying(record: SourceRecord) -> bool:
    """Whether its first copy is still to be made. Only the position tells that for certain: it comes with the copy."""
    return record.position is None and record.state is not SourceState.REMOVING


def refuse_removing(record: SourceRecord) -> None:
    if record.state is SourceState.REMOVING:
        raise UsageError(f"Source '{record.name}' is being removed.", hint=f"rollview source remove {record.name}")


@contextmanager
def noting(catalog: Catalog, record: SourceRecord, lease: Lease) -> Iterator[None]:
    """Whether the source is well is in the catalog when the block ends."""
    try:
        yield
    except RollviewError as error:
        note(catalog, record, error, lease)
        raise
    note(catalog, record, None, lease)


def note(catalog: Catalog, record: SourceRecord, error: RollviewError | None, lease: Lease) -> None:
    """Who does not hold the source any more has nothing to say of it."""
    with suppress(LostLease):
        _note(catalog, record, error, lease)


def _note(catalog: Catalog, record: SourceRecord, error: RollviewError | None, lease: Lease) -> None:
    """A source that must be tried again waits longer each time, so that it costs nobody anything."""
    if error is not None:
        failures = int(record.health.get("failures", 0)) + 1
        retry_at = datetime.now(UTC) + delay(failures)
        with catalog.write(lease) as writer:
            # What failed may have been published before it failed, or while nobody heard the answer.
            now = writer.sources.get(record.name)
            writer.sources.set_state(record.name, _state(now, error), error.message)
            health = {**now.health, "failures": failures, "retry_at": retry_at.isoformat()}
            writer.sources.set_health(record.name, health)
    elif record.state is not SourceState.ACTIVE or record.problem is not None:
        with catalog.write(lease) as writer:
            writer.sources.set_state(record.name, SourceState.ACTIVE)


def _state(record: SourceRecord, error: RollviewError) -> SourceState:
    if is_copying(record):
        return SourceState.COPYING
    if isinstance(error, SourceStopped) and record.state is not SourceState.WIDENING:
        return SourceState(error.code)
    state = SourceState.ACTIVE if record.state is SourceState.COPYING else record.state
    return SourceState.RETRYING if error.retryable and state is SourceState.ACTIVE else state


def readings(catalog: Catalog, root: Path, record: SourceRecord, source: Source, position: str) -> Mapping[str, object]:
    """How tables are read that may be read where they are; the states of those move on with what was captured."""
    if position == record.position:
        return {READINGS: record.health[READINGS]} if READINGS in record.health else {}
    readings = forward(catalog, root, source, record)
    return {READINGS: dict(readings)} if readings else {}


ASKED = "asked"
"""What a source's health says of how it was asked."""


def note_asked(catalog: Catalog, name: str, asks: int, keys: int, rows: int, size: int, problem: str | None) -> None:
    """Added to what was asked before."""
    health = catalog.source(name).health
    before = health.get(ASKED, {})
    sums = {"asks": asks, "keys": keys, "rows": rows, "bytes": size}
    told = {what: before.get(what, 0) + more for what, more in sums.items()}
    told |= {"last": datetime.now(UTC).isoformat(), "problem": problem}
    with catalog.write() as writer:
        writer.sources.set_health(name, {**health, ASKED: told})


def note_health(
    catalog: Catalog, record: SourceRecord, source: Source, readings: Mapping[str, object]
) -> tuple[str, ...]:
    """Written when it says something new, and from time to time as a sign of life. An alarm that is new is told."""
    told = _seen(record, source.health()) if isinstance(source, Watched) else {}
    asked = {ASKED: record.health[ASKED]} if ASKED in record.health else {}
    seen = {**told, **asked, **readings}
    if seen != dict(record.health) or record.read is None or datetime.now(UTC) - record.read > _SIGN_OF_LIFE:
        with catalog.write() as writer:
            writer.sources.set_health(record.name, seen, read=True)
    alarm = seen.get("alarm")
    return (alarm,) if alarm and not record.health.get("alarm") else ()


def _seen(record: SourceRecord, health: Health) -> dict[str, Any]:
    """What the source says of itself. A transaction that has been open for too long is an alarm: what follows it waits,
    or the source keeps its log for it."""
    since = _open_since(record, health)
    limit = SourceSettings.from_json(record.settings).open_alarm
    alarm = health.alarm
    if alarm is None and since is not None and datetime.now(UTC) - since > limit:
        alarm = f"{health.oldest_open} has been open since {since:%Y-%m-%d %H:%M:%S} UTC, longer than {limit}"
    return {**asdict(health), "alarm": alarm, "open_since": since.isoformat() if since else None}


def _open_since(record: SourceRecord, health: Health) -> datetime | None:
    """As the source says, or since it was first seen."""
    if health.oldest_open is None or health.open_since is not None:
        return health.open_since
    before = record.health.get("open_since") if record.health.get("oldest_open") == health.oldest_open else None
    return datetime.fromisoformat(before) if before else datetime.now(UTC)
