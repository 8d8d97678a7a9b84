"""What folders of a warehouse carry: the warehouse's id, and how many steps had begun when the data were last written.

Laws: an id is whole and on disk before anything is put beside it. The number of steps is written after the catalog has
it, so it is never ahead of the catalog that wrote it, wherever a process dies. Losing it only lets an old catalog pass.
"""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from rollview.core import durable
from rollview.errors import Corrupt

ID_FILE = "warehouse.json"
STEPS_FILE = "steps"
UNUSED_FILE = "unused.json"
"""What maintenance noted of files that are out of use; see maintain."""

_DIGITS = 20


def find_id(folder: Path) -> str | None:
    """The id of the warehouse that the folder belongs to; None if it carries none."""
    place = folder / ID_FILE
    text = _read(place)
    try:
        return None if text is None else str(json.loads(text)["warehouse"])
    except (ValueError, KeyError, TypeError) as error:
        hint = "Take it away if the folder and the catalog do belong together: it is written anew."
        raise Corrupt(f"'{place}' does not tell the id of a warehouse.", hint=hint, path=str(place)) from error


def write_id(folder: Path, warehouse: str) -> None:
    # A name of its own: two processes may open a warehouse without an id together.
    fresh = folder / f".{ID_FILE}.{uuid4().hex}"
    with durable.disk(folder):
        fresh.write_text(json.dumps({"warehouse": warehouse}) + "\n", encoding="utf-8")
        durable.sync([fresh])
        fresh.replace(folder / ID_FILE)
        durable.sync([folder])


def is_of_another(root: Path, folder: Path) -> bool:
    """Whether a folder in the data carries another id than the data themselves."""
    carried = find_id(folder)
    return carried is not None and carried != find_id(root)


def find_steps(root: Path) -> int:
    """How many steps had begun when the data were last written, as far as is known."""
    return _number((_read(root / STEPS_FILE) or b"")[:_DIGITS])


def note_steps(root: Path, begun: int) -> None:
    """Before a step writes its first file. The number never goes down, whoever is last to write it."""
    with durable.disk(root):
        descriptor = os.open(root / STEPS_FILE, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            # Some network disks have no locks; there, two who write together may leave the smaller number.
            with suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            if _number(os.pread(descriptor, _DIGITS, 0)) < begun:
                # In place and at once: a process that is killed leaves the old number or the new one.
                os.pwrite(descriptor, f"{begun:0{_DIGITS}d}\n".encode(), 0)
        finally:
            os.close(descriptor)


def _read(place: Path) -> bytes | None:
    with durable.disk(place.parent):
        try:
            return place.read_bytes()
        except FileNotFoundError:
            return None


def _number(text: bytes) -> int:
    return int(text) if len(text) == _DIGITS and text.isdigit() else 0
