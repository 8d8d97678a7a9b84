"""Tables as they were at a csn: their names, columns and types of then.

Law: a column is known by its name in files, which never changes. So a table at csn t is a projection of what is stored,
under the names of t; what was dropped since is in files as long as no row was folded beyond the csn of the drop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rollview.catalog import ColumnVersion, Part, Relation, RelationKind, Snapshot
from rollview.catalog.definitions import TABLES as TABLES
from rollview.catalog.schemas import columns_at
from rollview.core.interval import Csn
from rollview.core.schema import Schema
from rollview.core.states import ViewState
from rollview.errors import OutOfReach


def altered_since(snapshot: Snapshot, csn: Csn) -> bool:
    """Whether a local table got other columns or another name after the csn, or columns of a captured one did."""
    tables = (one for one in snapshot.relations.values() if one.kind is RelationKind.TABLE)
    return any(_altered(table, csn) for table in tables)


def _altered(table: Relation, csn: Csn) -> bool:
    if table.source is None:
        return any(layout.csn > csn for layout in table.layouts)
    then = _going_on(table, table.schema_at(csn))
    return not _names(then) <= _names(table.schema)


def tables_at(snapshot: Snapshot, columns: Sequence[ColumnVersion], csn: Csn) -> Snapshot:
    """The snapshot in which local tables have the names and columns of the csn; views are as they are.

    ``columns``: the meta relation.
    """
    called = {one.relation_id: one.relation for one in columns_at(columns, csn)}
    then = (
        renamed_table(table, called.get(table.id, table.name), csn)
        for table in snapshot.relations.values()
        if table.kind is RelationKind.VIEW or table.source is not None or table.created <= csn
    )
    return replace(snapshot, relations={table.name: table for table in then})


def renamed_table(table: Relation, name: str, csn: Csn) -> Relation:
    if not table.layouts or table.kind is RelationKind.VIEW:
        return table
    if table.source is not None:
        # Columns that it gained since are NULL then; those that it lost are gone.
        then = {column.stored: column.name for column in table.schema_at(csn)}
        called = (replace(column, name=then.get(column.stored, column.name)) for column in table.schema)
        return seen_as(table, Schema(tuple(called)))
    return replace(seen_as(table, table.schema_at(csn)), name=name)


def seen_as(table: Relation, schema: Schema) -> Relation:
    """The table in these of its columns, under these names of them."""
    called = {column.stored: column.name for column in schema}
    names = {column.name: called[column.stored] for column in table.schema if column.stored in called}
    return replace(table, schema=schema, constraints=table.constraints.renamed(names))


def as_in_files(table: Relation) -> Relation:
    """The table with columns of the widest type that they have had: files that were written anew have no other. Rows
    that another csn does not have may be in them too, so they become narrower only when they have been left out."""
    widest = {column.stored: column for layout in table.layouts for column in layout.schema}
    read = (widest.get(column.stored, column) for column in table.schema)
    schema = Schema(tuple(replace(wide, name=own.name) for wide, own in zip(read, table.schema, strict=True)))
    return table if schema.looks_like(table.schema) else replace(table, schema=schema)


def seen_schema(view: Relation, table: Relation) -> Schema:
    """A table's columns for a view: those that it had when the view was defined and has still, under the names of then.

    For a view that is stopped, or has another definition later, those that it had at the last csn of this one.
    """
    last = _last(view)
    return _going_on(table, table.schema_at(_defined(view)), None if last is None else table.schema_at(last))


def schema_going_on(table: Relation, csn: Csn) -> Schema:
    """The columns that a table had at a csn and has still, by their names of then."""
    return _going_on(table, table.schema_at(csn))


def _last(view: Relation) -> Csn | None:
    """The last csn at which a view has the definition that it has here; None: it has it now."""
    if view.until is not None:
        return view.until - 1
    return view.pins[Part.DELTA].through if view.state is ViewState.SCHEMA_CHANGED else None


def _going_on(table: Relation, then: Schema, last: Schema | None = None) -> Schema:
    """The columns of then that it has still, or had in ``last``, under their names of then."""
    present = {column.stored: column for column in table.schema}
    there = {column.stored: present.get(column.stored, column) for column in last or table.schema}
    return Schema(tuple(replace(there[one.stored], name=one.name) for one in then if one.stored in there))


def _defined(view: Relation) -> Csn:
    """The csn from which the view has the definition that it has here."""
    versions = [one.csn for one in view.versions if not one.pending and (view.until is None or one.csn < view.until)]
    return max(versions, default=view.created)


def seen_tables(snapshot: Snapshot, view: Relation) -> Mapping[str, Relation]:
    """The tables that a view reads, as it sees them, where that is not as they are."""
    tables = [snapshot.get(name) for name in view.depends_on]
    changed = {table.name: seen_schema(view, table) for table in tables if table.layouts}
    changed = {name: schema for name, schema in changed.items() if schema != snapshot.get(name).schema}
    if not changed:
        return {}
    seen = {table.name: seen_as(table, changed[table.name]) if table.name in changed else table for table in tables}
    for name, schema in changed.items():
        places = {column.stored: column.name for column in schema}
        called = {c.name: places[c.stored] for c in snapshot.get(name).schema if c.stored in places}
        seen = {own: _referring(table, name, called) for own, table in seen.items()}
    return {name: table for name, table in seen.items() if table is not snapshot.get(name)}


def read_tables(snapshot: Snapshot, view: Relation) -> Mapping[str, Relation]:
    """The same as they can be read: what a captured table has lost is gone."""
    seen, last = seen_tables(snapshot, view), _last(view)
    if view.state is ViewState.SCHEMA_CHANGED:
        seen = {name: table for name, table in seen.items() if table.source is None or _has_all(snapshot, table)}
    for name, table in seen.items():
        if last is not None and table.source is None:
            check_kept(snapshot.get(name), last, table.schema)
        _check_there(view, snapshot.get(name), table.schema)
    return seen


def _has_all(snapshot: Snapshot, seen: Relation) -> bool:
    return {one.stored for one in seen.schema} <= {one.stored for one in snapshot.get(seen.name).schema}


def _check_there(view: Relation, table: Relation, seen: Schema) -> None:
    """Refuse to compute an earlier definition from a captured table that has lost a column of it."""
    there = {column.stored for column in table.schema}
    gone = [column.name for column in seen if column.stored not in there]
    if gone and table.source is not None:
        raise OutOfReach(
            f"Cannot compute view '{view.name}' by a definition that it had: table '{table.name}' has lost its column "
            f"'{gone[0]}' since.",
            hint="What was stored by that definition can be read.",
            name=view.name,
            table=table.name,
        )


def _referring(table: Relation, name: str, called: Mapping[str, str]) -> Relation:
    constraints = table.constraints.referring(name, name, called)
    return table if constraints == table.constraints else replace(table, constraints=constraints)


def former_names(snapshot: Snapshot, view: Relation) -> tuple[str, ...]:
    """What a view knows by former names, as it would be written by now: ``customer.first_last AS name``."""
    return tuple(
        f"{name}.{column.name} AS {seen.name}"
        for name, table in seen_tables(snapshot, view).items()
        for seen in table.schema
        for column in snapshot.get(name).schema
        if column.stored == seen.stored and column.name != seen.name
    )


def sees_former_names(snapshot: Snapshot, view: Relation) -> bool:
    """Whether the view, or one below it, calls a column by a name that means something else, or nothing, by now."""
    below = snapshot.below(view.name)
    if not any(table.layouts for table in below):
        return False
    views = (view, *(lower for lower in below if lower.kind is RelationKind.VIEW))
    seen = (pair for one in views for pair in seen_tables(snapshot, one).items())
    return any(not _names(table.schema) <= _names(snapshot.get(name).schema) for name, table in seen)


def means_others(snapshot: Snapshot, view: Relation) -> bool:
    """Whether the view, or one below it, means a column by a name that another column has by now, or that has another
    name. What it knows and is gone means nothing else."""
    views = (view, *(lower for lower in snapshot.below(view.name) if lower.kind is RelationKind.VIEW))
    return any(
        (column.stored == seen.stored) != (column.name.lower() == seen.name.lower())
        for one in views
        for name, table in seen_tables(snapshot, one).items()
        for seen in table.schema
        for column in snapshot.get(name).schema
    )


def _names(schema: Schema) -> set[tuple[str, str]]:
    return {(column.stored, column.name) for column in schema}


def check_kept(table: Relation, csn: Csn, wanted: Schema | None = None) -> None:
    """Refuse a csn at which the table had a column, one of those that are wanted, whose values are no longer here."""
    places = None if wanted is None else {column.stored for column in wanted}
    for column, dropped in table.former:
        if places is not None and column.stored not in places:
            continue
        if csn < dropped <= table.pins[Part.STATE].through:
            raise OutOfReach(
                f"Cannot read table '{table.name}' at csn {csn}: its column '{column.name}' was dropped at csn "
                f"{dropped}, and its rows have been moved beyond that since.",
                hint=f"Choose csns from {dropped} on.",
                name=table.name,
                csn=csn,
                nearest=(dropped,),
            )
