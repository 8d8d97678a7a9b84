"""What a loss of power may leave in a Delta log, and how it goes away.

Law: a commit above the last pinned version that is not whole was never published, so it may go. A checkpoint that
is not whole stands for commits that are all still there, so it may go: commits go only once theirs has been read back
whole. Nothing else is touched.
"""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def drop_torn_commits(folder: Path, keep: int) -> None:
    """Take away the newest commits above ``keep`` that were cut short."""
    commits = sorted((int(path.stem), path) for path in folder.glob("*.json") if path.stem.isdigit())
    for version, path in reversed(commits):
        if version <= keep or _is_whole(path):
            return
        path.unlink()


def drop_torn_checkpoints(folder: Path) -> bool:
    """Take away checkpoints that cannot be read, and the hint to the newest. True if there were any."""
    torn = [path for path in folder.glob("*.checkpoint*.parquet") if not _is_parquet(path)]
    hint = folder / "_last_checkpoint"
    if not torn and (not hint.exists() or any(folder.glob("*.checkpoint*.parquet"))):
        return False
    for path in torn:
        path.unlink(missing_ok=True)
    hint.unlink(missing_ok=True)
    return True


def is_empty(path: Path) -> bool:
    return path.exists() and path.stat().st_size == 0


def _is_whole(path: Path) -> bool:
    text = path.read_bytes()
    try:
        return text.endswith((b"}", b"}\n")) and all(json.loads(line) for line in text.splitlines())
    except ValueError:
        return False


def _is_parquet(path: Path) -> bool:
    try:
        pq.read_metadata(path)
    except (OSError, pa.ArrowException):
        return False
    return True
