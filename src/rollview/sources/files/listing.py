"""Which files of a folder are whole.

Law: a file is taken only when nobody has written to it for a while, and only if it is the same before and after it was
read. A file that is being rewritten makes its whole table wait, for what it held before is gone; a new one that is not
whole yet simply waits for the next reading. A folder is listed to its end, or the source is down: what the system could
not show is never taken for deleted.
"""

from __future__ import annotations

import fnmatch
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from rollview.sources.inside import Inside

SETTLE_SECONDS = 2.0
_UNFINISHED = ("*.tmp", "*.part", "*.partial", "*.crdownload", "*.swp", "*~")

Listing = Mapping[str, tuple[int, int, int]]
"""Size, time of the last change in nanoseconds and number of each file, by its path below the folder."""


class NotSettledError(Exception):
    """A file that was taken before is being written."""


def list_files(folder: Path, suffixes: tuple[str, ...], inside: Inside) -> Listing:
    with inside.reading():
        names = [name for name in _names(folder, "") if _is_data(name, suffixes)]
    return {name: _facts(inside.facts(folder / name)) for name in names}


def _names(folder: Path, below: str) -> Iterator[str]:
    """All that is not a folder, by its path. Links to folders are not followed, so no file is there twice."""
    # os.walk would take an entry that cannot be looked at for a file.
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        if entry.name.startswith((".", "_")):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _names(folder / entry.name, f"{below}{entry.name}/")
        else:
            yield f"{below}{entry.name}"


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


def is_same(folder: Path, path: str, facts: tuple[int, int, int], inside: Inside) -> bool:
    return _facts(inside.facts(folder / path)) == facts


def _facts(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_size, status.st_mtime_ns, status.st_ino


def _is_data(relative: str, suffixes: tuple[str, ...]) -> bool:
    name = relative.rpartition("/")[2]
    unfinished = any(fnmatch.fnmatch(name, pattern) for pattern in _UNFINISHED)
    return not unfinished and name.lower().endswith(suffixes)
