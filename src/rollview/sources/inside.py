"""What a source that is a folder may read.

Law: regular files inside the folder, wherever links, ``..`` or absolute paths lead; outside of it only where the
settings say so. A FIFO or a device is never opened: it could wait for ever, or do something. Whatever the system
refuses to show means that the source is down, never that something is not there.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from rollview.errors import NotAFile, OutsideFolder, SourceDown
from rollview.sources.protocol import Opening

_OPENING = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


@dataclass(frozen=True, slots=True)
class Inside:
    """The folder of a source."""

    source: str
    root: Path
    allows_outside: bool = False

    @classmethod
    def of(cls, opening: Opening) -> Inside:
        return cls(opening.name, Path(opening.address), opening.settings.allows_outside)

    def place(self, path: Path) -> Path:
        """The path without links and ``..``; OutsideFolder if it leads out."""
        place = Path(os.path.realpath(path))
        if not self.allows_outside and not place.is_relative_to(os.path.realpath(self.root)):
            raise OutsideFolder(self.source, str(path), str(place), str(self.root))
        return place

    def facts(self, path: Path) -> os.stat_result:
        """Of a regular file."""
        with self.reading():
            facts = self.place(path).stat()
        return self._regular(path, facts)

    def open(self, path: Path) -> BinaryIO:
        place = self.place(path)
        with self.reading():
            # What was a file when it was listed may be something else by now; without O_NONBLOCK a FIFO would wait.
            number = os.open(place, _OPENING)
        try:
            self._regular(path, os.fstat(number))
            return os.fdopen(number, "rb")
        except BaseException:
            os.close(number)
            raise

    @contextmanager
    def reading(self) -> Iterator[None]:
        """What goes wrong while files are listed, opened or read."""
        try:
            yield
        except OSError as error:
            raise SourceDown(self.source, reason_of(error)) from error

    def _regular(self, path: Path, facts: os.stat_result) -> os.stat_result:
        if not stat.S_ISREG(facts.st_mode):
            found = next((name for is_it, name in _KINDS if is_it(facts.st_mode)), "something else")
            raise NotAFile(self.source, str(path), found)
        return facts


def reason_of(error: OSError) -> str:
    what = error.strerror or str(error).splitlines()[0]
    return f"{what}: '{error.filename}'" if error.filename else what
