"""How far the tables of a view have come, where they do not go together."""

from __future__ import annotations

from rollview.catalog import Relation, RelationKind, Snapshot
from rollview.core.states import ViewState
from rollview.relations.rolling import is_uneven, places_of, turns_of
from rollview.results import TablePlace


def table_places(snapshot: Snapshot, view: Relation) -> tuple[TablePlace, ...]:
    """Nothing for a view whose tables go together, or of which nothing can be planned."""
    turns = turns_of(view) if view.kind is RelationKind.VIEW else None
    if view.state is ViewState.SCHEMA_CHANGED:
        return ()
    if turns is None and not is_uneven(snapshot, view):
        return ()
    said = {table: cadence.words for table, cadence in (turns or {}).items()}
    return tuple(
        TablePlace(table, csn, said.get(table.lower(), "when it is refreshed"))
        for table, csn in places_of(snapshot, view).items()
    )
