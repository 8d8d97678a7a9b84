"""Queries as of a csn at which tables had other names or columns.

Law: the author's text is run over the tables as they were then. No view answers that the text does not name, because
definitions use other names.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from rollview.catalog import Relation, RelationKind, Snapshot
from rollview.core.interval import Csn
from rollview.costs.reading import RelationCost, WayToRead
from rollview.engine.failures import users_query_failures
from rollview.publish.workplace import Workplace
from rollview.relations import references
from rollview.relations.former_rows import rows_at, snapshot_at
from rollview.relations.points import Point, resolve
from rollview.results import Answer, Considered
from rollview.routing.fetching import AnswerReading, hold, leave, release_with
from rollview.routing.freshness import found_valid, moment_of_asking
from rollview.routing.residual import ResidualReader
from rollview.routing.route import Route

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def of_former_columns(place: Workplace, tree: exp.Query, as_of: Point | None, *, allow_unsafe: bool) -> Answer | None:
    """None if what the query names is now as it was then."""
    if as_of is None:
        return None
    snapshot = place.snapshot()
    if not any(one.layouts for one in snapshot.relations.values()):
        return None
    names = {one.name for one in references.free_tables(tree, outside=True)}
    csn = resolve(place.catalog, as_of, *(one.name for name in names if (one := snapshot.find(name))))
    then = snapshot_at(place.catalog, snapshot, csn)
    if all(then.find(name) is snapshot.find(name) for name in names):
        return None
    ids = {one.id for name in names if (one := then.find(name)) is not None}
    found = _route(snapshot, csn, [relation for relation in snapshot.relations.values() if relation.id in ids])
    wish = _FormerWish(place, tree, allow_unsafe, found)
    return _asked(wish, lambda: _asked(wish, None))


@dataclass(frozen=True, slots=True)
class _FormerWish:
    place: Workplace
    tree: exp.Query
    allow_unsafe: bool
    found: Route


def _route(snapshot: Snapshot, csn: Csn, read: Sequence[Relation]) -> Route:
    tables = frozenset(name for one in read for name in _tables(snapshot, one))
    named = tuple(Considered(one.name, True, csn, WayToRead.ROWS, 0.0, "named by the query") for one in read)
    sizes = (sum(pin.rows for pin in one.pins.values()) for one in read)
    readings = tuple(RelationCost(one.name, WayToRead.ROWS, 0.0, rows) for one, rows in zip(read, sizes, strict=True))
    return Route(csn, snapshot, moment_of_asking(), None, None, readings, named, 0.0, tables)


def _asked(wish: _FormerWish, again: Callable[[], Answer] | None) -> Answer:
    """``again``: for when what is read goes away meanwhile."""
    place, found = wish.place, wish.found
    number = hold(place.catalog, found)
    # After the hold: nothing that is in here goes away.
    reader = ResidualReader(place.spark, place.data, place.snapshot(), place.catalog.changes)
    try:
        with users_query_failures():
            rows = references.run(
                place.spark,
                wish.tree,
                lambda name: rows_at(place.catalog, reader, name, found.csn),
                outside=wish.allow_unsafe,
            )
    except BaseException:
        leave(place.catalog, number)
        raise
    release_with(rows, place.catalog, number)
    reading = AnswerReading(place, found, reader.snapshot.at(found.csn), number, again)
    return reading.of(_answer(wish, rows))


def _answer(wish: _FormerWish, rows: DataFrame) -> Answer:
    found, snapshot = wish.found, wish.found.snapshot
    valid, behind = found_valid(wish.place.catalog, snapshot, found.read_tables, found.csn, found.asked_at)
    layouts = [layout for name in found.read_tables for layout in snapshot.get(name).layouts]
    altered = (layout.csn - 1 for layout in layouts if layout.csn > found.csn)
    valid = replace(valid, through=min((valid.through, *altered)))
    return Answer(found.csn, valid, behind, found.considered, found.seconds, rows)


def _tables(snapshot: Snapshot, relation: Relation) -> Collection[str]:
    return snapshot.tables_below(relation) if relation.kind is RelationKind.VIEW else (relation.name,)
