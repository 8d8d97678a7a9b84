"""Running a query along its route."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from rollview.algebra.expressions import column, identifier, named, select, table
from rollview.algebra.resolve import Known
from rollview.algebra.text import parse_one
from rollview.catalog import RelationKind, Snapshot
from rollview.core.states import Rewrite
from rollview.engine.binding import run_query
from rollview.engine.failures import users_query_failures
from rollview.errors import SqlError, UsageError
from rollview.matching.rewrite import GROUPS_SUFFIX
from rollview.propagate.reading import misread, unseen
from rollview.publish.workplace import Workplace
from rollview.relations import references
from rollview.relations.plans import known_as
from rollview.relations.points import Point, resolve
from rollview.results import Answer
from rollview.routing.cost import WayToRead
from rollview.routing.freshness import Staleness, found_valid
from rollview.routing.question import Question
from rollview.routing.residual import ResidualReader
from rollview.routing.route import Route, Wish, route

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
    found = _route(place, tree, as_of, max_staleness, rewrite)
    reader = ResidualReader(place.spark, place.data, place.snapshot().at(found.csn), place.catalog.changes)
    again = frozenset(one.relation for one in found.readings if one.way is WayToRead.RECOMPUTED)

    def read(name: str) -> DataFrame:
        relation = reader.snapshot.get(name).name
        return reader.recompute(relation, found.csn) if relation in again else reader.rows(relation, found.csn)

    with users_query_failures():
        routed = _routed(place, tree, found, reader) if found.rewritten is not None else None
        if routed is None and found.rewritten is not None:
            found = _route(place, tree, as_of, max_staleness, Rewrite.OFF)
        rows = routed if routed is not None else references.run(place.spark, tree, read, outside=allow_unsafe)
    return _answer(place, found, rows)


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


def _route(place: Workplace, tree: exp.Query, as_of: Point | None, bound: Staleness | None, rewrite: str) -> Route:
    if rewrite not in set(Rewrite):
        raise UsageError(f"'{rewrite}' is no way to rewrite.", hint="Choose auto, off or require.")
    if as_of is not None and bound is not None:
        raise UsageError("An answer as of one point has no staleness.", hint="Give one of the two.")
    names = [one.name for one in references.free_tables(tree, outside=True) if place.snapshot().find(one.name)]
    at = None if as_of is None else resolve(place.catalog, as_of, *names)
    return route(place, tree, Wish(at, bound, Rewrite(rewrite)))


def _routed(place: Workplace, tree: exp.Query, found: Route, reader: ResidualReader) -> DataFrame | None:
    """None where Spark reads the author's text otherwise than it was read here."""
    asked, rewritten = found.asked, found.rewritten
    assert asked is not None
    assert rewritten is not None
    author = _author(place, tree, reader.snapshot, asked)
    if author is None:
        return None
    inputs = {name: _read(reader, name, found) for name in rewritten.reads}
    rows = run_query(place.spark, rewritten.query, inputs)
    rows = _above(rows, asked)
    types = [field.dataType for field in author.schema]
    own = rows.columns
    return rows.select(*(rows[_quoted(name)].cast(type_) for name, type_ in zip(own, types, strict=True))).toDF(
        *author.columns
    )


def _author(place: Workplace, tree: exp.Query, snapshot: Snapshot, asked: Question) -> DataFrame | None:
    """The author's text, analysed over tables of which only the types are known."""
    known: list[Known] = [known_as(snapshot.get(one.name)) for one in asked.read.resolved.reads]
    tables = unseen(place.spark, known)
    bare = tree.copy()
    for part in asked.above:
        bare.set(part, None)
    author = references.run(place.spark, bare, lambda name: tables[f"{snapshot.get(name).name}@rows"])
    return None if misread(asked.read, author, tables) else author


def _read(reader: ResidualReader, name: str, found: Route) -> DataFrame:
    relation = name.removesuffix(GROUPS_SUFFIX)
    if reader.snapshot.get(relation).kind is RelationKind.TABLE or relation == name:
        return reader.rows(relation, found.csn)
    return reader.groups(relation, found.csn)


def _above(rows: DataFrame, asked: Question) -> DataFrame:
    if not asked.above:
        return rows
    query = select(*(named(column(None, name), name) for name in rows.columns)).from_(table(_ANSWER))
    for part, clause in asked.above.items():
        query.set(part, clause.copy())
    return run_query(rows.sparkSession, query, {_ANSWER: rows})


def _quoted(name: str) -> str:
    return identifier(name).sql("spark")


def _answer(place: Workplace, found: Route, rows: DataFrame | None) -> Answer:
    valid, behind = found_valid(place.catalog, place.snapshot(), found.read_tables, found.csn)
    return Answer(found.csn, valid, behind, found.considered, found.seconds, rows)
