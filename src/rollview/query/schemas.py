"""Which columns tables and views have had, and at which csns. No Spark."""

from __future__ import annotations

from collections.abc import Sequence

from rollview.catalog import Catalog, ColumnVersion
from rollview.catalog.schemas import columns_at
from rollview.core.names import same
from rollview.errors import NotFound
from rollview.relations.points import Point, resolve
from rollview.results import ColumnEntry, SchemaAt, SchemaLog


def schema_log(catalog: Catalog, name: str | None) -> SchemaLog:
    """``name``: only the relations that ever had this name."""
    versions = catalog.columns()
    if name is None:
        return SchemaLog(tuple(map(_entry, versions)))
    ids = {one.relation_id for one in versions if same(one.relation, name)}
    if not ids:
        raise NotFound("table or view", name)
    return SchemaLog(tuple(_entry(one) for one in versions if one.relation_id in ids))


def schema_at(catalog: Catalog, name: str, at: Point) -> SchemaAt:
    csn = resolve(catalog, at)
    versions = catalog.columns()
    found = columns_at([one for one in versions if same(one.relation, name)], csn)
    if not found:
        raise NotFound(f"table or view at csn {csn} named", name, hint=_known(versions, name))
    return SchemaAt(found[0].relation, csn, tuple(map(_entry, found)))


def _known(versions: Sequence[ColumnVersion], name: str) -> str | None:
    """From when to when there was one of that name."""
    known = [one for one in versions if same(one.relation, name)]
    if not known:
        return None
    ends = [one.until for one in known if one.until is not None]
    before = f" and before {max(ends)}" if len(ends) == len(known) else ""
    return f"It is known from csn {min(one.since for one in known)} on{before}."


def _entry(one: ColumnVersion) -> ColumnEntry:
    called = (one.relation, one.id, one.column.name, one.column.type, one.since, one.until)
    return ColumnEntry(*called, one.new_relation, one.new_name, one.column.fill)
