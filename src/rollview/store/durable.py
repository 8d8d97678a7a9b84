"""What is said to be written survives a loss of power: files and the folders that name them are synced."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path


def sync(paths: Iterable[Path]) -> None:
    for path in paths:
        _sync(path)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
