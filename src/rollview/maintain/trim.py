"""A Delta log made shorter.

Law: a checkpoint at version v stands for all commits up to v, so the commits before it may go once nobody opens an
older version. It has to be an old checkpoint: who listed the log before it was made reads the commits instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

LEAST = 50
"""A log is shortened when so many of its files can go."""

_VERSIONED = re.compile(r"(\d{20})\.(json|crc|checkpoint\.parquet)")


@dataclass(frozen=True, slots=True)
class LogTrim:
    """``root``: the folder of a part. ``paths``: what goes when its log begins at ``version``."""

    root: Path
    version: int
    paths: tuple[Path, ...]
    bytes: int


def plan_trim(root: Path, settled: int, before: datetime) -> LogTrim | None:
    """``settled``: nobody opens an older version. ``before``: the checkpoint was made by then."""
    found = sorted(_versioned(root / "_delta_log"))
    kept = max((version for version, path in found if version <= settled and _stands(path, before)), default=0)
    paths = tuple(path for version, path in found if version < kept)
    if len(paths) < LEAST:
        return None
    return LogTrim(root, kept, paths, sum(path.stat().st_size for path in paths))


def run_trim(trim: LogTrim) -> None:
    """Oldest first: who lists the log meanwhile finds no hole in what is left."""
    for path in trim.paths:
        path.unlink(missing_ok=True)


def _versioned(log: Path) -> Iterator[tuple[int, Path]]:
    for path in log.iterdir() if log.is_dir() else ():
        found = _VERSIONED.fullmatch(path.name)
        if found is not None:
            yield int(found[1]), path


def _stands(path: Path, before: datetime) -> bool:
    """Whether it is a checkpoint, old enough and whole."""
    if path.suffix != ".parquet" or datetime.fromtimestamp(path.stat().st_mtime, UTC) > before:
        return False
    try:
        pq.read_table(path, columns=["add", "metaData", "protocol"])
    except (OSError, pa.ArrowException):
        return False
    return True
