"""How far the tables of a view have come, where they do not go together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rollview.catalog import Relation, Snapshot
from rollview.core.lazy import lazy_module
from rollview.core.states import ViewState
from rollview.relations.cadence import CONSISTENCY, PROPAGATE
from rollview.results import TablePlace

if TYPE_CHECKING:
    from rollview.relations import rolling
else:
    rolling = lazy_module("rollview.relations.rolling")


def table_places(snapshot: Snapshot, view: Relation) -> tuple[TablePlace, ...]:
    """Nothing for a view whose tables go together, or of which nothing can be planned."""
    properties = view.definition.properties if view.definition is not None else {}
    if view.state is ViewState.SCHEMA_CHANGED or not (PROPAGATE in properties or view.places):
        return ()
    turns = rolling.turns_of(view)
    if turns is None and not rolling.is_uneven(snapshot, view):
        return ()
    said = {table: cadence.words for table, cadence in (turns or {}).items()}
    return tuple(
        TablePlace(table, csn, said.get(table.lower(), "when it is refreshed"))
        for table, csn in rolling.places_of(snapshot, view).items()
    )


def published_as(view: Relation) -> str | None:
    """``weak``, where readers of a view get each table at its own csn."""
    properties = view.definition.properties if view.definition is not None else {}
    return properties.get(CONSISTENCY)
