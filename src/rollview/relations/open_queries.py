"""Views that are propagated table by table over tables that are asked for: RollingPropagate, a query at a time.

Law (Salem et al., *How To Roll a Join*, figure 10, corrected): what a process has to know to go on is how far the
changes of each table are in the delta, and the queries that brought them there and that others still overlap. Both are
in the catalog, published with the rows that they gave. A view that has begun so goes on so until its tables are at one
csn; one that goes by boxes likewise.
"""

from __future__ import annotations

from collections.abc import Mapping

from rollview.algebra.natural_join import NaturalJoin, natural_join
from rollview.algebra.routes import NotAskableError
from rollview.algebra.view import ViewPlan
from rollview.catalog import OpenQueries, Relation, Snapshot
from rollview.compensate.rolling import Execute, ForwardQuery, Rolling
from rollview.core.interval import Csn
from rollview.relations.algorithm import sources_of
from rollview.relations.plans import plan_of
from rollview.relations.rolling import is_uneven, places_of, turns_of
from rollview.relations.weak import is_weak


def goes_by_queries(snapshot: Snapshot, view: Relation) -> bool:
    """Whether the next step of a view that goes table by table is a propagation query on tables as they are."""
    if is_uneven(snapshot, view):
        return any(place.queries is not None for place in view.places.values())
    if turns_of(view) is None or is_weak(view):
        return False
    asked = all(not snapshot.get(table).is_kept for table in view.depends_on)
    return asked and find_join(snapshot, plan_of(snapshot, view)) is not None


def find_join(snapshot: Snapshot, plan: ViewPlan) -> NaturalJoin | None:
    """The view as the paper writes it; None if it has no such form, or a table has no source."""
    try:
        return natural_join(plan, sources_of(snapshot, plan))
    except NotAskableError:
        return None


def newest_seen(snapshot: Snapshot, view: Relation) -> Csn:
    """The last csn that a table has come to, or that a query saw which is not compensated: whoever brings all tables to
    one csn has to go that far, and whoever runs a query has to see that much."""
    seen = [csn for place in view.places.values() for own in (place.queries or {}).values() for _, _, csn in own]
    return max([*places_of(snapshot, view).values(), *seen], default=0)


def resumed(snapshot: Snapshot, view: Relation, join: NaturalJoin, execute: Execute) -> Rolling:
    """The process as the catalog knows it."""
    places = places_of(snapshot, view)
    forward = [places[join.tables[one.name].relation] for one in join.view.occurrences]
    queries = [_queries(view, join, one.name) for one in join.view.occurrences]
    return Rolling(len(forward), execute, forward=forward, queries=queries)


def _queries(view: Relation, join: NaturalJoin, occurrence: str) -> list[ForwardQuery]:
    place = view.places.get(join.tables[occurrence].relation)
    known = {} if place is None or place.queries is None else place.queries
    return [ForwardQuery(*map(int, one)) for one in known.get(occurrence, ())]


def recorded(join: NaturalJoin, rolling: Rolling) -> Mapping[str, OpenQueries]:
    """The same, for the catalog."""
    found: dict[str, dict[str, list[list[Csn]]]] = {table.relation: {} for table in join.tables.values()}
    for one, own in zip(join.view.occurrences, rolling.queries, strict=True):
        told = [[int(query.after), int(query.through), int(query.seen)] for query in own]
        found[join.tables[one.name].relation][one.name] = told
    return found
