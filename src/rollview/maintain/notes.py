"""What was seen to be out of use, and since when.

Law: what is noted at a time t was in no pinned version at t, so who began to read after t does not read it. It may go
once everybody who began before t is done. Losing the notes only makes things stay longer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from rollview.core import durable
from rollview.core.marks import UNUSED_FILE


@dataclass(frozen=True, slots=True)
class Notes:
    """``unused``: files by path from the warehouse's data. ``pinned``: a version of a part, and when it was pinned."""

    unused: Mapping[str, datetime] = field(default_factory=dict)
    pinned: Mapping[str, tuple[int, datetime]] = field(default_factory=dict)

    def is_due(self, path: str, limit: datetime) -> bool:
        """``limit``: who may still read began after that."""
        noted = self.unused.get(path)
        return noted is not None and noted <= limit

    def settled_version(self, part: str, limit: datetime) -> int | None:
        """A version that was pinned so long ago that nobody reads an older one."""
        version, noted = self.pinned.get(part, (None, None))
        return version if noted is not None and noted <= limit else None


def read_notes(root: Path) -> Notes:
    try:
        data = json.loads((root / UNUSED_FILE).read_text(encoding="utf-8"))
        unused = {str(path): _time(noted) for path, noted in data["unused"].items()}
        pinned = {str(part): (int(version), _time(noted)) for part, (version, noted) in data["pinned"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return Notes()
    return Notes(unused, pinned)


def write_notes(root: Path, notes: Notes) -> None:
    data: dict[str, Any] = {
        "unused": {path: noted.isoformat() for path, noted in sorted(notes.unused.items())},
        "pinned": {part: [version, noted.isoformat()] for part, (version, noted) in sorted(notes.pinned.items())},
    }
    # A name of its own: two processes may maintain one warehouse at once.
    fresh = root / f".{UNUSED_FILE}.{uuid4().hex}"
    with durable.disk(root):
        try:
            fresh.write_text(json.dumps(data, indent=0), encoding="utf-8")
            durable.sync([fresh])
            fresh.replace(root / UNUSED_FILE)
        finally:
            fresh.unlink(missing_ok=True)


def _time(text: Any) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
