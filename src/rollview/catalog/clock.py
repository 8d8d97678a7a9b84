"""Whether the time that a clock tells can be true.

Law: the ledger's time is the database's where that has one, else this machine's. It never jumps ahead by more than a
day while a second clock says otherwise, because nothing takes the ledger back. For PostgreSQL that is this machine's
clock; for SQLite the time since this machine was started, by which the last commit of the same boot is dated, or the
clock of the disk that the catalog is on. A pause is no jump: then all clocks agree.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rollview import errors

MOST = timedelta(days=1)

_BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class Uptime:
    """How long this machine has been running, standby included. Comparable within one boot."""

    boot: str
    micros: int


@dataclass(frozen=True, slots=True)
class LastSeen:
    """What clocks said at the last commit. ``accepted``: a time that somebody said to be right."""

    time: datetime
    wall: datetime | None
    uptime: Uptime | None
    accepted: datetime | None


UptimeClock = Callable[[], Uptime | None]


def system_uptime() -> Uptime | None:
    try:
        return Uptime(_BOOT.read_text().strip(), time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000)
    except (OSError, AttributeError):
        return None


def no_uptime() -> Uptime | None:
    return None


def check_jump(now: datetime, last: LastSeen, second_clock: Callable[[], tuple[str, datetime] | None]) -> None:
    """Refuse a time that is more than a day later than the last one and than a second clock says."""
    if now <= max(last.time, last.accepted or last.time) + MOST:
        return
    second = second_clock()
    if second is not None and now > second[1] + MOST:
        raise errors.ClockJumped(now, *second, last.time)


def by_uptime(last: LastSeen, uptime: Uptime | None) -> tuple[str, datetime] | None:
    """The time by what has passed since the last commit of this boot."""
    if uptime is None or last.uptime is None or last.wall is None or last.uptime.boot != uptime.boot:
        return None
    passed = timedelta(microseconds=uptime.micros - last.uptime.micros)
    return "by the time since the last commit", last.wall + passed


def by_disk(folder: Path) -> tuple[str, datetime] | None:
    """The time of the disk, which is another machine's where the disk is."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"x")
            file.flush()
            return "by the disk of the catalog", datetime.fromtimestamp(os.fstat(file.fileno()).st_mtime, UTC)
    except OSError:
        return None
