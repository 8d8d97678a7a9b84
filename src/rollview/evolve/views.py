"""Which views go on when columns of a table change, and which stop.

Law: a view sees a table in the columns, and under the names, that it had when the view was defined. So a new name of a
column, and a new column, change nothing for it; a column that is gone stops the views that name it, and those above.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rollview.algebra.used import columns_used
from rollview.catalog import Relation, Snapshot
from rollview.core.states import OnSchemaChange, ViewState
from rollview.errors import InUse, UsageError
from rollview.relations.former import seen_schema
from rollview.relations.plans import plan_of

ON_SCHEMA_CHANGE = "rollview.on_schema_change"
"""A view's property: whether it follows a change of what it reads, waits for a decision, or forbids it."""


@dataclass(frozen=True, slots=True)
class AffectedViews:
    """``stopped``: each after what it reads. ``why``: the first reason."""

    stopped: tuple[str, ...] = ()
    why: str = ""


def on_schema_change(view: Relation) -> OnSchemaChange:
    assert view.definition is not None
    return parse_choice(view.definition.properties.get(ON_SCHEMA_CHANGE, OnSchemaChange.FOLLOW))


def parse_choice(text: str) -> OnSchemaChange:
    try:
        return OnSchemaChange(text.strip().lower())
    except ValueError:
        known = ", ".join(f"'{one}'" for one in OnSchemaChange)
        raise UsageError(f"'{ON_SCHEMA_CHANGE}' cannot be '{text}'.", hint=f"Choose one of {known}.") from None


def places_used(snapshot: Snapshot, view: Relation, table: Relation) -> frozenset[str]:
    """The columns of a table that a view names, by their names in files."""
    if view.state is ViewState.SCHEMA_CHANGED:
        return frozenset()
    used = columns_used(plan_of(snapshot, view).outline.resolved).get(table.name.lower(), frozenset())
    seen = seen_schema(view, table) if table.layouts else table.schema
    return frozenset(column.stored for column in seen if column.name.lower() in used)


def views_affected(
    snapshot: Snapshot, table: Relation, gone: Iterable[str], renamed: Iterable[str], wider: Iterable[str]
) -> AffectedViews:
    """Of views that name one of the columns, told by their names in files. Refuses what a view forbids."""
    lost, called, grown = set(gone), set(renamed), set(wider)
    stopped: dict[str, str] = {}
    for view in snapshot.readers(table.name):
        used = places_used(snapshot, view, table)
        if used & grown:
            raise InUse("column", _first(table, used & grown), (view.name,))
        if not used & (lost | called):
            continue
        choice = on_schema_change(view)
        if choice is OnSchemaChange.STOP:
            raise UsageError(
                f"View '{view.name}' names column '{_first(table, used & (lost | called))}' of table '{table.name}', "
                f"and says '{ON_SCHEMA_CHANGE}' = 'stop'.",
                hint="Change the view first.",
                views=[view.name],
            )
        if used & lost:
            stopped[view.name] = f"View '{view.name}' names what is gone."
        elif choice is OnSchemaChange.ASK:
            stopped[view.name] = f"View '{view.name}' asks before it follows: define it anew with CREATE OR REPLACE."
    names = {name for one in stopped for name in (one, *(upper.name for upper in snapshot.above(one)))}
    ordered = tuple(view.name for view in snapshot.views() if view.name in names and not _is_stopped(view))
    return AffectedViews(ordered, next(iter(stopped.values()), ""))


def _is_stopped(view: Relation) -> bool:
    return view.state is ViewState.SCHEMA_CHANGED


def _first(table: Relation, places: Iterable[str]) -> str:
    return min(column.name for column in table.schema if column.stored in set(places))
