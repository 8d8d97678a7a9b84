"""A source that the catalog has, opened with its tables as they were captured last."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollview.catalog import Catalog, Lease, Relation, SourceRecord
from rollview.errors import LostLease
from rollview.sources.kinds import open_known
from rollview.sources.protocol import Source, SourceTable
from rollview.sources.settings import SourceSettings
from rollview.sources.space import Space


def open_recorded(
    catalog: Catalog,
    record: SourceRecord,
    lease: Lease | None = None,
    space: Space | None = None,
    *,
    as_it_is: bool = False,
) -> Source:
    """``lease``: on the source; without it the source may be asked, and nothing may be taken away there. ``space``:
    where it may put rows that are too many for memory. ``as_it_is``: a user has asked for it as it is now."""

    def fence() -> None:
        if lease is None:
            raise LostLease(f"source '{record.name}'")
        catalog.verify(lease)

    def keep(memory: Mapping[str, Any]) -> None:
        fence()
        with catalog.write(lease) as writer:
            writer.sources.set_memory(record.name, memory)

    snapshot = catalog.snapshot()
    relations = {table.remote: snapshot.get(table.relation) for table in record.tables}
    settings = SourceSettings.from_json(record.settings)
    return open_known(record.name, settings, record.memory, tables_of(relations), fence, space, keep, as_it_is=as_it_is)


def tables_of(relations: Mapping[str, Relation]) -> dict[str, SourceTable]:
    """Captured relations as the source's own tables."""
    return {remote: SourceTable(remote, r.schema, r.constraints) for remote, r in relations.items()}
