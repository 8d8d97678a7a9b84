"""A stored copy of the loaded classes, with which Java starts Spark about three seconds sooner.

Law: the file's name says for which Java and which Spark it was made, so a wrong one is never offered. Without one
everything works the same, later. ``rollview.engine.speedup`` makes it.
"""

from __future__ import annotations

import hashlib
import os
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from rollview.core.ownership import is_private
from rollview.engine import java


def archive_path(found: java.Java) -> Path:
    """Where the archive for this Java and the installed Spark is, or would be."""
    spec = find_spec("pyspark")
    made_for = (str(found.command), found.text, metadata.version("pyspark"), str(spec and spec.origin))
    return java.cache_folder(os.environ) / f"classes-{hashlib.sha256(repr(made_for).encode()).hexdigest()[:12]}.jsa"


def find_archive(found: java.Java) -> Path | None:
    """Only one that this user made and nobody else can change: Java runs the classes in it."""
    path = archive_path(found)
    return path if path.is_file() and is_private(path) else None
