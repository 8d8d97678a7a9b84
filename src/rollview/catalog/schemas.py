"""The meta relation: which columns each relation had, by csn.

Law: an entry holds at csn t iff since <= t < until. Entries are only ever added and ended, never changed otherwise, so
what a relation looked like at a csn stays what it was. A column keeps its id through changes of its name, of its type
and of its relation's name; a name that returns is another column. (Chen, Liu
and Rundensteiner, section 3.3.1, rules 4 to 9.)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from rollview.catalog import tables as t
from rollview.core.interval import Csn
from rollview.core.schema import Column, Schema


@dataclass(frozen=True, slots=True)
class ColumnVersion:
    """What a column was from csn ``since`` on and before ``until``; None: it still is.

    ``new_name`` and ``new_relation``: what it, and its relation, were called next, if that changed. ``reason``: why it
    began, None with its relation; ``ended``: why it ended.
    """

    relation_id: int
    relation: str
    id: int
    position: int
    column: Column
    since: Csn
    until: Csn | None = None
    new_relation: str | None = None
    new_name: str | None = None
    reason: str | None = None
    ended: str | None = None

    def holds_at(self, csn: Csn) -> bool:
        return self.since <= csn and (self.until is None or csn < self.until)


def read_columns(connection: sa.Connection, relation_id: int | None = None) -> tuple[ColumnVersion, ...]:
    """All entries, or those of one relation, in the order in which they began."""
    query = sa.select(t.column).order_by(t.column.c.since, t.column.c.relation_id, t.column.c.position)
    if relation_id is not None:
        query = query.where(t.column.c.relation_id == relation_id)
    return tuple(_version(row) for row in connection.execute(query))


def read_reasons(connection: sa.Connection, first: Csn, last: Csn) -> Mapping[Csn, tuple[str, ...]]:
    """Why columns began or ended at the csns, apart from those that came with their relations."""
    found: dict[Csn, dict[str, None]] = defaultdict(dict)
    for bound, why in ((t.column.c.until, t.column.c.ended), (t.column.c.since, t.column.c.reason)):
        query = sa.select(bound, t.column.c.relation, why).where(bound.between(first, last), why.is_not(None))
        for csn, relation, reason in connection.execute(query.order_by(t.column.c.id)):
            found[csn][f"{relation}: {reason}"] = None
    return {csn: tuple(reasons) for csn, reasons in found.items()}


def columns_at(versions: Sequence[ColumnVersion], csn: Csn) -> tuple[ColumnVersion, ...]:
    """Those that hold at a csn, in their order."""
    return tuple(sorted((one for one in versions if one.holds_at(csn)), key=lambda one: one.position))


def record(
    connection: sa.Connection, relation_id: int, relation: str, schema: Schema, at: Csn, reason: str | None = None
) -> None:
    """From csn ``at`` on the relation has this name and these columns: the entries that this ends and begins."""
    known = read_columns(connection, relation_id)
    ids = {one.column.stored: one.id for one in known}
    present = {one.column.stored: one for one in known if one.until is None}
    last = max((one.position for one in present.values()), default=-1)
    reordered = not _in_order(present, schema)
    begun: list[ColumnVersion] = []
    for place, column in enumerate(schema):
        one = present.pop(column.stored, None)
        if one is None:
            own = ids.setdefault(column.stored, max(ids.values(), default=0) + 1)
            last += 1
            position = place if reordered else last
            begun.append(ColumnVersion(relation_id, relation, own, position, column, at, reason=reason))
        elif reordered or _differs(one, relation, column):
            _end(connection, one, at, reason, (relation, column.name))
            position = place if reordered else one.position
            begun.append(ColumnVersion(relation_id, relation, one.id, position, column, at, reason=reason))
    for gone in present.values():
        _end(connection, gone, at, reason)
    if begun:
        connection.execute(t.column.insert(), [_row(one) for one in begun])


def advance(connection: sa.Connection, csn: Csn) -> None:
    """What was to begin or end at a csn that was not committed does so at ``csn``."""
    for bound in (t.column.c.since, t.column.c.until):
        connection.execute(t.column.update().where(bound > csn).values({bound.name: csn}))


def _in_order(present: dict[str, ColumnVersion], schema: Schema) -> bool:
    places = [present[column.stored].position for column in schema if column.stored in present]
    return places == sorted(places)


def _differs(one: ColumnVersion, relation: str, column: Column) -> bool:
    return (one.relation, one.column.name, one.column.type) != (relation, column.name, column.type)


def _end(
    connection: sa.Connection, one: ColumnVersion, at: Csn, reason: str | None, called: tuple[str, str] | None = None
) -> None:
    """``called``: what its relation and it are called from then on."""
    mine = (t.column.c.relation_id == one.relation_id, t.column.c.column_id == one.id, t.column.c.until.is_(None))
    if one.since >= at:
        # It has held at no csn.
        connection.execute(t.column.delete().where(*mine))
        return
    relation, name = called if called not in (None, (one.relation, one.column.name)) else (None, None)
    told = {"until": at, "new_relation": relation, "new_name": name, "ended": reason}
    connection.execute(t.column.update().where(*mine).values(**told))


def _row(one: ColumnVersion) -> dict[str, Any]:
    about = {"relation_id": one.relation_id, "relation": one.relation, "column_id": one.id, "position": one.position}
    described = {"name": one.column.name, "type": one.column.type, "described": one.column.to_json()}
    return {**about, **described, "since": one.since, "reason": one.reason}


def _version(row: sa.Row[Any]) -> ColumnVersion:
    return ColumnVersion(
        relation_id=row.relation_id,
        relation=row.relation,
        id=row.column_id,
        position=row.position,
        column=Column.from_json(row.described),
        since=row.since,
        until=row.until,
        new_relation=row.new_relation,
        new_name=row.new_name,
        reason=row.reason,
        ended=row.ended,
    )
