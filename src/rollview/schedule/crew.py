"""Capture and refresh, as the daemon asks for them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from rollview.catalog import Catalog
from rollview.errors import Busy, RollviewError
from rollview.results import Captured, Refreshed, SourceCaptured
from rollview.schedule.cadence import Words, every
from rollview.schedule.daemon import Event, paced
from rollview.schedule.due import Turns
from rollview.sources import requests

_PATIENCE = 30.0


class Crew:
    def __init__(
        self,
        catalog: Catalog,
        root: Path,
        refresh: Callable[[Sequence[str]], Refreshed],
        fold: Callable[[], None],
        schedule: Words,
        interval: float,
    ) -> None:
        self._catalog = catalog
        self._root = root
        self._refresh = refresh
        self._fold = fold
        self._turns = Turns(catalog, schedule, every(interval))

    def due_sources(self) -> Sequence[str]:
        return self._turns.sources()

    def due_views(self) -> Sequence[str]:
        return self._turns.views()

    def sources(self) -> Sequence[str]:
        return [source.name for source in self._catalog.sources()]

    def stale_views(self) -> Sequence[str]:
        return self._turns.stale()

    def capture(self, name: str) -> Captured:
        try:
            done = capture_one(self._catalog, self._root, name, wait=0.0)
            return Captured(self._catalog.snapshot().moment.csn, (done,))
        finally:
            self._turns.captured(name)

    def refresh(self, names: Sequence[str]) -> Refreshed:
        try:
            done = self._refresh(names)
            self._fold()
        except RollviewError as error:
            failed = names if isinstance(error, Busy) else error.facts.get("views", names)
            self._turns.refreshed(set(names).difference(failed), failed)
            raise
        self._turns.refreshed(names)
        return done


def capture_one(catalog: Catalog, root: Path, name: str, wait: float = _PATIENCE) -> SourceCaptured:
    """What one source gave, or why it gave nothing."""
    try:
        progress = requests.capture(catalog, root, name, wait)
    except RollviewError as error:
        if isinstance(error, Busy) and not wait:
            raise
        position = catalog.source(name).position
        return SourceCaptured(name, 0, 0, position, error.message, error.retryable)
    return SourceCaptured(name, progress.units, progress.rows, progress.position, notes=progress.notes)


def run_rounds(crew: Crew, interval: float, stop: threading.Event, rounds: int) -> Iterator[Event]:
    for _ in paced(interval, stop, rounds):
        try:
            for name in crew.sources():
                yield crew.capture(name)
            if views := crew.stale_views():
                yield crew.refresh(views)
        except RollviewError as error:
            yield error
