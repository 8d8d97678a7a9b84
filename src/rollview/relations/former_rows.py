"""Rows as of a csn, of tables by the names and columns that they had then."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rollview.catalog import Catalog, Relation, RelationKind, Snapshot
from rollview.core.interval import Csn
from rollview.errors import NotFound
from rollview.relations.former import altered_since, check_kept, tables_at
from rollview.relations.reader import Reader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def snapshot_at(catalog: Catalog, snapshot: Snapshot, csn: Csn) -> Snapshot:
    """The snapshot with local tables as they were at a csn; itself, if none was altered since."""
    return tables_at(snapshot, catalog.columns(), csn) if altered_since(snapshot, csn) else snapshot


def rows_at(catalog: Catalog, reader: Reader, name: str, csn: Csn) -> DataFrame:
    then = snapshot_at(catalog, reader.snapshot, csn)
    if then is reader.snapshot:
        return reader.rows(reader.snapshot.get(name).name, csn)
    relation = named_then(reader.snapshot, then, name, csn)
    if relation.kind is RelationKind.VIEW:
        return reader.rows(relation.name, csn)
    check_kept(relation, csn)
    return Reader(reader.spark, reader.root, then, reader.meter).rows(relation.name, csn)


def named_then(now: Snapshot, then: Snapshot, name: str, csn: Csn) -> Relation:
    """The relation that had the name at the csn."""
    found = then.find(name)
    if found is not None:
        return found
    present = now.get(name)
    former = next((one.name for one in then.relations.values() if one.id == present.id), None)
    hint = f"It was called '{former}' then." if former is not None else f"It is there from csn {present.created} on."
    raise NotFound(f"table or view at csn {csn} named", name, hint=hint)
