"""Rows and changes of tables and views, as users ask for them."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from rollview.capture.asking import SourceLookup
from rollview.core.interval import Interval
from rollview.errors import UsageError
from rollview.publish.workplace import Workplace
from rollview.query.verify import verify
from rollview.relations.plans import check_reachable, high_water_mark
from rollview.relations.points import Point, published, resolve
from rollview.results import Verification

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def read(place: Workplace, name: str, as_of: Point | None) -> DataFrame:
    reader = place.reader()
    relation = reader.snapshot.get(name)
    at = published(reader.snapshot, relation) if as_of is None else resolve(place.catalog, as_of, relation.name)
    return reader.rows(relation.name, at)


def delta(place: Workplace, name: str, after: Point, through: Point | None) -> DataFrame:
    reader = place.reader()
    relation = reader.snapshot.get(name)
    begin = resolve(place.catalog, after, name)
    end = high_water_mark(reader.snapshot, relation) if through is None else resolve(place.catalog, through, name)
    if begin > end:
        raise UsageError(f"({begin}, {end}] is not an interval.", hint="Give the smaller csn as --after.")
    for csn in (begin, end):
        check_reachable(reader.snapshot, relation, csn)
    return reader.changes(relation.name, Interval(begin, end))


def verify_view(place: Workplace, name: str, at: Point | None, *, ask_sources: bool = False) -> Verification:
    """``ask_sources``: tables that are not here are read once, whole, at their sources."""
    reader = place.reader()
    view = reader.snapshot.view(name)
    csn = published(reader.snapshot, view) if at is None else resolve(place.catalog, at, view.name)
    with closing(SourceLookup(place.catalog, place.data)) as sources:
        if ask_sources:
            below = map(reader.snapshot.get, reader.snapshot.tables_below(view))
            missing = [table for table in below if not table.is_kept or table.readable_from > csn]
            reader.stand_ins = {table.name: sources.stream(table, csn) for table in missing}
            sources.release()
        return verify(reader, view.name, csn)
