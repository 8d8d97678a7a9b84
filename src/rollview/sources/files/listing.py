"""Which files of a folder are whole.

Law: a file is taken only when nobody has written to it for a while, and only if it is the same before and after it was
read. A file that is being rewritten makes its whole table wait, for what it held before is gone; a new one that is not
whole yet simply waits for the next reading.
"""

from __future__ import annotations

import fnmatch
import os
import time
from collections.abc import Mapping
from pathlib import Path

SETTLE_SECONDS = 2.0
_UNFINISHED = ("*.tmp", "*.part", "*.partial", "*.crdownload", "*.swp", "*~")

Listing = Mapping[str, tuple[int, int, int]]
"""Size, time of the last change in nanoseconds and number of each file, by its path below the folder."""


class NotSettledError(Exception):
    """A file that was taken before is being written."""


def list_files(folder: Path, suffixes: tuple[str, ...]) -> Listing:
    found = {}
    for place, _, names in sorted(os.walk(folder)):
        for name in sorted(names):
            path = Path(place, name)
            relative = path.relative_to(folder).as_posix()
            if _is_data(relative, suffixes) and (facts := _facts(path)) is not None:
                found[relative] = facts
    return found


def settled(listing: Listing, before: Listing, seconds: float) -> Listing:
    """Those that are whole; what was taken before and has not changed since is."""
    newest = time.time_ns() - int(seconds * 1e9)
    whole = {}
    for path, facts in listing.items():
        if facts == before.get(path) or facts[1] <= newest:
            whole[path] = facts
        elif path in before:
            raise NotSettledError(path)
    return whole


def is_same(folder: Path, path: str, facts: tuple[int, int, int]) -> bool:
    return _facts(folder / path) == facts


def _facts(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_size, status.st_mtime_ns, status.st_ino


def _is_data(relative: str, suffixes: tuple[str, ...]) -> bool:
    parts = relative.split("/")
    hidden = any(part.startswith((".", "_")) for part in parts)
    unfinished = any(fnmatch.fnmatch(parts[-1], pattern) for pattern in _UNFINISHED)
    return not hidden and not unfinished and parts[-1].lower().endswith(suffixes)
