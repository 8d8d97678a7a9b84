"""Counts, times and sizes in words."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rollview.results import TablePlace


def values(items: Any, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(getattr(item, name) for name in names) for item in items]


def rows_of(count: int) -> str:
    return counted(count, "row")


def counted(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def places_in_words(places: Sequence[TablePlace]) -> str:
    return ", ".join(f"{one.table} at csn {one.csn} ({one.cadence})" for one in places)


def time_of(moment: datetime) -> str:
    return moment.astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")


def duration_of(seconds: float) -> str:
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def size_of(count: int) -> str:
    if count < 0:
        return f"−{size_of(-count)}"
    size = float(count)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"
