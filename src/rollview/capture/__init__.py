"""Capture: committed units of work of the sources become csns, each once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rollview.core.lazy import lazy_names

if TYPE_CHECKING:
    from rollview.capture.answers import (
        add_source,
        alter_source,
        capture_sources,
        check_source,
        decide,
        remove_source,
        resnapshot,
        say_rename,
    )

__all__ = [
    "add_source",
    "alter_source",
    "capture_sources",
    "check_source",
    "decide",
    "remove_source",
    "resnapshot",
    "say_rename",
]
__getattr__ = lazy_names(__name__, dict.fromkeys(__all__, "rollview.capture.answers"))
