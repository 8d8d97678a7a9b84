"""Which views go on when columns of a table change, and which stop.

Law: a view sees a table in the columns, and under the names, that it had when the view was defined. So a new name of a
column, and a new column, change nothing for it; a column that is gone stops the views that name it, and those above.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from rollview.algebra.used import columns_used
from rollview.catalog import CatalogWriter, Definition, Relation, Snapshot
from rollview.core.interval import Csn
from rollview.core.schema import Schema
from rollview.core.states import OnSchemaChange, ViewState
from rollview.errors import InUse, UsageError
from rollview.relations.former import seen_schema
from rollview.relations.plans import plan_of

ON_SCHEMA_CHANGE = "rollview.on_schema_change"
"""A view's property: whether it follows a change of what it reads, waits for a decision, or forbids it."""


@dataclass(frozen=True, slots=True)
class AffectedViews:
    """``causes``: views that cannot simply go on, and why; ``asking``: those of them that wait for a decision.
    ``touched``: all of them and the views above, each after what it reads."""

    causes: Mapping[str, str] = field(default_factory=dict)
    asking: frozenset[str] = frozenset()
    touched: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Redefinition:
    """What a view is to be from the csn of a change on, and why."""

    definition: Definition
    schema: Schema
    depends_on: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True)
class ViewOutcome:
    """What becomes of a view: another definition, or it stops for a reason."""

    view: str
    redefined: Redefinition | None = None
    stopped: str = ""


class Synchronizing(Protocol):
    def plan(self, now: Snapshot, after: Snapshot, affected: AffectedViews) -> tuple[ViewOutcome, ...]:
        """``after``: the catalog as it is from the change on. Views that go on as they are have no outcome."""
        ...


class NobodySynchronizes:
    """Where all that lose something stop."""

    def plan(self, now: Snapshot, after: Snapshot, affected: AffectedViews) -> tuple[ViewOutcome, ...]:
        why = next(iter(affected.causes.values()), "")
        return tuple(ViewOutcome(view, stopped=affected.causes.get(view, why)) for view in affected.touched)


def write_outcomes(writer: CatalogWriter, outcomes: Iterable[ViewOutcome], csn: Csn, what: str) -> None:
    """In the transaction of the change, at csn ``csn``. ``what`` happened, for those that stop."""
    for one in outcomes:
        if one.redefined is None:
            writer.set_state(one.view, ViewState.SCHEMA_CHANGED, f"{what} {one.stopped}")
        else:
            new = one.redefined
            writer.redefine_from(one.view, csn, new.definition, new.schema, new.depends_on, new.why)


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
    """Of views that name one of the columns, told by their names in files. Refuses what a view forbids. Where all
    columns are gone the table is, and each of its readers is affected."""
    lost, called, grown = set(gone), set(renamed), set(wider)
    is_gone = lost >= {column.stored for column in table.schema}
    causes: dict[str, str] = {}
    asking: set[str] = set()
    for view in snapshot.readers(table.name):
        if _is_stopped(view):
            continue
        used = places_used(snapshot, view, table)
        if used & grown:
            raise InUse("column", _first(table, used & grown), (view.name,))
        if not used & (lost | called) and not is_gone:
            continue
        choice = on_schema_change(view)
        if choice is OnSchemaChange.STOP:
            raise _forbidden(view, table, used & (lost | called))
        if used & lost or is_gone:
            causes[view.name] = f"View '{view.name}' names what is gone."
        elif choice is OnSchemaChange.ASK:
            causes[view.name] = f"View '{view.name}' asks before it follows."
        if choice is OnSchemaChange.ASK:
            asking.add(view.name)
    names = {name for one in causes for name in (one, *(upper.name for upper in snapshot.above(one)))}
    ordered = tuple(view.name for view in snapshot.views() if view.name in names and not _is_stopped(view))
    return AffectedViews(causes, frozenset(asking), ordered)


def _forbidden(view: Relation, table: Relation, places: Iterable[str]) -> UsageError:
    named = [f"names column '{_first(table, places)}' of" if set(places) else "reads"]
    return UsageError(
        f"View '{view.name}' {named[0]} table '{table.name}', and says '{ON_SCHEMA_CHANGE}' = 'stop'.",
        hint="Change the view first.",
        views=[view.name],
    )


def _is_stopped(view: Relation) -> bool:
    return view.state is ViewState.SCHEMA_CHANGED


def _first(table: Relation, places: Iterable[str]) -> str:
    return min(column.name for column in table.schema if column.stored in set(places))
