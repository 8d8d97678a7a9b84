"""Capture and refresh, as the daemon asks for them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from rollview.capture import run as capturing
from rollview.catalog import Catalog, Part
from rollview.core.order import Order
from rollview.errors import Busy, RollviewError
from rollview.results import Captured, Refreshed, SourceCaptured
from rollview.schedule.cadence import Words, every
from rollview.schedule.daemon import Event, Group, paced, unforeseen
from rollview.schedule.due import Turns

_PATIENCE = 30.0
_SLICE = 5.0
"""Seconds after which a view that is far behind lets the others have their turn."""
GROUP = "rollview.group"
"""The property by which views are published together."""

RefreshSome = Callable[[Sequence[str], float | None], Refreshed]
"""Refreshes these views, for so many seconds if a number is given."""


class Crew:
    def __init__(
        self,
        catalog: Catalog,
        root: Path,
        order: Order,
        refresh: RefreshSome,
        fold: Callable[[], None],
        schedule: Words,
        interval: float,
    ) -> None:
        self._catalog = catalog
        self._root = root
        self._order = order
        self._refresh = refresh
        self._fold = fold
        self._turns = Turns(catalog, schedule, every(interval))

    def due_sources(self) -> Sequence[Group]:
        return capturing.together(self._catalog, self._turns.sources(), self._order)

    def due_views(self) -> Sequence[Group]:
        """Each view by itself, or with the others of its group."""
        snapshot, due = self._catalog.snapshot(), self._turns.views()
        groups: dict[str, list[str]] = {}
        for view in snapshot.views():
            properties = view.definition.properties if view.definition is not None else {}
            own = f"{GROUP}={properties[GROUP]}" if GROUP in properties else view.name
            groups.setdefault(own, []).append(view.name)
        return [tuple(names) for names in groups.values() if any(name in due for name in names)]

    def sources(self) -> Sequence[Group]:
        names = tuple(source.name for source in self._catalog.sources())
        return capturing.together(self._catalog, names, self._order)

    def stale_views(self) -> Sequence[str]:
        return self._turns.stale()

    def capture(self, names: Group) -> Captured:
        try:
            done = _capture(self._catalog, self._root, names, self._order, 0.0)
            return Captured(self._catalog.snapshot().moment.csn, done)
        finally:
            self._turns.captured(names)

    def refresh(self, names: Group) -> Refreshed:
        """For a while: what is not done then has its next turn at once, after the others."""
        newest = self._catalog.snapshot().moment.csn
        done = self._refreshed(names, _SLICE)
        now = self._catalog.snapshot()
        self._turns.unfinished(name for name in names if now.get(name).pins[Part.EXTENT].through < newest)
        return done

    def refresh_all(self, names: Sequence[str]) -> Refreshed:
        return self._refreshed(names, None)

    def _refreshed(self, names: Sequence[str], seconds: float | None) -> Refreshed:
        try:
            done = self._refresh(names, seconds)
            self._fold()
        except Exception as error:
            facts = {} if isinstance(error, Busy) or not isinstance(error, RollviewError) else error.facts
            failed = facts.get("views", names)
            self._turns.refreshed(set(names).difference(failed), failed)
            raise
        self._turns.refreshed(names)
        return done


def capture_all(catalog: Catalog, root: Path, names: Sequence[str], order: Order) -> tuple[SourceCaptured, ...]:
    """What each source gave, or why it gave nothing."""
    done: list[SourceCaptured] = []
    for group in capturing.together(catalog, names, order):
        try:
            done += _capture(catalog, root, group, order, _PATIENCE)
        except Exception as error:
            done += [_told(catalog, name, unforeseen(error)) for name in group]
    return tuple(done)


def _capture(catalog: Catalog, root: Path, names: Group, order: Order, wait: float) -> tuple[SourceCaptured, ...]:
    done = capturing.capture(catalog, root, names, order, wait)
    return tuple(_told(catalog, name, done[name]) for name in names)


def _told(catalog: Catalog, name: str, done: capturing.Captured) -> SourceCaptured:
    if isinstance(done, RollviewError):
        return SourceCaptured(name, 0, 0, catalog.source(name).position, done.message, done.retryable)
    return SourceCaptured(name, done.units, done.rows, done.position, notes=done.notes)


def run_rounds(crew: Crew, interval: float, stop: threading.Event, rounds: int) -> Iterator[Event]:
    for _ in paced(interval, stop, rounds):
        try:
            yield from _round(crew)
        except Exception as error:
            yield unforeseen(error)


def _round(crew: Crew) -> Iterator[Event]:
    """One that fails keeps no other from its turn."""
    for names in crew.sources():
        yield _came_of(partial(crew.capture, names))
    if views := crew.stale_views():
        yield _came_of(partial(crew.refresh_all, views))


def _came_of(task: Callable[[], Captured | Refreshed]) -> Event:
    try:
        return task()
    except Exception as error:
        return unforeseen(error)
