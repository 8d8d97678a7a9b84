"""What a piece of work cost: Spark actions, rows, files, bytes, seconds, added up by label.

Law: the total is the sum over the labels, whatever threads did the work.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Usage:
    actions: int = 0
    rows: int = 0
    files_read: int = 0
    bytes_read: int = 0
    files_written: int = 0
    bytes_written: int = 0
    seconds: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class Meter:
    """Adds up usage; one per refresh, commit or other piece of work that is reported."""

    def __init__(self) -> None:
        self._usage: dict[str, Usage] = {}
        self._lock = threading.Lock()

    @contextmanager
    def action(self, label: str) -> Iterator[None]:
        """Count what runs inside as one Spark action, with its time, also when it fails."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.add(label, Usage(actions=1, seconds=time.perf_counter() - started))

    @contextmanager
    def part(self) -> Iterator[Meter]:
        """A meter for a piece of the work, which is added to this one at its end, also when it fails."""
        own = Meter()
        try:
            yield own
        finally:
            for label, usage in own.by_label().items():
                self.add(label, usage)

    def rows(self, label: str, count: int) -> None:
        self.add(label, Usage(rows=count))

    def read(self, label: str, files: int, size: int) -> None:
        self.add(label, Usage(files_read=files, bytes_read=size))

    def wrote(self, label: str, files: int, size: int) -> None:
        self.add(label, Usage(files_written=files, bytes_written=size))

    def add(self, label: str, usage: Usage) -> None:
        with self._lock:
            self._usage[label] = self._usage.get(label, Usage()) + usage

    def of(self, label: str) -> Usage:
        with self._lock:
            return self._usage.get(label, Usage())

    def by_label(self) -> dict[str, Usage]:
        with self._lock:
            return dict(self._usage)

    def total(self) -> Usage:
        return sum(self.by_label().values(), Usage())
