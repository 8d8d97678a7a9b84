"""Only rows that fulfil a condition are captured: what a driver may ask of its database for that.

Law: what the database leaves out of a first copy is never a row that the condition keeps. The condition itself is
applied by capture, to the first copy and to every unit of work.
"""

from __future__ import annotations

from collections.abc import Callable

from rollview.algebra.condition import Condition, condition, spelled
from rollview.core.schema import Schema
from rollview.errors import NotFound
from rollview.sources.settings import TableSettings


def condition_on_rows(settings: TableSettings, schema: Schema) -> Condition | None:
    """What the settings say of the table's rows, None for all rows; refused where the columns do not allow it."""
    return condition(settings.rows, schema, settings.relation) if settings.rows else None


def asked_of_source(settings: TableSettings, schema: Schema, column: Callable[[str], str | None]) -> str:
    """The condition in SQL that every database understands alike; parts that are not portable are left out. A column
    that it names may be gone or have another name by now: then all rows are asked for."""
    try:
        found = condition_on_rows(settings, schema)
    except NotFound:
        found = None
    return "1 = 1" if found is None else spelled(found, column) or "1 = 1"
