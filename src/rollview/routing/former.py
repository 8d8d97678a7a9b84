"""Queries as of a csn at which tables had other names or columns.

Law: the author's text is run over the tables as they were then. No view answers that the text does not name, because
definitions use other names.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from sqlglot import exp

from rollview.catalog import Relation, RelationKind, Snapshot
from rollview.costs.reading import WayToRead
from rollview.engine.failures import users_query_failures
from rollview.publish.workplace import Workplace
from rollview.relations import references
from rollview.relations.former_rows import rows_at, snapshot_at
from rollview.relations.points import Point, resolve
from rollview.results import Answer, Considered
from rollview.routing.freshness import found_valid
from rollview.routing.residual import ResidualReader


def of_former_columns(place: Workplace, tree: exp.Query, as_of: Point | None, *, allow_unsafe: bool) -> Answer | None:
    """None if what the query names is now as it was then."""
    if as_of is None or not any(table.layouts for table in place.snapshot().tables()):
        return None
    reader = ResidualReader(place.spark, place.data, place.snapshot(), place.catalog.changes)
    names = {one.name for one in references.free_tables(tree, outside=True)}
    csn = resolve(place.catalog, as_of, *(one.name for name in names if (one := reader.snapshot.find(name))))
    then = snapshot_at(place.catalog, reader.snapshot, csn)
    if all(then.find(name) is reader.snapshot.find(name) for name in names):
        return None
    ids = {one.id for name in names if (one := then.find(name)) is not None}
    read = [relation for relation in reader.snapshot.relations.values() if relation.id in ids]
    tables = {name for one in read for name in _tables(reader.snapshot, one)}
    with users_query_failures():
        rows = references.run(
            place.spark, tree, lambda name: rows_at(place.catalog, reader, name, csn), outside=allow_unsafe
        )
    valid, behind = found_valid(place.catalog, reader.snapshot, tables, csn)
    altered = (layout.csn - 1 for name in tables for layout in reader.snapshot.get(name).layouts if layout.csn > csn)
    valid = replace(valid, through=min((valid.through, *altered)))
    named = tuple(Considered(one.name, True, csn, WayToRead.ROWS, 0.0, "named by the query") for one in read)
    return Answer(csn, valid, behind, named, 0.0, rows)


def _tables(snapshot: Snapshot, relation: Relation) -> Collection[str]:
    return snapshot.tables_below(relation) if relation.kind is RelationKind.VIEW else (relation.name,)
