"""Capture, refresh and delivery, as the daemon asks for them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path

from rollview.capture.plan import Group, plan_capture
from rollview.capture.run import run_group
from rollview.catalog import Catalog, Part, Snapshot
from rollview.core.interval import Csn
from rollview.core.order import Order
from rollview.core.raised import unexpected_error
from rollview.core.states import ViewState
from rollview.costs.steps import past_steps
from rollview.errors import Busy, RollviewError
from rollview.propagate.bounds import cut_off
from rollview.publish.following import Following
from rollview.relations.cadence import Words, every
from rollview.relations.policies import Policies
from rollview.relations.rolling import reachable
from rollview.results import Captured, Delivered, Refreshed
from rollview.schedule.daemon import Event, ViewGroup, paced
from rollview.schedule.due import Turns
from rollview.schedule.selection import views_below

_SLICE = 5.0
"""Seconds after which a view that is far behind lets the others have their turn."""
GROUP = "rollview.group"
"""The property by which views are published together."""

DueTables = Mapping[str, frozenset[str]] | None
"""Tables that have their turn, of views that are propagated table by table; None: all of them."""
RefreshSome = Callable[[Sequence[str], float | None, DueTables], Refreshed]
"""Refreshes these views, for so many seconds if a number is given."""
DeliverTo = Callable[[Sequence[str], float | None], Delivered]
"""Delivers to these subscribers, or to all that have an address."""


def _nothing(names: Sequence[str], seconds: float | None, due: DueTables) -> Refreshed:
    return Refreshed(0, ())


@dataclass(frozen=True, slots=True)
class OwnPropagation:
    """When views are propagated by themselves, and how."""

    run: RefreshSome = _nothing
    words: Words = None
    policies: Policies = field(default_factory=Policies)


class Crew:
    def __init__(
        self,
        catalog: Catalog,
        root: Path,
        order: Order,
        refresh: RefreshSome,
        fold: Callable[[Collection[str]], None],
        deliver: DeliverTo,
        schedule: Words,
        interval: float,
        following: Following | None = None,
        propagation: OwnPropagation | None = None,
    ) -> None:
        self._catalog = catalog
        self._root = root
        self._order = order
        self._refresh = refresh
        self._fold = fold
        self._deliver = deliver
        self._following = following
        self._propagation = propagation or OwnPropagation()
        about = (self._propagation.words, self._propagation.policies)
        self._turns = Turns(catalog, schedule, every(interval), *about)
        self._seen_to = set[str]()
        self._had_turn = set[ViewGroup]()
        self._cut_off: dict[str, int] = {}

    def due_sources(self) -> Sequence[Group]:
        return plan_capture(self._catalog.sources(), self._turns.sources(), self._order).groups

    def due_views(self, besides: Collection[str] = ()) -> Sequence[ViewGroup]:
        """Each view by itself, or with the others of its group; first whoever is furthest behind, but last those whose
        last steps other processes did not end, or failed in.

        So daemons that never live long see to all of them, also where one needs longer than they live.
        """
        snapshot = self._catalog.snapshot()
        if all(view.name in besides for view in snapshot.views()):
            return ()
        due, groups = self._turns.views(besides), self._groups(snapshot)
        found = [names for names in groups if any(name in due for name in names)]
        # A group that waits for one of its views has its turn next: no other of them is propagated by itself meanwhile.
        taken = {name for names in found for name in names}
        free = [names for names in found if not any(name in besides for name in names)]
        waiting = [*free, *((name,) for name in self._turns.propagations(besides) if name not in taken)]
        return sorted(waiting, key=partial(self._rank, snapshot))

    @staticmethod
    def _groups(snapshot: Snapshot) -> Sequence[ViewGroup]:
        groups: dict[str, list[str]] = {}
        for view in snapshot.views():
            if view.state is ViewState.SCHEMA_CHANGED or snapshot.waits_for(view) is not None:
                continue
            properties = view.definition.properties if view.definition is not None else {}
            own = f"{GROUP}={properties[GROUP]}" if GROUP in properties else view.name
            groups.setdefault(own, []).append(view.name)
        return [tuple(names) for names in groups.values()]

    def _rank(self, snapshot: Snapshot, names: ViewGroup) -> tuple[bool, int, Csn]:
        """What happened to other processes puts a first turn behind other first turns, and behind no second one: who is
        not apart from views that are always due would never have it."""
        mark = min(snapshot.get(name).pins[Part.DELTA].through for name in names)
        if names in self._had_turn:
            return True, 0, mark
        below = (lower for name in names for lower in views_below(snapshot, snapshot.get(name)))
        return False, max(self._tries_before(name) for name in (*names, *below)), mark

    def _tries_before(self, name: str) -> int:
        """How often the view's next step was begun in vain before it had a turn here."""
        if name in self._seen_to:
            return 0
        if name not in self._cut_off:
            self._cut_off[name] = cut_off(past_steps(self._catalog, name))
        return self._cut_off[name]

    def held_by(self, names: ViewGroup) -> frozenset[str]:
        """With those that they read, which are propagated with them."""
        snapshot = self._catalog.snapshot()
        known = [view for view in map(snapshot.find, names) if view is not None]
        return frozenset(names).union(*(views_below(snapshot, view) for view in known))

    def due_subscribers(self) -> Sequence[str]:
        return self._turns.subscribers()

    def deliver(self, name: str) -> Delivered:
        """For a while, as a view is refreshed."""
        return self._told(self._deliver([name], _SLICE))

    def deliver_all(self) -> Delivered:
        return self._told(self._deliver((), None))

    def has_addresses(self) -> bool:
        return any(one.sink is not None for one in self._catalog.subscribers())

    def _told(self, done: Delivered) -> Delivered:
        failed = [one.name for one in done.subscribers if one.problem is not None]
        self._turns.delivered([one.name for one in done.subscribers], failed)
        return done

    def sources(self) -> Sequence[Group]:
        records = self._catalog.sources()
        return plan_capture(records, [source.name for source in records], self._order).groups

    def stale_views(self) -> Sequence[str]:
        return self._turns.stale()

    def capture(self, names: Group) -> Captured:
        began = time.monotonic()
        try:
            done = run_group(self._catalog, self._root, names, self._order, 0.0, self._following)
            return Captured(self._catalog.snapshot().moment.csn, done)
        finally:
            self._turns.captured(names, timedelta(seconds=time.monotonic() - began))

    def refresh(self, names: ViewGroup) -> Refreshed:
        """For a while: what is not done then has its next turn at once, after the others. A view that only has to be
        propagated by now is not applied. The first turn is one short step, so that each view soon comes nearer. Where a
        source cannot be asked, what is not done waits as after a failure.
        """
        self._had_turn.add(names)
        is_whole = names in self._groups(self._catalog.snapshot())
        if not is_whole or (not set(names) & set(self._turns.views()) and set(names) & set(self._turns.propagations())):
            return self._propagated(names)
        before = self._catalog.snapshot()
        seconds = _SLICE if self._seen_to.issuperset(names) else 0.0
        self._seen_to.update(names)
        done = self._refreshed(names, seconds, self._turns.due_tables())
        if not done.lagging:
            self._turns.unfinished(self._behind(names, before))
        return done

    def _behind(self, names: Sequence[str], before: Snapshot) -> Sequence[str]:
        """Those that have not come to where they could have."""
        now = self._catalog.snapshot()
        return [name for name in names if _applied(now, name) < reachable(before, before.get(name))]

    def _propagated(self, names: ViewGroup) -> Refreshed:
        try:
            done = self._propagation.run(names, _SLICE, self._turns.due_tables())
        except Exception as error:
            self._turns.propagated(names, _failed(error, names))
            raise
        self._turns.propagated(names, names if done.lagging else ())
        return done

    def refresh_all(self, names: Sequence[str]) -> Refreshed:
        return self._refreshed(names, None, None)

    def _refreshed(self, names: Sequence[str], seconds: float | None, due: DueTables) -> Refreshed:
        before = self._catalog.snapshot()
        try:
            done = self._refresh(names, seconds, due)
            self._fold(self._turns.views())
        except Exception as error:
            failed = _failed(error, names)
            self._turns.refreshed(set(names).difference(failed), failed)
            raise
        if done.lagging:
            now = self._catalog.snapshot()
            # One that went on a little waits as after a first failure.
            self._turns.refreshed(name for name in names if _applied(now, name) > _applied(before, name))
        self._turns.refreshed(names, self._behind(names, before) if done.lagging else ())
        return done


def _applied(snapshot: Snapshot, name: str) -> Csn:
    return snapshot.get(name).shown.through


def _failed(error: Exception, names: Sequence[str]) -> Sequence[str]:
    """Those of the views that an error is about; all if it does not tell."""
    facts = {} if isinstance(error, Busy) or not isinstance(error, RollviewError) else error.facts
    failed: Sequence[str] = facts.get("views", names)
    return failed


def run_rounds(crew: Crew, interval: float, stop: threading.Event, rounds: int) -> Iterator[Event]:
    for _ in paced(interval, stop, rounds):
        try:
            yield from _round(crew)
        except Exception as error:
            yield unexpected_error(error)


def _round(crew: Crew) -> Iterator[Event]:
    """One that fails keeps no other from its turn."""
    for names in crew.sources():
        yield _came_of(partial(crew.capture, names))
    if views := crew.stale_views():
        yield _came_of(partial(crew.refresh_all, views))
    if crew.has_addresses():
        yield _came_of(crew.deliver_all)


def _came_of(task: Callable[[], Event]) -> Event:
    try:
        return task()
    except Exception as error:
        return unexpected_error(error)
