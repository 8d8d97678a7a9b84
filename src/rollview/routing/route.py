"""Which csn, which views: the cheapest way to an answer within the bound. Told without Spark.

Law: one csn for all that is used. A view that is not proven to answer is not used, and the reason is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlglot import exp

from rollview.catalog import Catalog, Part, RelationKind, Snapshot
from rollview.core.interval import Csn
from rollview.core.states import Rewrite
from rollview.costs.reading import Costs, RelationCost, WayToRead
from rollview.costs.steps import costs_of
from rollview.errors import OutOfReach, UsageError
from rollview.matching import Answering, NoMatch, RewrittenQuery, rewrite, rewritings
from rollview.matching.rewrite import GROUPS_SUFFIX
from rollview.publish.workplace import Workplace
from rollview.relations import references
from rollview.relations.plans import known_as
from rollview.results import Considered
from rollview.routing.freshness import Staleness, moment_of_asking, oldest_allowed
from rollview.routing.question import NotCompared, Question, question
from rollview.routing.views import answering_views, expanding

_MOST_TRIED = 12
"""Views that answer, of which combinations are weighed."""


@dataclass(frozen=True, slots=True)
class Route:
    """``asked``: None where the author's text is run as it stands. ``readings``: of all that is read, at ``csn``.
    ``snapshot``: by which the way was found; ``asked_at``: from when staleness counts."""

    csn: Csn
    snapshot: Snapshot
    asked_at: datetime
    asked: Question | None
    rewritten: RewrittenQuery | None
    readings: tuple[RelationCost, ...]
    considered: tuple[Considered, ...]
    job_seconds: float
    read_tables: frozenset[str] = frozenset()
    """All tables that the answer rests on."""
    least: float = 0.0
    """Seconds that it takes at least, whatever its readings cost."""

    def way_of(self, relation: str) -> WayToRead | None:
        return next((one.way for one in self.readings if one.relation == relation), None)

    @property
    def rows(self) -> int:
        """At most so many are grouped, netted or shown."""
        return sum(one.rows for one in self.readings)

    @property
    def newest(self) -> Csn:
        return self.snapshot.moment.csn

    @property
    def seconds(self) -> float:
        return max(self.least, self.job_seconds + sum(one.seconds for one in self.readings))


@dataclass(frozen=True, slots=True)
class RouteWish:
    """``at``: exactly this csn; else the newest, or as old as ``bound`` allows."""

    at: Csn | None = None
    bound: Staleness | None = None
    rewrite: Rewrite = Rewrite.AUTO


def route(place: Workplace, snapshot: Snapshot, query: exp.Query, wish: RouteWish) -> Route:
    """The cheapest."""
    return _choice(place, snapshot, query, wish).made(query, wish)


def candidates(place: Workplace, snapshot: Snapshot, query: exp.Query, wish: RouteWish) -> list[Route]:
    """All that were weighed, without what was looked at."""
    return _choice(place, snapshot, query, wish).candidates(query, wish)


def named_in(snapshot: Snapshot, query: exp.Query) -> tuple[str, ...]:
    """The relations that a query names."""
    named = dict.fromkeys(table.name for table in references.free_tables(query, outside=True))
    return tuple(relation.name for name in named if (relation := snapshot.find(name)) is not None)


def check_named(snapshot: Snapshot, query: exp.Query) -> None:
    """Raises ``NotFound`` of a relation that is not there."""
    for table in references.free_tables(query):
        snapshot.get(table.name)


def _choice(place: Workplace, snapshot: Snapshot, query: exp.Query, wish: RouteWish) -> _Choice:
    snapshot = snapshot if wish.at is None else snapshot.at(wish.at)
    names = named_in(snapshot, query)
    now = moment_of_asking()
    csns = _csns(place.catalog, snapshot, wish, names, now)
    return _Choice(snapshot, now, costs_of(place.catalog, place.data, snapshot), names, csns)


def _csns(
    catalog: Catalog, snapshot: Snapshot, wish: RouteWish, names: Sequence[str], now: datetime
) -> tuple[Csn, ...]:
    """Those at which the answer may be, newest first: the newest, and those at which views stand."""
    newest = snapshot.moment.csn
    if wish.at is not None:
        return (wish.at,)
    # Views are taken as they are defined now, so the answer is not from before that.
    versions = (version for one in snapshot.relations.values() for version in one.versions)
    defined = max((version.csn for version in versions if not version.pending), default=0)
    oldest = max(defined, oldest_allowed(catalog, snapshot, wish.bound, names, now))
    marks = {
        relation.pins[part].through
        for relation in snapshot.relations.values()
        if relation.kind is RelationKind.VIEW
        for part in (Part.DELTA, Part.EXTENT)
    }
    return tuple(sorted({newest, *(csn for csn in marks if oldest <= csn <= newest)}, reverse=True))


@dataclass(frozen=True, slots=True)
class _Choice:
    snapshot: Snapshot
    asked_at: datetime
    costs: Costs
    names: tuple[str, ...]
    csns: tuple[Csn, ...]

    def made(self, query: exp.Query, wish: RouteWish) -> Route:
        asked, whole = self._question(query, wish)
        found, reasons, remainder = self._views(asked, wish)
        routes = self._all(asked, found, wish, remainder=remainder)
        if wish.rewrite is Rewrite.REQUIRE and not found:
            raise not_answered(reasons, whole)
        if not routes:
            raise self._out_of_reach()
        best = min(routes, key=lambda one: (one.seconds, -one.csn))
        return self._told(best, found, reasons, whole)

    def candidates(self, query: exp.Query, wish: RouteWish) -> list[Route]:
        asked, _ = self._question(query, wish)
        found, _, remainder = self._views(asked, wish)
        return self._all(asked, found, wish, remainder=remainder)

    def _question(self, query: exp.Query, wish: RouteWish) -> tuple[Question | None, str | None]:
        """The query as it is compared with views, or why it is not."""
        if wish.rewrite is Rewrite.OFF:
            return None, None
        known = {name.lower(): known_as(relation) for name, relation in self.snapshot.relations.items()}
        try:
            return question(query, known, expanding(self.snapshot)), None
        except NotCompared as reason:
            return None, str(reason)

    def _views(self, asked: Question | None, wish: RouteWish) -> tuple[list[Answering], dict[str, str], bool]:
        """Those that answer, why others do not, and whether rows that they lack come from tables. Who reads the tables
        anyway saves nothing by a view beside them, so that is done only where a view has to be."""
        if asked is None:
            return [], {}, False
        found, reasons = self._answering(asked)
        if found or wish.rewrite is not Rewrite.REQUIRE:
            return found, reasons, False
        return *self._answering(asked, remainder=True), True

    def _all(
        self, asked: Question | None, found: Sequence[Answering], wish: RouteWish, *, remainder: bool
    ) -> list[Route]:
        plain = self._plain(found) if wish.rewrite is not Rewrite.REQUIRE else ()
        return [*self._rewritten(asked, found, remainder=remainder), *plain]

    def _answering(self, asked: Question, *, remainder: bool = False) -> tuple[list[Answering], dict[str, str]]:
        found: list[Answering] = []
        reasons: dict[str, str] = {}
        for name, view in answering_views(self.snapshot, {place.leaf.relation for place in asked.flat.places}):
            try:
                if isinstance(view, str):
                    raise NoMatch(view)
                next(rewritings(asked.flat, view, remainder=remainder))
                found.append(view)
            except NoMatch as refusal:
                reasons[name] = str(refusal)
        return found, reasons

    def _tables_of(self, name: str) -> frozenset[str]:
        return self.snapshot.tables_of(self.snapshot.get(name))

    def _plain(self, found: Sequence[Answering]) -> Iterator[Route]:
        """The author's text over the relations that it names."""
        for csn in self.csns:
            readings = self.costs.all(self.names, csn)
            if readings is not None:
                yield replace(self._route(csn, None, None, readings), least=self._from_nothing(found, csn))

    def _from_nothing(self, found: Sequence[Answering], csn: Csn) -> float:
        """What a view over the same tables takes from nothing, the query takes from them. What a view joins beside them
        is no work of the query."""
        if any(self.snapshot.get(name).kind is RelationKind.VIEW for name in self.names):
            return 0.0
        same = (view.name for view in found[:_MOST_TRIED] if self._tables_of(view.name) == frozenset(self.names))
        views = (self.costs.from_nothing(name, csn) for name in same)
        return min((seconds for seconds in views if seconds is not None), default=0.0)

    def _rewritten(self, asked: Question | None, found: Sequence[Answering], *, remainder: bool) -> Iterator[Route]:
        for first in found[:_MOST_TRIED]:
            assert asked is not None
            others = (view for view in found if view is not first)
            made, _ = rewrite(asked.flat, [first, *others], remainder=remainder)
            names = [name.removesuffix(GROUPS_SUFFIX) for name in made.reads]
            for csn in self.csns:
                readings = self.costs.all(names, csn)
                if readings is not None:
                    yield self._route(csn, asked, made, readings)

    def _route(
        self, csn: Csn, asked: Question | None, made: RewrittenQuery | None, readings: tuple[RelationCost, ...]
    ) -> Route:
        about = (csn, self.snapshot, self.asked_at)
        return Route(*about, asked, made, readings, (), self.costs.machine.job_seconds)

    def _told(self, best: Route, found: Sequence[Answering], reasons: dict[str, str], whole: str | None) -> Route:
        """The same with all that was looked at."""
        how = best.rewritten.how if best.rewritten is not None else {}
        used = [
            Considered(one.relation, True, best.csn, one.way, one.seconds, how.get(one.relation, "named by the query"))
            for one in best.readings
        ]
        names = {one.relation for one in used}
        others = [self._costlier(view.name, best) for view in found if view.name not in names]
        refused = [Considered(name, False, why=why) for name, why in reasons.items() if name not in names]
        general = [Considered("views", False, why=whole)] if whole is not None else []
        tables = frozenset(table for name in (*names, *self.names) for table in self._tables_of(name))
        return replace(best, considered=(*used, *others, *refused, *general), read_tables=tables)

    def _costlier(self, name: str, best: Route) -> Considered:
        try:
            reading = self.costs.reading(name, best.csn)
        except OutOfReach as refusal:
            return Considered(name, False, why=str(refusal))
        return Considered(name, False, best.csn, reading.way, reading.seconds, "costlier")

    def _out_of_reach(self) -> OutOfReach:
        for name in self.names:
            try:
                self.costs.reading(name, self.csns[0])
            except OutOfReach as refusal:
                return refusal
        return OutOfReach(f"No csn is in reach of all of {', '.join(self.names)}.")


def not_answered(reasons: Mapping[str, str], whole: str | None) -> UsageError:
    """``reasons``: by view; ``whole``: of the query itself."""
    why = whole or "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
    told = (why or "there is none over its tables").rstrip(".")
    return UsageError(f"No view answers the query: {told}.", hint="With 'auto' it is read from tables.")
