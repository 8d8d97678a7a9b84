"""Which sources, views and subscribers have their turn.

Law: the catalog tells when each was last seen to, by whichever process, so several processes share the work. What
failed waits longer each time, and only it.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from threading import Lock

from rollview.catalog import Catalog, Part, Relation, Snapshot, SourceRecord, SubscriberRecord
from rollview.core.backoff import delay
from rollview.core.interval import Csn, Interval
from rollview.core.states import Policy, SourceState, ViewState
from rollview.errors import UsageError
from rollview.relations.cadence import (
    PROPAGATE,
    PROPERTY,
    Cadence,
    CadenceKind,
    Words,
    cadence_of,
    given_for,
    named_for,
    parse_cadence,
)
from rollview.relations.policies import Policies
from rollview.relations.rolling import places_of, reachable, turns_of

_log = logging.getLogger(__name__)

_NEVER = datetime(1970, 1, 1, tzinfo=UTC)
_RESTS = 4
"""So many times what a reading took, a source is left alone: views need the machine too, and few large files."""
_LONGEST_REST = timedelta(seconds=1)


@dataclass(slots=True)
class Turns:
    """``default`` is for what has no cadence of its own; ``propagate``: cadences of propagation alone. What leaves no
    trace in the catalog is remembered here."""

    catalog: Catalog
    words: Words
    default: Cadence
    propagate: Words = None
    policies: Policies = field(default_factory=Policies)
    _seen: dict[str, datetime] = field(default_factory=dict)
    _failures: dict[str, tuple[int, datetime]] = field(default_factory=dict)
    _unfinished: set[str] = field(default_factory=set)
    _undelivered: dict[str, tuple[int, datetime]] = field(default_factory=dict)
    _resting: dict[str, datetime] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)
    """Captures, refreshes and deliveries end in threads of their own."""

    def sources(self) -> tuple[str, ...]:
        now = datetime.now(UTC)
        return tuple(source.name for source in self.catalog.sources() if _has_come(self._source_due(source), now))

    def has_views(self) -> bool:
        """Whether there are views that are seen to without being asked for."""
        snapshot = self.catalog.snapshot()
        cadences = (self._view_cadence(snapshot, view) for view in snapshot.views())
        asking = (self._propagation_words(snapshot, view) or turns_of(view) for view in snapshot.views())
        return any(cadence.kind is not CadenceKind.MANUAL for cadence in cadences) or any(asking)

    def views(self, besides: Collection[str] = ()) -> tuple[str, ...]:
        """``besides``: of these nobody asks."""
        now, snapshot = datetime.now(UTC), self.catalog.snapshot()
        views = [view for view in snapshot.views() if view.name not in besides]
        stale = self._lacking(snapshot, views, Part.EXTENT, by_itself=True)
        return tuple(view.name for view, since in stale if _has_come(self._view_due(snapshot, view, since), now))

    def propagations(self, besides: Collection[str] = ()) -> tuple[str, ...]:
        """Views whose delta has its turn, whatever becomes of their extents."""
        now, snapshot = datetime.now(UTC), self.catalog.snapshot()
        views = [view for view in snapshot.views() if view.name not in besides]
        asking = [view for view in views if self._propagation_words(snapshot, view) is not None]
        lacking = self._lacking(snapshot, asking, Part.DELTA)
        whole = [view.name for view, since in lacking if _has_come(self._propagation_due(snapshot, view, since), now)]
        return (*whole, *(name for name, tables in self.due_tables(besides).items() if tables))

    def due_tables(self, besides: Collection[str] = ()) -> Mapping[str, frozenset[str]]:
        """Of views that are propagated table by table: the tables whose changes have their turn."""
        now, snapshot, found = datetime.now(UTC), self.catalog.snapshot(), {}
        for view in snapshot.views():
            turns = turns_of(view)
            if turns is not None and view.name not in besides and not _is_held(snapshot, view):
                places = places_of(snapshot, view)
                due = {table: self._table_due(snapshot, view, table, places[table], turns) for table in places}
                found[view.name] = frozenset(table for table, when in due.items() if _has_come(when, now))
        return found

    def _table_due(
        self, snapshot: Snapshot, view: Relation, table: str, place: Csn, turns: Mapping[str, Cadence]
    ) -> datetime | None:
        missed = Interval(place, max(place, snapshot.moment.csn))
        since = self.catalog.oldest_change([table], missed) if missed else None
        # One that got another name since then has its turn at once.
        cadence = turns.get(table.lower(), Cadence(CadenceKind.CONTINUOUS))
        due = cadence.due(view.places[table].moved if table in view.places else _NEVER, since)
        retries = [self._failures[key][1] for key in (view.name, f"propagate:{view.name}") if key in self._failures]
        return None if due is None else max([due, *retries])

    def propagated(self, names: Iterable[str], failed: Iterable[str] = ()) -> None:
        done, again = ([f"propagate:{name}" for name in some] for some in (names, failed))
        with self._lock:
            self._seen |= dict.fromkeys(done, datetime.now(UTC))
            self._failures = _counted(self._failures, done, again)

    def stale(self) -> tuple[str, ...]:
        """All views that lack something, whatever their cadence."""
        return tuple(view.name for view, _ in self._stale(self.catalog.snapshot()))

    def captured(self, names: Iterable[str], took: timedelta = timedelta(0)) -> None:
        """``took``: how long it took to read what these had; they are read again after a rest in proportion."""
        now, sources = datetime.now(UTC), tuple(names)
        with self._lock:
            self._seen |= {f"source:{name}": now for name in sources}
            self._resting |= dict.fromkeys(sources, now + min(_LONGEST_REST, _RESTS * took))

    def refreshed(self, names: Iterable[str], failed: Iterable[str] = ()) -> None:
        done, now = tuple(names), datetime.now(UTC)
        with self._lock:
            self._seen |= {f"view:{name}": now for name in done}
            self._unfinished.difference_update(done)
            self._failures = _counted(self._failures, done, failed)

    def unfinished(self, names: Iterable[str]) -> None:
        """These have not come to the csn that was newest when their turn began: they have another one at once."""
        with self._lock:
            self._unfinished |= set(names)

    def subscribers(self) -> tuple[str, ...]:
        """Those with an address whose view has gone on, or whose rows come first."""
        waiting = [one for one in self.catalog.subscribers() if one.sink is not None]
        if not waiting:
            return ()
        now, snapshot = datetime.now(UTC), self.catalog.snapshot()
        due = [one for one in waiting if _has_more(snapshot.find(one.view), one)]
        return tuple(one.name for one in due if self._undelivered.get(one.name, (0, now))[1] <= now)

    def delivered(self, names: Iterable[str], failed: Iterable[str]) -> None:
        with self._lock:
            self._undelivered = _counted(self._undelivered, names, failed)

    def _source_due(self, source: SourceRecord) -> datetime | None:
        own = source.settings.get("options", {}).get("schedule")
        cadence = self._cadence(source.name, own)
        last = max(source.read or _NEVER, self._seen.get(f"source:{source.name}", _NEVER))
        due = None if source.state is SourceState.REMOVING else cadence.due(last, last)
        retry = source.health.get("retry_at")
        waits = [self._resting.get(source.name, _NEVER), _NEVER if retry is None else datetime.fromisoformat(retry)]
        return due if due is None else max(due, *waits)

    def _cadence(self, source: str, own: str | None) -> Cadence:
        """Words of one source that do not say when must not keep the others waiting."""
        try:
            return cadence_of(source, own, self.words, self.default)
        except UsageError as error:
            if own is None:
                raise
            _log.warning("source '%s': %s It has its turn as usual.", source, error.message)
            return cadence_of(source, None, self.words, self.default)

    def _stale(self, snapshot: Snapshot) -> list[tuple[Relation, datetime]]:
        return self._lacking(snapshot, snapshot.views(), Part.EXTENT)

    def _lacking(
        self, snapshot: Snapshot, views: Iterable[Relation], part: Part, *, by_itself: bool = False
    ) -> list[tuple[Relation, datetime]]:
        """With the time of the first commit that each lacks. ``by_itself``: of those that it could have."""
        found = []
        for view in views:
            through = view.pins[part].through
            newest = reachable(snapshot, view) if by_itself else snapshot.moment.csn
            if _is_held(snapshot, view) or through >= newest:
                continue
            interval = Interval(through, newest)
            since = self.catalog.oldest_change(snapshot.tables_below(view), interval)
            found += [(view, since)] if since is not None else []
        return found

    def _view_due(self, snapshot: Snapshot, view: Relation, since: datetime) -> datetime | None:
        step = self.catalog.last_step(view.name, "apply")
        last = max(self._seen.get(f"view:{view.name}", _NEVER), (step.finished if step else None) or _NEVER)
        due = self._view_cadence(snapshot, view).due(last, since)
        if due is not None and view.name in self._unfinished:
            due = _NEVER
        retry = self._failures.get(view.name)
        return due if due is None or retry is None else max(due, retry[1])

    def _view_cadence(self, snapshot: Snapshot, view: Relation) -> Cadence:
        """A snapshot is made when somebody asks, in person or by a cadence for this one view."""
        own = view.definition.properties.get(PROPERTY) if view.definition is not None else None
        if self.policies.of(snapshot, view) is not Policy.SNAPSHOT:
            return cadence_of(view.name, own, self.words, self.default)
        return cadence_of(view.name, own or named_for(view.name, self.words), None, Cadence(CadenceKind.MANUAL))

    def _propagation_words(self, snapshot: Snapshot, view: Relation) -> str | None:
        """A snapshot is never propagated by itself. What goes table by table has turns of its own."""
        if turns_of(view) is not None:
            return None
        own = view.definition.properties.get(PROPAGATE) if view.definition is not None else None
        words = own or given_for(view.name, self.propagate)
        return None if self.policies.of(snapshot, view) is Policy.SNAPSHOT else words

    def _propagation_due(self, snapshot: Snapshot, view: Relation, since: datetime) -> datetime | None:
        words = self._propagation_words(snapshot, view)
        assert words is not None
        step = self.catalog.last_step(view.name, "propagate")
        last = max(self._seen.get(f"propagate:{view.name}", _NEVER), (step.finished if step else None) or _NEVER)
        due = parse_cadence(words).due(last, since)
        retries = [self._failures[key][1] for key in (view.name, f"propagate:{view.name}") if key in self._failures]
        return None if due is None else max([due, *retries])


def _counted(
    failures: dict[str, tuple[int, datetime]], names: Iterable[str], failed: Iterable[str]
) -> dict[str, tuple[int, datetime]]:
    """How often each failed one after the other, and when it is tried again; ``names`` have been seen to."""
    now, again = datetime.now(UTC), tuple(failed)
    kept = {name: told for name, told in failures.items() if name not in set(names).difference(again)}
    tries = {name: kept.get(name, (0, now))[0] + 1 for name in again}
    return {**kept, **{name: (times, now + delay(times)) for name, times in tries.items()}}


def _has_more(view: Relation | None, subscriber: SubscriberRecord) -> bool:
    """One whose history has ended waits until it is begun anew."""
    if view is None or (view.folder, view.schema) != (subscriber.folder, subscriber.schema):
        return False
    return subscriber.full or view.pins[Part.DELTA].through > subscriber.position


def _is_held(snapshot: Snapshot, view: Relation) -> bool:
    """Whether it goes on only when somebody has seen to it, or to a table below."""
    return view.state is ViewState.SCHEMA_CHANGED or snapshot.waits_for(view) is not None


def _has_come(due: datetime | None, now: datetime) -> bool:
    return due is not None and due <= now
