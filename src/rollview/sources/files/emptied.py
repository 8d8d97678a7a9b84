"""Folders that have lost all their files.

Law: a folder that had files and shows none is believed when it has shown none for a while, in two readings at least,
and is still on the device that its files were last seen on. A share that is not mounted leaves an empty folder on
another device; a file system in trouble may list nothing for a moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path

CONFIRM_SECONDS = 60.0

Devices = Mapping[str, int]
"""The device of each folder that has files in it or below it, by its path below the table's folder."""

Since = Mapping[str, str]
"""When a folder was first seen without files."""


class OtherDeviceError(Exception):
    """An empty folder that is not where the files were."""


def devices(folder: Path, files: Iterable[str]) -> Devices:
    return {path: (folder / path).stat().st_dev for path in sorted(_folders(files))}


def emptied(before: Iterable[str], now: Iterable[str]) -> tuple[str, ...]:
    """The folders that had files and have none."""
    return tuple(sorted(_folders(before) - _folders(now)))


def check_devices(folder: Path, paths: Iterable[str], known: Devices) -> None:
    for path in paths:
        try:
            device = (folder / path).stat().st_dev
        except FileNotFoundError:
            continue
        if known.get(path, device) != device:
            raise OtherDeviceError(path)


def waiting(paths: Iterable[str], since: Since, now: datetime) -> Since:
    """The same times for folders that were empty before, this one for the others."""
    return {path: since.get(path, now.isoformat()) for path in paths}


def is_confirmed(since: Since, now: datetime, seconds: float) -> bool:
    return all(now - datetime.fromisoformat(time) >= timedelta(seconds=seconds) for time in since.values())


def _folders(files: Iterable[str]) -> set[str]:
    """Of files and all above them; the table's own is ''."""
    found: set[str] = set()
    for file in files:
        parts = file.split("/")[:-1]
        found.update("/".join(parts[:length]) for length in range(len(parts) + 1))
    return found
