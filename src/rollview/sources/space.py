"""Room on disk for rows that are too many for memory.

Law: whoever opens a source says where that is and how much; nothing is put anywhere else. More than the limit stops the
source with the reason, before the disk is full and everybody stops.
"""

from __future__ import annotations

import shutil
import weakref
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp
from uuid import uuid4

from rollview.errors import SpoolFull

LIMIT = 50 << 30


class Space:
    """``make``: gives the folder, and is called when it is needed first. ``limit``: bytes that may be in it."""

    def __init__(self, source: str, make: Callable[[], Path], limit: int = LIMIT) -> None:
        self._source = source
        self._make = make
        self._limit = limit
        self._folder: Path | None = None
        self._taken = 0

    @classmethod
    def temporary(cls, source: str) -> Space:
        """For a source that belongs to no warehouse."""
        return cls(source, lambda: Path(mkdtemp(prefix="rollview-spool-")))

    def new_folder(self) -> Path:
        """An empty one."""
        if self._folder is None:
            self._folder = self._make()
        folder = self._folder / uuid4().hex
        folder.mkdir()
        return folder

    def take(self, size: int) -> None:
        """So many bytes are about to be written; SpoolFull if that is too much."""
        if self._taken + size > self._limit:
            raise SpoolFull(self._source, self._limit)
        self._taken += size

    def give_back(self, size: int) -> None:
        self._taken -= size


class Shelf:
    """A folder in a space, until it is closed or forgotten."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._sizes: list[int] = []
        self.folder = space.new_folder()
        self.close = weakref.finalize(self, _take_away, space, self.folder, self._sizes)

    def take(self, size: int) -> None:
        self._space.take(size)
        self._sizes.append(size)


def _take_away(space: Space, folder: Path, sizes: list[int]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    space.give_back(sum(sizes))
