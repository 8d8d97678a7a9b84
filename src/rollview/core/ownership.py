"""Whose a file is.

Law: what runs code is taken only from this user or from root, who could run it anyway.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def is_trusted(path: Path) -> bool:
    """Whether the file or folder, and what it is a link to, belongs to this user or to root."""
    trusted = {0, os.geteuid(), *_behind_sudo()}
    return {path.lstat().st_uid, path.stat().st_uid} <= trusted


def is_private(path: Path) -> bool:
    """Whether it is no link, belongs to this very user, and nobody else may write to it."""
    try:
        found = path.lstat()
    except OSError:
        return False
    is_link = stat.S_ISLNK(found.st_mode)
    return not is_link and found.st_uid == os.geteuid() and not found.st_mode & _OTHERS_WRITE


def make_private(path: Path) -> bool:
    """Take the right to write from others; whether the path is private then."""
    try:
        found = path.lstat()
        if not stat.S_ISLNK(found.st_mode) and found.st_uid == os.geteuid() and found.st_mode & _OTHERS_WRITE:
            path.chmod(stat.S_IMODE(found.st_mode) & ~_OTHERS_WRITE)
    except OSError:
        return False
    return is_private(path)


def _behind_sudo() -> tuple[int, ...]:
    """Root that was asked for by a user, who owns the files that it works on."""
    told = os.environ.get("SUDO_UID", "")
    return (int(told),) if os.geteuid() == 0 and told.isdecimal() else ()
