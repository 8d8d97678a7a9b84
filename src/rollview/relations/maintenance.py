"""Whether a view reads copies or asks the sources.

Law: a view asks only for rows that are not here. Where a table is copied for others, its copy is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from rollview.algebra.states import states_read
from rollview.algebra.view import ViewPlan
from rollview.catalog import Relation, Snapshot
from rollview.errors import UsageError
from rollview.relations.plans import plan_of, recomputes

MAINTENANCE = "rollview.maintenance"


class RowsFrom(StrEnum):
    COPIES = "copies"
    """Rows that it reads are kept here."""
    SOURCE_QUERIES = "source-queries"
    """No rows are kept for it: the sources are asked."""


def maintenance_of(properties: Mapping[str, str]) -> RowsFrom:
    text = properties.get(MAINTENANCE, RowsFrom.COPIES)
    try:
        return RowsFrom(text)
    except ValueError:
        hint = f"Choose {' or '.join(RowsFrom)}."
        raise UsageError(f"There is no maintenance '{text}'.", hint=hint) from None


def asks_for(plan: ViewPlan, properties: Mapping[str, str], tables: frozenset[str]) -> frozenset[str]:
    """The relations whose rows the view needs and would ask for. ``tables``: those whose rows stay at their sources."""
    read = states_read(plan)
    return read if maintenance_of(properties) is RowsFrom.SOURCE_QUERIES else read & tables


def needs_rows_of(snapshot: Snapshot, view: Relation, tables: frozenset[str]) -> frozenset[str]:
    """The relations of which rows have to be here for the view."""
    definition = view.definition
    assert definition is not None
    if recomputes(definition.properties):
        return frozenset(view.depends_on)
    plan = plan_of(snapshot, view)
    return states_read(plan) - asks_for(plan, definition.properties, tables)
