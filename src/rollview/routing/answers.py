"""Running a query along its route."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from rollview.algebra.expressions import column, named, select, table
from rollview.algebra.text import parse_one
from rollview.algebra.words import spelled
from rollview.catalog import RelationKind
from rollview.core.names import quoted
from rollview.core.states import Rewrite
from rollview.costs.reading import WayToRead
from rollview.engine.binding import run_query
from rollview.engine.failures import users_query_failures
from rollview.errors import OutOfReach, SqlError, UsageError
from rollview.matching.rewrite import GROUPS_SUFFIX
from rollview.publish.workplace import Workplace
from rollview.relations import references
from rollview.relations.points import Point, resolve
from rollview.results import Answer
from rollview.routing.fetching import AnswerReading, hold, leave, release_with
from rollview.routing.former import of_former_columns
from rollview.routing.freshness import Staleness, found_valid, moment_of_asking
from rollview.routing.kept import AnswerKey, find_kept, forget, keep
from rollview.routing.question import Question
from rollview.routing.reading import AuthorsColumns, authors_columns
from rollview.routing.residual import ResidualReader
from rollview.routing.route import Route, RouteWish, check_named, named_in, not_answered, route
from rollview.store.writing import BOUND

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ANSWER = "_rv_answer"


def ask(
    place: Workplace,
    query: str | exp.Query,
    *,
    as_of: Point | None = None,
    max_staleness: Staleness | None = None,
    rewrite: str = Rewrite.AUTO,
    allow_unsafe: bool = False,
) -> Answer:
    """The rows of a query at one csn, and how they were found. The rows are read when they are fetched."""
    tree = _query(query)
    former = of_former_columns(place, tree, as_of, allow_unsafe=allow_unsafe) if max_staleness is None else None
    if former is not None:
        return former
    wish = _Wished(place, tree, as_of, max_staleness, rewrite, allow_unsafe)
    return _asked(wish, lambda: _asked(wish, None))


@dataclass(frozen=True, slots=True)
class _Wished:
    place: Workplace
    tree: exp.Query
    as_of: Point | None
    bound: Staleness | None
    rewrite: str
    allow_unsafe: bool

    def route(self) -> Route:
        return _route(self.place, self.tree, self.as_of, self.bound, self.rewrite, outside=self.allow_unsafe)

    @property
    def key(self) -> AnswerKey | None:
        """None where what was found once is not looked for again."""
        text = spelled(self.tree)
        asked_now = self.as_of is None and self.bound is None and not self.allow_unsafe
        return (text, Rewrite(self.rewrite)) if text and asked_now and self.rewrite in set(Rewrite) else None


def _asked(wish: _Wished, again: Callable[[], Answer] | None) -> Answer:
    """``again``: for when what is read goes away meanwhile."""
    return _as_before(wish, again) or _anew(wish, again)


def _as_before(wish: _Wished, again: Callable[[], Answer] | None) -> Answer | None:
    """None unless the same was asked before, and nothing has moved since."""
    place, key = wish.place, wish.key
    kept = None if key is None else find_kept(place, key)
    if key is None or kept is None:
        return None
    number, snapshot = hold(place.catalog, kept.found), place.snapshot()
    if snapshot != kept.snapshot:
        leave(place.catalog, number)
        forget(place, key)
        return None
    found, rows = replace(kept.found, asked_at=moment_of_asking()), kept.rows.again()
    release_with(rows, place.catalog, number)
    read = AnswerReading(place, found, snapshot.at(found.csn), number, again, kept.planned)
    return read.of(_answer(place, found, rows))


def _anew(wish: _Wished, again: Callable[[], Answer] | None) -> Answer:
    place, found = wish.place, wish.route()
    number = hold(place.catalog, found)
    # After the hold: nothing that is in here goes away.
    snapshot = place.snapshot()
    reader = ResidualReader(place.spark, place.data, snapshot.at(found.csn), place.catalog.changes)
    try:
        rows = rows_along(reader, wish.tree, found, allow_unsafe=wish.allow_unsafe)
    except BaseException as error:
        leave(place.catalog, number)
        # Between finding the way and going it, a csn may have gone out of reach.
        if isinstance(error, OutOfReach) and again is not None and wish.as_of is None:
            return again()
        raise
    if rows is None:
        leave(place.catalog, number)
        if wish.rewrite == Rewrite.REQUIRE:
            raise not_answered({}, "Spark reads its text otherwise")
        return _asked(replace(wish, rewrite=Rewrite.OFF), again)
    kept = None if wish.key is None else keep(place, wish.key, found, snapshot, rows)
    release_with(rows, place.catalog, number)
    read = AnswerReading(place, found, reader.snapshot, number, again, kept.planned if kept is not None else None)
    return read.of(_answer(place, found, rows))


def rows_along(
    reader: ResidualReader, tree: exp.Query, found: Route, *, allow_unsafe: bool = False
) -> DataFrame | None:
    """The query's rows, read as the route says; None where views do not answer it after all, because Spark reads its
    text otherwise."""

    def read(name: str) -> DataFrame:
        return _read(reader, reader.snapshot.get(name).name, found)

    with users_query_failures():
        if found.rewritten is not None:
            return _routed(reader, tree, found)
        return references.run(reader.spark, tree, read, outside=allow_unsafe)


def explain(
    place: Workplace,
    query: str | exp.Query,
    *,
    as_of: Point | None = None,
    max_staleness: Staleness | None = None,
    rewrite: str = Rewrite.AUTO,
) -> Answer:
    """The same without rows. Starts no Spark."""
    return _answer(place, _route(place, _query(query), as_of, max_staleness, rewrite), None)


def _query(query: str | exp.Query) -> exp.Query:
    tree = parse_one(query) if isinstance(query, str) else query
    if not isinstance(tree, exp.Query):
        raise SqlError("Expected a query.", hint="Statements that change something go to sql().")
    return tree


def _route(
    place: Workplace,
    tree: exp.Query,
    as_of: Point | None,
    bound: Staleness | None,
    rewrite: str,
    *,
    outside: bool = False,
) -> Route:
    """``outside``: what the query names need not be here."""
    if rewrite not in set(Rewrite):
        raise UsageError(f"'{rewrite}' is no way to rewrite.", hint="Choose auto, off or require.")
    if as_of is not None and bound is not None:
        raise UsageError("An answer as of one point has no staleness.", hint="Give one of the two.")
    snapshot = place.snapshot()
    # What is not here now may have been then.
    if as_of is None and not outside:
        check_named(snapshot, tree)
    at = None if as_of is None else resolve(place.catalog, as_of, *named_in(snapshot, tree))
    return route(place, snapshot, tree, RouteWish(at, bound, Rewrite(rewrite)))


def _routed(reader: ResidualReader, tree: exp.Query, found: Route) -> DataFrame | None:
    """None where Spark reads the author's text otherwise than it was read here."""
    asked, rewritten = found.asked, found.rewritten
    assert asked is not None
    assert rewritten is not None
    author = authors_columns(reader.spark, tree, reader.snapshot, asked)
    if author is None:
        return None
    inputs = {name: _read(reader, name, found) for name in rewritten.reads}
    if found.rows <= BOUND and all(one.way is WayToRead.EXTENT for one in found.readings):
        # One task groups so few stored rows sooner than a shuffle begins.
        inputs = {name: data.coalesce(1) for name, data in inputs.items()}
    return _as_written(_above(run_query(reader.spark, rewritten.query, inputs), asked), author)


def _as_written(rows: DataFrame, author: AuthorsColumns) -> DataFrame:
    fields = rows.schema.fields
    if all(
        (field.name, field.dataType) == wanted
        for field, wanted in zip(fields, zip(author.names, author.types, strict=True), strict=True)
    ):
        return rows
    wanted = zip(rows.columns, author.names, author.types, strict=True)
    return rows.select(*(rows[quoted(own)].cast(type_).alias(name) for own, name, type_ in wanted))


def _read(reader: ResidualReader, name: str, found: Route) -> DataFrame:
    relation = name.removesuffix(GROUPS_SUFFIX)
    anew = found.way_of(relation) is WayToRead.RECOMPUTED
    if reader.snapshot.get(relation).kind is RelationKind.TABLE or relation == name:
        return reader.recompute(relation, found.csn) if anew else reader.rows(relation, found.csn)
    return reader.groups_anew(relation, found.csn) if anew else reader.groups(relation, found.csn)


def _above(rows: DataFrame, asked: Question) -> DataFrame:
    if not asked.above:
        return rows
    query = select(*(named(column(None, name), name) for name in rows.columns)).from_(table(_ANSWER))
    for part, clause in asked.above.items():
        query.set(part, clause.copy())
    return run_query(rows.sparkSession, query, {_ANSWER: rows})


def _answer(place: Workplace, found: Route, rows: DataFrame | None) -> Answer:
    valid, behind = found_valid(place.catalog, found.snapshot, found.read_tables, found.csn, found.asked_at)
    return Answer(found.csn, valid, behind, found.considered, found.seconds, rows)
