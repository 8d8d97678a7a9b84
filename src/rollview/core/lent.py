"""Files that somebody else keeps and that may be read where they are, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


class UnlinkableError(Exception):
    """Why a table cannot be read where it is."""


@dataclass(frozen=True, slots=True)
class Lent:
    """A file of somebody else's. ``constants``: columns that have one value in all its rows, as text."""

    place: Path
    constants: Mapping[str, str | None] = field(default_factory=dict)
