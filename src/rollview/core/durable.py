"""What is said to be written survives a loss of power: files and the folders that name them are synced."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rollview.errors import EnvironmentFault

# delta-rs draws its errors as trees for terminals.
_COLOUR = re.compile(r"\x1b\[[0-9;]*m|↳")
ADVICE = "What was published stays as it was. See that the disk works and has space, then run the command again."


@contextmanager
def disk(place: Path) -> Iterator[None]:
    """Inside, no failure of the disk gets out bare."""
    try:
        yield
    except OSError as error:
        told = " ".join(_COLOUR.sub("", str(error)).split())
        raise EnvironmentFault(f"Cannot use the disk at '{place}': {told}", hint=ADVICE, path=str(place)) from error


def sync(paths: Iterable[Path]) -> None:
    for path in paths:
        _sync(path)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
