"""Settings that refer to a secret instead of holding it.

Law: ``env:NAME`` and ``file:PATH`` are kept and shown as they are; what they refer to is read when it is used, and is
in no value that is stored or printed.
"""

from __future__ import annotations

import os
from pathlib import Path

from rollview.errors import UsageError


def is_reference(text: str) -> bool:
    kind, _, target = text.partition(":")
    return kind == "env" or (kind == "file" and not target.startswith("//"))


def resolve(text: str, folder: Path, referring: str) -> str:
    """The text itself, or what it refers to. ``referring``: who does, for the message."""
    if not is_reference(text):
        return text
    kind, _, target = text.partition(":")
    if kind == "file":
        return _read(folder / Path(target).expanduser(), referring)
    if target not in os.environ:
        raise UsageError(f"The environment has no variable '{target}', which {referring} refers to.", variable=target)
    return os.environ[target]


def anchored(text: str, folder: Path) -> str:
    """The same reference, understood from anywhere."""
    kind, _, target = text.partition(":")
    return f"file:{(folder / Path(target).expanduser()).absolute()}" if is_reference(text) and kind == "file" else text


def _read(path: Path, referring: str) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError as cause:
        reason = cause.strerror
        raise UsageError(f"Cannot read '{path}', which {referring} refers to: {reason}.", file=str(path)) from None
