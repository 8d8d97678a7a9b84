"""Small files that this process has read before.

Law: a file that a version names never changes, and its name is never given again. So its rows are kept by its name,
size and time; one that was taken away or written over is read again, and fails as it would have. What is kept is
bounded in bytes, whatever the number of tables: the files that were not asked for longest go first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from threading import Lock

import pyarrow as pa

SMALL_FILE = 256 * 1024
"""Larger ones take longer to decode than to open, and are read each time."""
MOST_BYTES = 32 * 1024 * 1024
_ENTRY = 2_048
"""Bytes that an entry takes beside its values."""


class LoadedFiles:
    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most, self._bytes = most, 0
        self._kept: OrderedDict[object, pa.Table] = OrderedDict()
        self._lock = Lock()

    def rows(self, place: Path, about: object, read: Callable[[], pa.Table]) -> pa.Table:
        """What ``read`` makes of the file. ``about``: all that this depends on beside the file."""
        try:
            found = place.stat()
        except OSError:
            # Whoever reads it says what is wrong.
            return read()
        if found.st_size > SMALL_FILE:
            return read()
        key = (str(place), found.st_ino, found.st_size, found.st_mtime_ns, about)
        with self._lock:
            known = self._kept.get(key)
            if known is not None:
                self._kept.move_to_end(key)
                return known
        rows = read()
        self._keep(key, rows)
        return rows

    def _keep(self, key: object, rows: pa.Table) -> None:
        with self._lock:
            if key in self._kept:
                return
            self._kept[key] = rows
            self._bytes += _size(rows)
            while self._bytes > self._most:
                _, oldest = self._kept.popitem(last=False)
                self._bytes -= _size(oldest)


def _size(rows: pa.Table) -> int:
    return _ENTRY + int(rows.nbytes)


FILES = LoadedFiles()
"""Those of this process."""
