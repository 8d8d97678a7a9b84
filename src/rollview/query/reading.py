"""Rows and changes of tables and views, as users ask for them."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rollview.capture.asking import SourceLookup
from rollview.catalog import Relation, RelationKind, Snapshot
from rollview.core.interval import Csn, Interval
from rollview.errors import UsageError
from rollview.publish.workplace import Workplace
from rollview.query.places import table_places
from rollview.query.verify import verify, verify_vector
from rollview.relations.former import sees_former_names
from rollview.relations.former_rows import rows_at, snapshot_at
from rollview.relations.plans import check_reachable, high_water_mark
from rollview.relations.points import Point, published, resolve
from rollview.relations.reader import Reader
from rollview.relations.vector import rows_at_vector
from rollview.relations.weak import is_weak, refuse_csn, vector_of
from rollview.results import TablePlace, Verification

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class RowsRead:
    """``places``: how far each table is in them, of a view that is weakly consistent; nothing where all are at one
    csn."""

    frame: DataFrame
    places: tuple[TablePlace, ...] = ()


def read(place: Workplace, name: str, as_of: Point | None) -> RowsRead:
    reader = place.reader()
    if as_of is not None:
        return RowsRead(_rows_as_of(place, reader, name, as_of))
    relation = reader.snapshot.get(name)
    if is_weak(relation):
        return RowsRead(rows_at_vector(reader, relation), table_places(reader.snapshot, relation))
    return RowsRead(reader.rows(relation.name, published(reader.snapshot, relation)))


def _rows_as_of(place: Workplace, reader: Reader, name: str, as_of: Point) -> DataFrame:
    now = _now(reader.snapshot, name)
    for one in now:
        refuse_csn(reader.snapshot.get(one), "be read as of a csn")
    return rows_at(place.catalog, reader, name, resolve(place.catalog, as_of, *now))


def _now(snapshot: Snapshot, name: str) -> tuple[str, ...]:
    relation = snapshot.find(name)
    return () if relation is None else (relation.name,)


def layouts_over(place: Workplace, name: str, after: Point, through: Point) -> tuple[Interval, ...]:
    """The interval, cut so that a view has the same definition at the csns of each piece."""
    view = place.snapshot().view(name)
    begin, end = (resolve(place.catalog, point, view.name) for point in (after, through))
    _check_order(begin, end)
    ends = [*(one.csn - 1 for one in view.versions[1:] if begin < one.csn - 1 < end), end]
    return tuple(Interval(*piece) for piece in zip([begin, *ends], ends, strict=False))


def delta(place: Workplace, name: str, after: Point, through: Point | None) -> DataFrame:
    """In the columns of the interval's end."""
    reader = place.reader()
    named = _now(reader.snapshot, name)
    if through is not None and (not named or reader.snapshot.get(name).kind is RelationKind.TABLE):
        then = snapshot_at(place.catalog, reader.snapshot, resolve(place.catalog, through, *named))
        reader = Reader(reader.spark, reader.root, then, reader.meter)
    relation = reader.snapshot.get(name)
    refuse_csn(relation, "tell changes by csns")
    begin = resolve(place.catalog, after, *named)
    end = high_water_mark(reader.snapshot, relation) if through is None else resolve(place.catalog, through, *named)
    _check_order(begin, end)
    for csn in (begin, end):
        check_reachable(reader.snapshot, relation, csn)
    return reader.changes(relation.name, Interval(begin, end))


def _check_order(begin: Csn, end: Csn) -> None:
    if begin > end:
        raise UsageError(f"({begin}, {end}] is not an interval.", hint="Give the smaller csn as --after.")


def verify_view(place: Workplace, name: str, at: Point | None, *, ask_sources: bool = False) -> Verification:
    """``ask_sources``: tables that are not here are read once, whole, at their sources."""
    reader = place.reader()
    view = reader.snapshot.view(name)
    if at is not None:
        refuse_csn(view, "be compared at a csn")
    csn = published(reader.snapshot, view) if at is None else resolve(place.catalog, at, view.name)
    vector = vector_of(reader.snapshot, view) if is_weak(view) else {}
    with closing(SourceLookup(place.catalog, place.data)) as sources:
        if ask_sources:
            check_source_names(reader.snapshot, view)
            below = map(reader.snapshot.get, reader.snapshot.tables_below(view))
            places = [(table, vector.get(table.name, csn)) for table in below]
            missing = [(table, at) for table, at in places if not table.is_kept or table.readable_from > at]
            reader.stand_ins = {table.name: sources.stream(table, at) for table, at in missing}
            sources.release()
        return verify_vector(reader, view.name) if vector else verify(reader, view.name, csn)


def check_source_names(snapshot: Snapshot, view: Relation) -> None:
    """Rows that a source gives have the names that its columns have now."""
    if sees_former_names(snapshot, view):
        raise UsageError(
            f"View '{view.name}' knows columns by names that they had before, and sources give rows by those of now.",
            hint=f"Create view '{view.name}' anew with CREATE OR REPLACE MATERIALIZED VIEW.",
        )
