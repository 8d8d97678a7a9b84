"""What a commit says of the version that it makes, so that one of which a part was lost is not taken for whole.

Law: a commit's note has a digest of all live files of its version. A version whose files are others is never read. The
loss of whole lines leaves a commit that every Delta reader accepts, so nothing else would tell.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

from rollview.errors import Corrupt
from rollview.store.datafile import DataFile

KEY = "rollview.files"
ADVICE = (
    "It is not read, and the rest is not touched. Restore its folder from a backup; a view can also be made anew by "
    "CREATE OR REPLACE MATERIALIZED VIEW."
)


def digest(files: Iterable[DataFile]) -> str:
    paths = sorted(file.path for file in files)
    return f"{len(paths)}-{sha256('/'.join(paths).encode()).hexdigest()[:32]}"


def check(commit: Path, files: Iterable[DataFile]) -> None:
    """Corrupt if the files of the version are not those that its commit was written for."""
    try:
        note = _note(commit.read_bytes())
    except FileNotFoundError:
        # The version was read from a checkpoint.
        return
    if note is None or note.get(KEY, digest(files)) != digest(files):
        raise Corrupt(f"A part of the Delta commit '{commit}' is lost.", hint=ADVICE, path=str(commit))


def _note(text: bytes) -> dict[str, Any] | None:
    for line in text.splitlines():
        try:
            found = json.loads(line).get("commitInfo")
        except (ValueError, AttributeError):
            return None
        if isinstance(found, dict):
            return found
    return None
