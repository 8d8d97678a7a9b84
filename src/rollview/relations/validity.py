"""For how long a table's rows, or a view's extent, are current.

Law (Beyer et al., section 6): the interval is kept conservatively, from commit times and never from statement times. It
begins with the last commit that could have moved the rows and ends before the next one; a view's own delta may prove
that a commit moved nothing. Inside a coarse stretch nothing is proven: equal ends tell nothing of what lies between.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime

from rollview.catalog import Catalog, Part, Relation, RelationKind, Snapshot
from rollview.core.interval import Csn, Interval
from rollview.relations.points import published
from rollview.relations.shared import coarse_of, told_over
from rollview.relations.versions import redefined
from rollview.results import ValidTime

Moves = Callable[[Interval], list[tuple[Csn, Csn]]]
"""Between which csns a view's own delta has changes, file by file."""


@dataclass(frozen=True, slots=True)
class Validity:
    """Of the rows that readers see who name no csn. Without ``moves``, only commits tell."""

    catalog: Catalog
    snapshot: Snapshot
    relation: Relation
    moves: Moves | None = None

    def told(self) -> ValidTime:
        at = published(self.snapshot, self.relation)
        first, following = self._first(at), self._following(at)
        through = self.snapshot.moment.csn if following is None else following - 1
        changed = redefined(self.snapshot, self.relation)
        first = max([first, *(csn for csn in changed if csn <= at)])
        through = min([through, *(csn - 1 for csn in changed if csn > at)])
        since = max((one.time for one in self.catalog.last_changes(self._tables, first)), default=None)
        until = self._until(through)
        if since is not None and until is not None and until < since:
            return ValidTime(first, through, None, None)
        return ValidTime(first, through, since, until)

    @property
    def _tables(self) -> Collection[str]:
        is_view = self.relation.kind is RelationKind.VIEW
        return self.snapshot.tables_below(self.relation) if is_view else (self.relation.name,)

    @property
    def _own(self) -> Interval | None:
        """What a view's own delta covers."""
        pin = self.relation.pins.get(Part.DELTA) if self.relation.kind is RelationKind.VIEW else None
        return None if pin is None or self.moves is None else told_over(self.snapshot, self.relation)

    def _moved(self, interval: Interval) -> list[tuple[Csn, Csn]]:
        return [] if self.moves is None else self.moves(interval)

    def _first(self, at: Csn) -> Csn:
        last, own = self._last_change(at), self._own
        if own is None or last <= own.after or at <= own.after:
            return last
        moved = [min(csn, at) for first, csn in self._moved(Interval(own.after, at)) if first <= at]
        untold = [
            stretch.through for stretch in coarse_of(self.snapshot, self.relation) if own.after < stretch.through <= at
        ]
        proven = max([*moved, *untold], default=None)
        return min(last, proven if proven is not None else self._last_change(own.after))

    def _last_change(self, at: Csn) -> Csn:
        changes = [one.csn for one in self.catalog.last_changes(self._tables, at)]
        return max(changes, default=min(at, self._begin()))

    def _begin(self) -> Csn:
        """From here on all that the relation rests on is known to be as it is, where nothing has changed."""
        below = map(self.snapshot.get, self._tables)
        return max((max(table.created, table.readable_from) for table in below), default=self.relation.created)

    def _following(self, at: Csn) -> Csn | None:
        """The next csn that may move the rows; None if there is none yet."""
        following, own = self._next_change(at), self._own
        if following is None or own is None or following > own.through:
            return following
        moved = [max(first, at + 1) for first, last in self._moved(Interval(at, own.through)) if last > at]
        untold = [stretch.after + 1 for stretch in coarse_of(self.snapshot, self.relation) if stretch.after >= at]
        proven = min([*moved, *untold], default=None)
        return self._next_change(own.through) if proven is None else max(following, proven)

    def _next_change(self, after: Csn) -> Csn | None:
        return min((one.csn for one in self.catalog.next_changes(self._tables, after)), default=None)

    def _until(self, through: Csn) -> datetime | None:
        """None if a source is not known to have passed any moment."""
        ends = [one.time for one in self.catalog.next_changes(self._tables, through)]
        known = {source.name: source.known for source in self.catalog.sources()}
        now = max(self.snapshot.moment.time, datetime.now(UTC))
        sources = {self.snapshot.get(table).source for table in self._tables}
        passed = [now if source is None else known.get(source) for source in sources]
        told = [moment for moment in passed if moment is not None]
        return min([*ends, *told], default=now) if len(told) == len(passed) else None
