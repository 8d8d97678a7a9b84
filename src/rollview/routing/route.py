"""Which csn, which views: the cheapest way to an answer within the bound. Told without Spark.

Law: one csn for all that is used. A view that is not proven to answer is not used, and the reason is told.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from rollview.catalog import Catalog, Part, RelationKind, Snapshot
from rollview.core.interval import Csn
from rollview.core.states import Rewrite
from rollview.errors import OutOfReach, UsageError
from rollview.matching import Answering, NoMatch, RewrittenQuery, rewrite, rewritings
from rollview.matching.rewrite import GROUPS_SUFFIX
from rollview.publish.workplace import Workplace
from rollview.relations import references
from rollview.relations.plans import known_as
from rollview.results import Considered
from rollview.routing.cost import JOB_SECONDS, Costs, RelationCost
from rollview.routing.freshness import Staleness, oldest_allowed
from rollview.routing.question import NotCompared, Question, question
from rollview.routing.views import answering, expanding

_MOST_TRIED = 12
"""Views that answer, of which combinations are weighed."""


@dataclass(frozen=True, slots=True)
class Route:
    """``asked``: None where the author's text is run as it stands. ``readings``: of all that is read, at ``csn``."""

    csn: Csn
    newest: Csn
    asked: Question | None
    rewritten: RewrittenQuery | None
    readings: tuple[RelationCost, ...]
    considered: tuple[Considered, ...]
    read_tables: frozenset[str] = frozenset()
    """All tables that the answer rests on."""

    @property
    def seconds(self) -> float:
        return JOB_SECONDS + sum(one.seconds for one in self.readings)


@dataclass(frozen=True, slots=True)
class Wish:
    """``at``: exactly this csn; else the newest, or as old as ``bound`` allows."""

    at: Csn | None = None
    bound: Staleness | None = None
    rewrite: Rewrite = Rewrite.AUTO


def route(place: Workplace, query: exp.Query, wish: Wish) -> Route:
    snapshot = place.snapshot() if wish.at is None else place.snapshot().at(wish.at)
    named = tuple(dict.fromkeys(table.name for table in references.free_tables(query, outside=True)))
    names = tuple(relation.name for name in named if (relation := snapshot.find(name)) is not None)
    csns = _csns(place.catalog, snapshot, wish, names)
    costs = Costs(snapshot, place.data, place.catalog.changes)
    return _Choice(snapshot, costs, names, csns).made(query, wish)


def _csns(catalog: Catalog, snapshot: Snapshot, wish: Wish, names: Sequence[str]) -> tuple[Csn, ...]:
    """Those at which the answer may be, newest first: the newest, and those at which views stand."""
    newest = snapshot.moment.csn
    if wish.at is not None:
        return (wish.at,)
    # Views are taken as they are defined now, so the answer is not from before that.
    versions = (version for one in snapshot.relations.values() for version in one.versions)
    defined = max((version.csn for version in versions if not version.pending), default=0)
    oldest = max(defined, oldest_allowed(catalog, snapshot, wish.bound, names))
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
    costs: Costs
    names: tuple[str, ...]
    csns: tuple[Csn, ...]

    def made(self, query: exp.Query, wish: Wish) -> Route:
        known = {name.lower(): known_as(relation) for name, relation in self.snapshot.relations.items()}
        try:
            asked = question(query, known, expanding(self.snapshot)) if wish.rewrite is not Rewrite.OFF else None
            whole = None
        except NotCompared as reason:
            asked, whole = None, str(reason)
        found, reasons = self._answering(asked) if asked is not None else ([], {})
        routes = list(self._rewritten(asked, found))
        if wish.rewrite is not Rewrite.REQUIRE:
            routes += self._plain()
        elif not found:
            raise _not_answered(reasons if whole is None else {"the query": whole})
        if not routes:
            raise self._out_of_reach()
        best = min(routes, key=lambda one: (one.seconds, -one.csn))
        return self._told(best, found, reasons, whole)

    def _answering(self, asked: Question) -> tuple[list[Answering], dict[str, str]]:
        found: list[Answering] = []
        reasons: dict[str, str] = {}
        tables = {place.leaf.relation for place in asked.flat.places}
        for relation in self.snapshot.relations.values():
            if relation.kind is RelationKind.VIEW and tables & self._tables(relation.name):
                view = answering(self.snapshot, relation)
                try:
                    if isinstance(view, str):
                        raise NoMatch(view)
                    next(rewritings(asked.flat, view))
                    found.append(view)
                except NoMatch as refusal:
                    reasons[relation.name] = str(refusal)
        return found, reasons

    def _tables(self, view: str) -> set[str]:
        return {*self._tables_of(view), view}

    def _tables_of(self, name: str) -> Collection[str]:
        relation = self.snapshot.get(name)
        return self.snapshot.tables_below(relation) if relation.kind is RelationKind.VIEW else (name,)

    def _plain(self) -> Iterator[Route]:
        """The author's text over the relations that it names."""
        for csn in self.csns:
            readings = self.costs.all(self.names, csn)
            if readings is not None:
                yield Route(csn, self.snapshot.moment.csn, None, None, readings, ())

    def _rewritten(self, asked: Question | None, found: Sequence[Answering]) -> Iterator[Route]:
        for first in found[:_MOST_TRIED]:
            assert asked is not None
            made, _ = rewrite(asked.flat, [first, *(view for view in found if view is not first)])
            names = [name.removesuffix(GROUPS_SUFFIX) for name in made.reads]
            for csn in self.csns:
                readings = self.costs.all(names, csn)
                if readings is not None:
                    yield Route(csn, self.snapshot.moment.csn, asked, made, readings, ())

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


def _not_answered(reasons: Mapping[str, str]) -> UsageError:
    why = "; ".join(f"{name}: {reason}" for name, reason in reasons.items()) or "there is none over its tables"
    return UsageError(f"No view answers the query: {why}.", hint="With 'auto' it is read from tables.")
