"""A source that the catalog has, opened with its tables as they were captured last."""

from __future__ import annotations

from collections.abc import Mapping

from rollview.catalog import Catalog, Relation, SourceRecord
from rollview.sources.kinds import open_known
from rollview.sources.protocol import Source, SourceTable
from rollview.sources.settings import SourceSettings


def open_recorded(catalog: Catalog, record: SourceRecord) -> Source:
    snapshot = catalog.snapshot()
    relations = {table.remote: snapshot.get(table.relation) for table in record.tables}
    settings = SourceSettings.from_json(record.settings)
    return open_known(record.name, settings, record.memory, tables_of(relations))


def tables_of(relations: Mapping[str, Relation]) -> dict[str, SourceTable]:
    """Captured relations as the source's own tables."""
    return {remote: SourceTable(remote, r.schema, r.constraints) for remote, r in relations.items()}
