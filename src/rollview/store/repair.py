"""What a loss of power may leave in a Delta log, and how it goes away.

Law: a commit above the last pinned version that is not whole was never published, so it may go. A checkpoint that
is not whole may go if what it stands for is still there: an older checkpoint or the first commit, and all commits
since. Nothing else is touched, and what cannot be read just now is not taken for torn.
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
    found = sorted(folder.glob("*.checkpoint*.parquet"))
    torn = [path for path in found if not _is_parquet(path)]
    hint = folder / "_last_checkpoint"
    if not torn and (not hint.exists() or found):
        return False
    whole = {_version(path) for path in found if path not in torn}
    if not all(_can_do_without(folder, _version(path), whole) for path in torn):
        return False
    for path in torn:
        path.unlink(missing_ok=True)
    hint.unlink(missing_ok=True)
    return True


def _can_do_without(folder: Path, version: int, checkpoints: set[int]) -> bool:
    """Whether the commits from an older checkpoint, or from the first, up to this version are there."""
    older = max((one for one in checkpoints if one < version), default=-1)
    return all((folder / f"{one:020d}.json").exists() for one in range(older + 1, version + 1))


def _version(path: Path) -> int:
    return int(path.name.partition(".")[0])


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
    except FileNotFoundError:
        return True
    except pa.ArrowException:
        return False
    except OSError as error:
        # Arrow tells a footer that makes no sense by an error of this kind, too, but without a number.
        if error.errno is not None:
            raise
        return False
    return True
