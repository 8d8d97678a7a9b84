"""The definitions that a view has had."""

from __future__ import annotations

from rollview.catalog import Catalog
from rollview.results import ViewDefinition, ViewLog


def view_log(catalog: Catalog, name: str) -> ViewLog:
    versions = catalog.definitions(name)
    told = (
        ViewDefinition(one.csn, one.recorded, one.why, one.definition.query, one.schema.names, one.pending)
        for one in versions
    )
    return ViewLog(catalog.snapshot().view(name).name, tuple(told))
